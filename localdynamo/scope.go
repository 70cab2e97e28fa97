package localdynamo

import (
	"strings"

	"github.com/leasehold-go/leasehold/localdynamo/expr"
)

// scope contains the names and values that a request defines for placeholders. It also records
// which of the placeholders the request's expressions use.
type scope struct {
	names       []nameBinding
	values      []valueBinding
	namesGiven  bool
	valuesGiven bool
}

type nameBinding struct {
	placeholder string
	name        string
	used        bool
}

type valueBinding struct {
	placeholder string
	value       value
	used        bool
}

func newScope(req *request) *scope {
	return &scope{req.names.value, req.values.value, req.names.given, req.values.given}
}

// name returns the attribute name in a step. If the step is a placeholder, it returns the name
// that the request defines for the placeholder.
func (s *scope) name(step expr.Step) string {
	if step.IsPlaceholder() {
		for i := range s.names {
			if s.names[i].placeholder == step.Name {
				return s.names[i].name
			}
		}
	}
	return step.Name
}

// value returns the value that the request defines for a placeholder.
func (s *scope) value(p expr.Placeholder) value {
	for i := range s.values {
		if s.values[i].placeholder == string(p) {
			return s.values[i].value
		}
	}
	return value{}
}

// useValue returns the value of a placeholder, and marks the placeholder as used. It returns an
// error if the request does not define the placeholder.
func (s *scope) useValue(p expr.Placeholder) (value, error) {
	for i := range s.values {
		if s.values[i].placeholder == string(p) {
			s.values[i].used = true
			return s.values[i].value, nil
		}
	}
	return value{}, &expr.Error{Reason: "An expression attribute value used in expression is not defined; attribute value: " + string(p)}
}

// usePath replaces the placeholders in a path by names, and marks the placeholders as used. It
// returns an error if the request does not define one of the placeholders.
func (s *scope) usePath(path expr.Path) (expr.Path, error) {
	resolved := path
	for i, step := range path {
		if !step.IsPlaceholder() {
			continue
		}
		if &resolved[0] == &path[0] {
			resolved = append(expr.Path(nil), path...)
		}
		found := false
		for j := range s.names {
			if s.names[j].placeholder == step.Name {
				s.names[j].used, found = true, true
				resolved[i].Name = s.names[j].name
			}
		}
		if !found {
			return nil, &expr.Error{Reason: "An expression attribute name used in the document path is not defined; attribute name: " + step.Name}
		}
	}
	return resolved, nil
}

// checkUsed returns an error if the request defines a placeholder that no expression uses.
func (s *scope) checkUsed() error {
	var unused []string
	for _, b := range s.names {
		if !b.used {
			unused = append(unused, b.placeholder)
		}
	}
	if len(unused) > 0 {
		return invalidf("Value provided in ExpressionAttributeNames unused in expressions: keys: {%s}", strings.Join(unused, ", "))
	}
	for _, b := range s.values {
		if !b.used {
			unused = append(unused, b.placeholder)
		}
	}
	if len(unused) > 0 {
		return invalidf("Value provided in ExpressionAttributeValues unused in expressions: keys: {%s}", strings.Join(unused, ", "))
	}
	return nil
}

// checkGiven returns an error if a map of placeholders is empty, or is given without an expression.
// The parameter "any" is true if there is an expression. The parameter "expressions" lists, for the
// error message, the members that can contain an expression.
func (s *scope) checkGiven(any bool, expressions string) error {
	switch {
	case s.namesGiven && !any:
		return invalid("ExpressionAttributeNames can only be specified when using expressions")
	case s.valuesGiven && !any:
		return invalid("ExpressionAttributeValues can only be specified when using expressions: " + expressions)
	case s.namesGiven && len(s.names) == 0:
		return invalid("ExpressionAttributeNames must not be empty")
	case s.valuesGiven && len(s.values) == 0:
		return invalid("ExpressionAttributeValues must not be empty")
	}
	return nil
}

// lookup returns the value at the path, or a value of kindNone if the item has no value there.
func (s *scope) lookup(it item, path expr.Path) value {
	v := it.get(s.name(path[0]))
	for _, step := range path[1:] {
		v = s.child(v, step)
	}
	return v
}

func (s *scope) child(v value, step expr.Step) value {
	switch {
	case step.Name != "" && v.kind == kindM:
		return v.item.get(s.name(step))
	case step.Name == "" && v.kind == kindL && step.Index < len(v.list):
		return v.list[step.Index]
	}
	return value{}
}

// refusal converts an error of package expr to an error of the API. The new error contains the
// value of "parameter": the name of the request's member that contains the expression, such as
// "FilterExpression".
func refusal(parameter string, err error) error {
	if refused, ok := err.(*expr.Error); ok {
		return invalidf("Invalid %s: %s", parameter, refused.Reason)
	}
	return err
}
