package localdynamo

import (
	"slices"
	"strings"
	"unicode/utf16"

	"github.com/leasehold-go/leasehold/localdynamo/expr"
)

// condition is a parsed condition or filter expression, with the values of the placeholders in
// it.
type condition struct {
	tree  expr.Condition
	scope *scope
}

// condition parses and checks the condition expression in a member of the request. It returns
// nil if the request lacks this member. The argument "parameter" is the member's name, for error
// messages.
func (e *Engine) condition(parameter string, source option[string], s *scope) (*condition, error) {
	if !source.given {
		return nil, nil
	}
	tree, err := e.conditions.get(source.value)
	if err == nil {
		err = checkCondition(tree, s)
	}
	if err != nil {
		return nil, refusal(parameter, err)
	}
	return &condition{tree, s}, nil
}

// holds reports whether the item satisfies the condition. A missing item counts as an item
// without attributes. Every item satisfies a nil condition.
func (c *condition) holds(it item) bool {
	return c == nil || holds(c.tree, c.scope, it)
}

func holds(tree expr.Condition, s *scope, it item) bool {
	switch c := tree.(type) {
	case expr.And:
		return holds(c.Left, s, it) && holds(c.Right, s, it)
	case expr.Or:
		return holds(c.Left, s, it) || holds(c.Right, s, it)
	case expr.Not:
		return !holds(c.Part, s, it)
	case expr.Comparison:
		return compares(c.Op, evaluate(c.Left, s, it), evaluate(c.Right, s, it))
	case expr.Between:
		v := evaluate(c.Operand, s, it)
		return compares(">=", v, evaluate(c.Low, s, it)) && compares("<=", v, evaluate(c.High, s, it))
	case expr.In:
		v := evaluate(c.Operand, s, it)
		return slices.ContainsFunc(c.List, func(o expr.Operand) bool { return compares("=", v, evaluate(o, s, it)) })
	case expr.Call:
		return calls(c, s, it)
	}
	panic("localdynamo: an unknown condition")
}

// compares returns the result of the comparison "a op b". A missing value is not equal to any
// value, not even to another missing value. So <> is true if a or b is missing.
func compares(op string, a, b value) bool {
	switch op {
	case "=":
		return a.kind != kindNone && a.equal(b)
	case "<>":
		return a.kind == kindNone || !a.equal(b)
	}
	if a.kind != b.kind || !isOrdered(a.kind) {
		return false
	}
	switch order := a.compare(b); op {
	case "<":
		return order < 0
	case "<=":
		return order <= 0
	case ">":
		return order > 0
	default:
		return order >= 0
	}
}

func isOrdered(k kind) bool { return k == kindS || k == kindN || k == kindB }

func evaluate(operand expr.Operand, s *scope, it item) value {
	switch o := operand.(type) {
	case expr.Path:
		return s.lookup(it, o)
	case expr.Placeholder:
		return s.value(o)
	case expr.Size:
		return sizeOf(evaluate(o.Of, s, it))
	}
	panic("localdynamo: an unknown operand")
}

// sizeOf implements the function size() in expressions. Numbers, booleans and nulls have no size.
// The size of a string is counted in UTF-16 units, as in DynamoDB Local.
func sizeOf(v value) value {
	switch v.kind {
	case kindS:
		units := 0
		for _, r := range v.text {
			units += utf16.RuneLen(r)
		}
		return integer(units)
	case kindB:
		return integer(len(v.text))
	case kindM:
		return integer(len(v.item))
	case kindL, kindSS, kindNS, kindBS:
		return integer(len(v.list))
	}
	return value{}
}

func calls(c expr.Call, s *scope, it item) bool {
	first := evaluate(c.Operands[0], s, it)
	switch c.Function {
	case "attribute_exists":
		return first.kind != kindNone
	case "attribute_not_exists":
		return first.kind == kindNone
	}
	second := evaluate(c.Operands[1], s, it)
	switch c.Function {
	case "attribute_type":
		return first.kind != kindNone && second.kind == kindS && first.kind.String() == second.text
	case "begins_with":
		return first.kind == second.kind && (first.kind == kindS || first.kind == kindB) && strings.HasPrefix(first.text, second.text)
	case "contains":
		switch {
		case first.kind == kindL || first.kind.isSet():
			return first.contains(second)
		case first.kind == second.kind && (first.kind == kindS || first.kind == kindB):
			return strings.Contains(first.text, second.text)
		}
		return false
	}
	panic("localdynamo: an unknown function " + c.Function)
}

// checkCondition returns the first error that can be found in a condition without the item.
// Examples are a placeholder that the request does not define, and an operand whose type the
// operator or function does not accept.
func checkCondition(tree expr.Condition, s *scope) error {
	switch c := tree.(type) {
	case expr.And:
		return checkConditions(s, c.Left, c.Right)
	case expr.Or:
		return checkConditions(s, c.Left, c.Right)
	case expr.Not:
		return checkCondition(c.Part, s)
	case expr.Comparison:
		kinds, err := operandKinds(s, c.Left, c.Right)
		if err != nil {
			return err
		}
		if c.Op != "=" && c.Op != "<>" {
			if err := checkOrdered(c.Op, kinds...); err != nil {
				return err
			}
		}
		return checkDistinct(c.Op, s, c.Left, c.Right)
	case expr.Between:
		return checkBetween(c, s)
	case expr.In:
		_, err := operandKinds(s, append([]expr.Operand{c.Operand}, c.List...)...)
		return err
	case expr.Call:
		return checkCall(c, s)
	}
	panic("localdynamo: an unknown condition")
}

func checkConditions(s *scope, parts ...expr.Condition) error {
	for _, part := range parts {
		if err := checkCondition(part, s); err != nil {
			return err
		}
	}
	return nil
}

// operandKinds checks operands and returns their kinds. The kind of an operand is kindNone if
// the operand's type depends on the item.
func operandKinds(s *scope, operands ...expr.Operand) ([]kind, error) {
	kinds := make([]kind, len(operands))
	for i, operand := range operands {
		switch o := operand.(type) {
		case expr.Path:
			if _, err := s.usePath(o); err != nil {
				return nil, err
			}
		case expr.Placeholder:
			v, err := s.useValue(o)
			if err != nil {
				return nil, err
			}
			kinds[i] = v.kind
		case expr.Size:
			of, err := operandKinds(s, o.Of)
			if err != nil {
				return nil, err
			}
			if k := of[0]; k == kindN || k == kindBool || k == kindNull {
				return nil, wrongOperand("size", k)
			}
			kinds[i] = kindN
		}
	}
	return kinds, nil
}

func wrongOperand(operator string, k kind) error {
	return &expr.Error{Reason: "Incorrect operand type for operator or function; operator or function: " + operator + ", operand type: " + k.String()}
}

func checkOrdered(operator string, kinds ...kind) error {
	for _, k := range kinds {
		if k != kindNone && !isOrdered(k) {
			return wrongOperand(operator, k)
		}
	}
	return nil
}

// checkDistinct returns an error if both operands of an operator are the same path.
func checkDistinct(operator string, s *scope, first, second expr.Operand) error {
	one, ok := first.(expr.Path)
	if !ok {
		return nil
	}
	two, ok := second.(expr.Path)
	if !ok {
		return nil
	}
	one, _ = s.usePath(one)
	two, _ = s.usePath(two)
	if !one.Equal(two) {
		return nil
	}
	return &expr.Error{Reason: "The first operand must be distinct from the remaining operands for this operator or function; operator: " + operator + ", first operand: " + one.Steps()}
}

func checkBetween(c expr.Between, s *scope) error {
	kinds, err := operandKinds(s, c.Operand, c.Low, c.High)
	if err != nil {
		return err
	}
	if err := checkOrdered("BETWEEN", kinds...); err != nil {
		return err
	}
	low, ok := c.Low.(expr.Placeholder)
	if !ok {
		return nil
	}
	high, ok := c.High.(expr.Placeholder)
	if !ok {
		return nil
	}
	from, to := s.value(low), s.value(high)
	var rule string
	switch {
	case from.kind != to.kind:
		rule = "same data type for lower and upper bounds"
	case from.compare(to) > 0:
		rule = "upper bound to be greater than or equal to lower bound"
	default:
		return nil
	}
	return &expr.Error{Reason: "The BETWEEN operator requires " + rule + "; lower bound operand: " + describe(from) + ", upper bound operand: " + describe(to)}
}

// describe formats a scalar value for an error text.
func describe(v value) string {
	return "AttributeValue: {" + v.kind.String() + ":" + v.text + "}"
}

func checkCall(c expr.Call, s *scope) error {
	kinds, err := operandKinds(s, c.Operands...)
	if err != nil {
		return err
	}
	switch c.Function {
	case "attribute_type":
		if kinds[1] != kindNone && kinds[1] != kindS {
			return wrongOperand(c.Function, kinds[1])
		}
		placeholder, ok := c.Operands[1].(expr.Placeholder)
		if !ok {
			return nil
		}
		if name := s.value(placeholder).text; name == "" || !slices.Contains(kindNames[:], name) {
			return &expr.Error{Reason: "Invalid attribute type name found; type: " + name + ", valid types: {B,NULL,SS,BOOL,L,BS,N,NS,S,M}"}
		}
	case "begins_with":
		for _, k := range kinds {
			if k != kindNone && k != kindS && k != kindB {
				return wrongOperand(c.Function, k)
			}
		}
		return checkDistinct(c.Function, s, c.Operands[0], c.Operands[1])
	case "contains":
		if k := kinds[0]; k == kindN || k == kindBool || k == kindNull || k == kindM {
			return wrongOperand(c.Function, k)
		}
		return checkDistinct(c.Function, s, c.Operands[0], c.Operands[1])
	}
	return nil
}

// keyAttribute reads the condition from left to right, and returns the name of the first attribute
// that belongs to the table's primary key. It returns "" if there is no such attribute.
func (c *condition) keyAttribute(t *table) string {
	if c == nil {
		return ""
	}
	name := ""
	expr.Walk(c.tree, func(path expr.Path) {
		if top := c.scope.name(path[0]); name == "" && t.isKey(top) {
			name = top
		}
	})
	return name
}
