package conformance

import "strings"

// arithmeticCases returns the cases for the sums and differences that SET and ADD compute.
func arithmeticCases() []Case {
	digits := strings.Repeat("9", 38)
	wrongType := "An operand in the update expression has an incorrect data type"
	noAttribute := "The provided expression refers to an attribute that does not exist in the item"
	return []Case{
		update("SET adds", Item{"n": num("5")}, "SET n = n + :v", Item{":v": num("3")}, Item{"n": num("8")}),
		update("SET subtracts", Item{"n": num("5")}, "SET n = n - :v", Item{":v": num("7.5")}, Item{"n": num("-2.5")}),
		update("SET adds two attributes", Item{"x": num("5"), "y": num("2")}, "SET n = x + y", nil, Item{"x": num("5"), "y": num("2"), "n": num("7")}),
		update("decimal fractions are exact", Item{"n": num("0.1")}, "SET n = n + :v", Item{":v": num("0.2")}, Item{"n": num("0.3")}),
		update("38 digits are exact", Item{"n": num("1" + strings.Repeat("0", 37))}, "SET n = n + :v", Item{":v": num("1")},
			Item{"n": num("1" + strings.Repeat("0", 36) + "1")}),
		update("zero has one form", Item{"n": num("-5")}, "SET n = n + :v", Item{":v": num("5")}, Item{"n": num("0")}),
		update("ADD to a missing attribute starts from zero", nil, "ADD n :v", Item{":v": num("3")}, Item{"n": num("3")}),
		update("ADD adds", Item{"n": num("5")}, "ADD n :v", Item{":v": num("-8")}, Item{"n": num("-3")}),
		update("ADD to several", Item{"x": num("1"), "y": num("1")}, "ADD x :v, y :v", Item{":v": num("1")}, Item{"x": num("2"), "y": num("2")}),
		update("ADD is exact beyond 53 bits", Item{"n": num("9007199254740993")}, "ADD n :v", Item{":v": num("2")}, Item{"n": num("9007199254740995")}),
		updateFails("SET cannot add to a string", Item{"n": str("5")}, "SET n = n + :v", Item{":v": num("3")}, wrongType),
		updateFails("SET cannot add to a missing attribute", nil, "SET n = n + :v", Item{":v": num("3")}, noAttribute),
		updateFails("SET cannot add a string", Item{"n": num("5")}, "SET n = n + :v", Item{":v": str("3")},
			"Invalid UpdateExpression: Incorrect operand type for operator or function; operator or function: +, operand type: S"),
		updateFails("SET cannot subtract a string", Item{"n": num("5")}, "SET n = n - :v", Item{":v": str("3")},
			"Invalid UpdateExpression: Incorrect operand type for operator or function; operator or function: -, operand type: S"),
		updateFails("ADD cannot add a number to a string", Item{"n": str("5")}, "ADD n :v", Item{":v": num("3")}, wrongType),
		updateFails("ADD cannot add a string", Item{"n": num("5")}, "ADD n :v", Item{":v": str("3")},
			"Invalid UpdateExpression: Incorrect operand type for operator or function; operator: ADD, operand type: STRING, typeSet: ALLOWED_FOR_ADD_OPERAND"),
		updateFails("a sum of more than 38 digits", Item{"n": num(digits)}, "SET n = n + :v", Item{":v": num("0.1")},
			"Attempting to store more than 38 significant digits in a Number"),
		updateFails("a sum beyond the largest number", Item{"n": num(digits + strings.Repeat("0", 88))}, "SET n = n + :v", Item{":v": num("1E+88")},
			"Number overflow. Attempting to store a number with magnitude larger than supported range"),
	}
}

// setCases returns the cases for ADD and DELETE on attributes that are sets.
func setCases() []Case {
	wrongType := "An operand in the update expression has an incorrect data type"
	return []Case{
		update("ADD makes a set", nil, "ADD s :v", Item{":v": strs("a", "b")}, Item{"s": strs("a", "b")}),
		update("ADD is a union of strings", Item{"s": strs("a", "b")}, "ADD s :v", Item{":v": strs("b", "c")}, Item{"s": strs("a", "b", "c")}),
		update("ADD is a union of numbers by value", Item{"s": nums("1", "2")}, "ADD s :v", Item{":v": nums("2.0", "3")}, Item{"s": nums("1", "2", "3")}),
		update("ADD is a union of binaries", Item{"s": bins("p")}, "ADD s :v", Item{":v": bins("q", "p")}, Item{"s": bins("p", "q")}),
		update("DELETE removes strings", Item{"s": strs("a", "b", "c")}, "DELETE s :v", Item{":v": strs("a", "z")}, Item{"s": strs("b", "c")}),
		update("DELETE removes numbers by value", Item{"s": nums("1", "2.5")}, "DELETE s :v", Item{":v": nums("2.50")}, Item{"s": nums("1")}),
		update("DELETE removes binaries", Item{"s": bins("p", "q")}, "DELETE s :v", Item{":v": bins("q")}, Item{"s": bins("p")}),
		update("DELETE of all members removes the attribute", Item{"s": strs("a", "b")}, "DELETE s :v", Item{":v": strs("b", "a")}, nil),
		update("DELETE from a missing set does nothing", Item{"x": num("1")}, "DELETE s :v", Item{":v": strs("a")}, Item{"x": num("1")}),
		updateFails("ADD of strings to a set of numbers", Item{"s": nums("1")}, "ADD s :v", Item{":v": strs("a")}, wrongType),
		updateFails("ADD of a set to a number", Item{"s": num("1")}, "ADD s :v", Item{":v": nums("1")}, wrongType),
		updateFails("DELETE from a list", Item{"s": list(str("a"))}, "DELETE s :v", Item{":v": strs("a")}, wrongType),
		updateFails("DELETE of strings from a set of numbers", Item{"s": nums("1")}, "DELETE s :v", Item{":v": strs("a")}, wrongType),
		updateFails("DELETE accepts only sets", Item{"s": strs("a")}, "DELETE s :v", Item{":v": str("a")},
			"Invalid UpdateExpression: Incorrect operand type for operator or function; operator: DELETE, operand type: STRING, typeSet: ALLOWED_FOR_DELETE_OPERAND"),
	}
}
