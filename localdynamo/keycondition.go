package localdynamo

import (
	"slices"

	"github.com/leasehold-go/leasehold/localdynamo/expr"
)

// keyCondition selects items of one partition for a Query.
type keyCondition struct {
	hash value
	// Operator on the sort key: a comparator, BETWEEN or begins_with. Empty if the whole
	// partition is selected.
	op   string
	low  value
	high value // upper bound of BETWEEN
}

// keyTerm is one comparison in a key condition: an attribute, an operator, and one or two
// values.
type keyTerm struct {
	name string
	op   string
	low  value
	high value
}

const keyConditionExpression = "KeyConditionExpression"

// keyTerms parses a key condition expression, splits it at each AND, and returns the terms.
func (e *Engine) keyTerms(source string, s *scope) ([]keyTerm, error) {
	tree, err := e.conditions.get(source)
	if err == nil {
		err = checkCondition(tree, s)
	}
	if err != nil {
		return nil, refusal(keyConditionExpression, err)
	}
	parts := conjuncts(tree)
	terms := make([]keyTerm, len(parts))
	for i, part := range parts {
		if terms[i], err = newKeyTerm(part, s); err != nil {
			return nil, err
		}
	}
	return terms, nil
}

// conjuncts splits a condition at every AND outside an OR or NOT, and returns the parts.
func conjuncts(tree expr.Condition) []expr.Condition {
	if and, ok := tree.(expr.And); ok {
		return append(conjuncts(and.Left), conjuncts(and.Right)...)
	}
	return []expr.Condition{tree}
}

func newKeyTerm(part expr.Condition, s *scope) (keyTerm, error) {
	switch c := part.(type) {
	case expr.Comparison:
		if c.Op == "<>" {
			return keyTerm{}, wrongKeyOperator("<>")
		}
		if _, ok := c.Left.(expr.Placeholder); ok {
			return keyTermOf(mirrored[c.Op], s, c.Right, c.Left)
		}
		return keyTermOf(c.Op, s, c.Left, c.Right)
	case expr.Between:
		return keyTermOf("BETWEEN", s, c.Operand, c.Low, c.High)
	case expr.Call:
		if c.Function == "begins_with" {
			return keyTermOf(c.Function, s, c.Operands[0], c.Operands[1:]...)
		}
		return keyTerm{}, wrongKeyOperator(c.Function)
	case expr.Or:
		return keyTerm{}, wrongKeyOperator("OR")
	case expr.Not:
		return keyTerm{}, wrongKeyOperator("NOT")
	default:
		return keyTerm{}, wrongKeyOperator("IN")
	}
}

// mirrored maps each comparator to the comparator for swapped operands: a < b is b > a.
var mirrored = map[string]string{"=": "=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}

func wrongKeyOperator(operator string) error {
	return invalidf("Invalid operator used in KeyConditionExpression: %s", operator)
}

// keyTermOf returns the term in which op compares an attribute with one or two values.
func keyTermOf(op string, s *scope, attribute expr.Operand, values ...expr.Operand) (keyTerm, error) {
	path, ok := attribute.(expr.Path)
	if !ok {
		if _, ok := attribute.(expr.Size); ok {
			return keyTerm{}, invalid("KeyConditionExpressions cannot contain nested operations")
		}
		return keyTerm{}, invalid("Invalid condition in KeyConditionExpression: No key attribute specified")
	}
	if len(path) > 1 {
		return keyTerm{}, invalid("KeyConditionExpressions cannot have conditions on nested attributes")
	}
	term := keyTerm{name: s.name(path[0]), op: op}
	for i, operand := range values {
		switch o := operand.(type) {
		case expr.Placeholder:
			if i == 0 {
				term.low = s.value(o)
			} else {
				term.high = s.value(o)
			}
		case expr.Size:
			return keyTerm{}, invalid("KeyConditionExpressions cannot contain nested operations")
		default:
			return keyTerm{}, invalid("Invalid condition in KeyConditionExpression: Multiple attribute names used in one condition")
		}
	}
	return term, nil
}

// keyCondition combines terms into a condition on the table's primary key.
func (t *table) keyCondition(terms []keyTerm) (keyCondition, error) {
	var c keyCondition
	for i, term := range terms {
		if slices.ContainsFunc(terms[:i], func(other keyTerm) bool { return other.name == term.name }) {
			return c, invalid("KeyConditionExpressions must only contain one condition per key")
		}
	}
	if len(terms) > 2 {
		return c, invalid("Conditions can be of length 1 or 2 only")
	}
	for _, term := range terms {
		if term.name == t.Hash.Name {
			if term.op != "=" {
				return c, invalid("Query key condition not supported")
			}
			if err := checkKeyTerm(t.Hash, term.low); err != nil {
				return c, err
			}
			c.hash = term.low
		}
	}
	if c.hash.kind == kindNone {
		return c, invalidf("Query condition missed key schema element: %s", t.Hash.Name)
	}
	for _, term := range terms {
		if term.name == t.Hash.Name {
			continue
		}
		if t.Range == nil {
			return c, invalid("Query key condition not supported")
		}
		if term.name != t.Range.Name {
			return c, invalidf("Query condition missed key schema element: %s", t.Range.Name)
		}
		values := []value{term.low}
		if term.op == "BETWEEN" {
			values = append(values, term.high)
		}
		if err := checkKeyTerm(*t.Range, values...); err != nil {
			return c, err
		}
		c.op, c.low, c.high = term.op, term.low, term.high
	}
	return c, nil
}

func checkKeyTerm(attribute keyAttribute, values ...value) error {
	for _, v := range values {
		if v.kind.String() != attribute.Type {
			return invalid("One or more parameter values were invalid: Condition parameter type does not match schema type")
		}
		if err := checkKeyValue(attribute, v); err != nil {
			return err
		}
	}
	return nil
}

// span returns the range of Store keys that the condition selects.
func (t *table) span(c keyCondition) (from, to []byte) {
	partition := appendPartition(appendTablePrefix(nil, prefixItem, t.Name), c.hash)
	at := func(v value) []byte { return appendSortable(append([]byte(nil), partition...), v) }
	from, to = partition, after(partition)
	switch c.op {
	case "=":
		from = at(c.low)
		to = after(from)
	case "<":
		to = at(c.low)
	case "<=":
		to = after(at(c.low))
	case ">":
		from = after(at(c.low))
	case ">=":
		from = at(c.low)
	case "BETWEEN":
		from, to = at(c.low), after(at(c.high))
	case "begins_with":
		whole := at(c.low)
		from = whole[:len(whole)-len(endOfText)]
		to = after(from)
	}
	return from, to
}
