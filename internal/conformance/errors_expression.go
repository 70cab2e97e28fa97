package conformance

import (
	"fmt"
	"strings"
)

// expressionErrorCases returns the cases for expressions that DynamoDB refuses, whatever the item
// contains.
func expressionErrorCases() []Case {
	var cases []Case
	for _, c := range []struct{ condition, text string }{
		{"x =", "Syntax error; token: \"<EOF>\", near: \"=\""},
		{"x = = y", "Syntax error; token: \"=\", near: \"= = y\""},
		{"x y", "Syntax error; token: \"y\", near: \"x y\""},
		{"(x = y", "Syntax error; token: \"<EOF>\", near: \"y\""},
		{"x = y)", "Syntax error; token: \")\", near: \"y)\""},
		{"x = 1", "Syntax error; token: \"1\", near: \"= 1\""},
		{"x == y", "Syntax error; token: \"=\", near: \"== y\""},
		{"x = y AND", "Syntax error; token: \"<EOF>\", near: \"AND\""},
		{"x != y", "Syntax error; token: \"!\", near: \"x !=\""},
		{"x = 'y'", "Syntax error; token: \"'\", near: \"= 'y\""},
		{"x[a] = y", "Syntax error; token: \"a\", near: \"[a]\""},
		{"name = y", "Attribute name is a reserved keyword; reserved keyword: name"},
		{"x = Status", "Attribute name is a reserved keyword; reserved keyword: Status"},
		{"contains(x, x)", "The first operand must be distinct from the remaining operands for this operator or function; operator: contains, first operand: [x]"},
		{"exists(x)", "Invalid function name; function: exists"},
		{"if_not_exists(x, y) = x", "The function is not allowed in a condition expression; function: if_not_exists"},
		{"attribute_exists(x, y)", "Incorrect number of operands for operator or function; operator or function: attribute_exists, number of operands: 2"},
		{"size(x)", "The function is not allowed to be used this way in an expression; function: size"},
		{"x", "Syntax error; token: \"<EOF>\", near: \"x\""},
		{"x = x", "The first operand must be distinct from the remaining operands for this operator or function; operator: =, first operand: [x]"},
		{"begins_with(x, :n)", "Incorrect operand type for operator or function; operator or function: begins_with, operand type: N"},
		{"attribute_type(x, :n)", "Incorrect operand type for operator or function; operator or function: attribute_type, operand type: N"},
		{"attribute_exists(:n)", "Operator or function requires a document path; operator or function: attribute_exists"},
		{"((x = y))", "The expression has redundant parentheses;"},
	} {
		values := Item{}
		if strings.Contains(c.condition, ":n") {
			values[":n"] = num("1")
		} else {
			values = nil
		}
		cases = append(cases, Case{
			Name: "condition " + c.condition,
			When: Put{If: c.condition, Values: values},
			Want: invalid("Invalid ConditionExpression: " + c.text),
			Then: []Item{},
		})
	}
	for _, c := range []struct{ update, text string }{
		{"SET x", "Syntax error; token: \"<EOF>\", near: \"x\""},
		{"SET x =", "Syntax error; token: \"<EOF>\", near: \"=\""},
		{"x = y", "Syntax error; token: \"x\", near: \"x =\""},
		{"SET x = y,", "Syntax error; token: \"<EOF>\", near: \",\""},
		{"REMOVE x y", "Syntax error; token: \"y\", near: \"x y\""},
		{"SET x = y * z", "Syntax error; token: \"*\", near: \"y * z\""},
		{"SET x = a + b + c", "Syntax error; token: \"+\", near: \"b + c\""},
		{"SET abort = y", "Attribute name is a reserved keyword; reserved keyword: abort"},
		{"SET x = y SET z = y", "The \"SET\" section can only be used once in an update expression;"},
		{"REMOVE x REMOVE y", "The \"REMOVE\" section can only be used once in an update expression;"},
		{"SET x = size(y)", "The function is not allowed in an update expression; function: size"},
		{"SET x = nonsense(y)", "Invalid function name; function: nonsense"},
		{"SET x = if_not_exists(y)", "Incorrect number of operands for operator or function; operator or function: if_not_exists, number of operands: 1"},
		{"REMOVE x, x.y", "Two document paths overlap with each other; must remove or rewrite one of these paths; path one: [x], path two: [x, y]"},
		{"SET x = y REMOVE x", "Two document paths overlap with each other; must remove or rewrite one of these paths; path one: [x], path two: [x]"},
		{"SET x.a = y, x[0] = y", "Two document paths conflict with each other; must remove or rewrite one of these paths; path one: [x, a], path two: [x, [0]]"},
		{"ADD x y", "Syntax error; token: \"y\", near: \"x y\""},
	} {
		cases = append(cases, Case{
			Name: "update " + c.update,
			When: Update{Do: c.update},
			Want: invalid("Invalid UpdateExpression: " + c.text),
			Then: []Item{},
		})
	}
	return append(cases,
		Case{
			Name: "a filter's error names the filter",
			When: Scan{Filter: "x ="},
			Want: invalid("Invalid FilterExpression: Syntax error; token: \"<EOF>\", near: \"=\""),
		},
		Case{
			Name: "a key condition's error names the key condition",
			When: Query{Where: "pk ="},
			Want: invalid("Invalid KeyConditionExpression: Syntax error; token: \"<EOF>\", near: \"=\""),
		},
		Case{
			Name: "a projection's error names the projection",
			When: Get{Project: "x,"},
			Want: invalid("Invalid ProjectionExpression: Syntax error; token: \"<EOF>\", near: \",\""),
		},
		Case{
			Name: "IN accepts a hundred operands",
			When: Put{If: "NOT x IN (" + operands(100) + ")", Values: operandValues(100)},
		},
		Case{
			Name: "IN rejects more than a hundred operands",
			When: Put{If: "x IN (" + operands(101) + ")", Values: operandValues(101)},
			Want: invalid("Invalid ConditionExpression: The IN operator is provided with too many operands; number of operands: 101"),
		},
		Case{
			Name: "booleans have no order",
			When: Put{If: "x < :v", Values: Item{":v": boolean(true)}},
			Want: invalid("Invalid ConditionExpression: Incorrect operand type for operator or function; operator or function: <, operand type: BOOL"),
		},
		Case{
			Name: "nulls have no order",
			When: Put{If: "x >= :v", Values: Item{":v": null}},
			Want: invalid("Invalid ConditionExpression: Incorrect operand type for operator or function; operator or function: >=, operand type: NULL"),
		},
		Case{
			Name: "lists have no order",
			When: Put{If: "x >= :v", Values: Item{":v": list()}},
			Want: invalid("Invalid ConditionExpression: Incorrect operand type for operator or function; operator or function: >=, operand type: L"),
		},
		Case{
			Name: "BETWEEN needs its bounds in order",
			When: Put{If: "x BETWEEN :v AND :w", Values: Item{":v": num("2"), ":w": num("1")}},
			Want: invalid("Invalid ConditionExpression: The BETWEEN operator requires upper bound to be greater than or equal to lower bound; lower bound operand: AttributeValue: {N:2}, upper bound operand: AttributeValue: {N:1}"),
		},
		Case{
			Name: "BETWEEN needs bounds of one type",
			When: Put{If: "x BETWEEN :v AND :w", Values: Item{":v": num("2"), ":w": str("3")}},
			Want: invalid("Invalid ConditionExpression: The BETWEEN operator requires same data type for lower and upper bounds; lower bound operand: AttributeValue: {N:2}, upper bound operand: AttributeValue: {S:3}"),
		},
	)
}

// operands returns n placeholders, ":0, :1, ...". Their values come from function operandValues.
func operands(n int) string {
	var all []string
	for i := range n {
		all = append(all, fmt.Sprint(":", i))
	}
	return strings.Join(all, ", ")
}

func operandValues(n int) Item {
	values := Item{}
	for i := range n {
		values[fmt.Sprint(":", i)] = num(fmt.Sprint(i))
	}
	return values
}
