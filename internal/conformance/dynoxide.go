package conformance

import "maps"

// dynoxide returns the known differences between dynoxide 1.2.1 and AWS.
func dynoxide() map[string]*Difference {
	all := worded("its parser has its own error texts", map[string]string{
		"projections/a function is not a path":                              "Unexpected token in ProjectionExpression: (",
		"key conditions/pk = :p AND sk <> :v":                               "Unexpected operator in KeyConditionExpression: <>",
		"key conditions/pk = :p OR sk = :v":                                 "Unexpected token in KeyConditionExpression: OR",
		"key conditions/pk = :p AND NOT sk = :v":                            "Expected attribute name, got NOT",
		"key conditions/pk = :p AND sk IN (:v)":                             "Unexpected operator in KeyConditionExpression: IN",
		"key conditions/pk = :p AND contains(sk, :v)":                       "Unexpected operator in KeyConditionExpression: (",
		"key conditions/pk > :p":                                            "Invalid KeyConditionExpression: partition key must use equality",
		"key conditions/begins_with(pk, :p)":                                "Invalid KeyConditionExpression: partition key must use equality",
		"key conditions/pk = :p AND sk > :v AND sk < :w":                    "Unexpected token in KeyConditionExpression: AND",
		"key conditions/pk = :p AND sk = :v AND n = :w":                     "Unexpected token in KeyConditionExpression: AND",
		"expression errors/condition x =":                                   "1 validation error detected: Invalid ConditionExpression: Expected operand, got end of expression",
		"expression errors/condition x = = y":                               "1 validation error detected: Invalid ConditionExpression: Expected operand, got =",
		"expression errors/condition x y":                                   "1 validation error detected: Invalid ConditionExpression: Expected comparison operator, BETWEEN, or IN",
		"expression errors/condition (x = y":                                "1 validation error detected: Invalid ConditionExpression: Expected ), got end of expression",
		"expression errors/condition x = y)":                                "1 validation error detected: Invalid ConditionExpression: Syntax error; token: \")\"",
		"expression errors/condition x = 1":                                 "1 validation error detected: Invalid ConditionExpression: Syntax error; token: \"1\"",
		"expression errors/condition x == y":                                "1 validation error detected: Invalid ConditionExpression: Expected operand, got =",
		"expression errors/condition x = y AND":                             "1 validation error detected: Invalid ConditionExpression: Expected operand, got end of expression",
		"expression errors/condition x != y":                                "1 validation error detected: Invalid ConditionExpression: Syntax error; token: \"!\"",
		"expression errors/condition x = 'y'":                               "1 validation error detected: Invalid ConditionExpression: Syntax error; token: \"'\"",
		"expression errors/condition x[a] = y":                              "1 validation error detected: Invalid ConditionExpression: Expected number in brackets, got a",
		"expression errors/condition if_not_exists(x, y) = x":               "1 validation error detected: Invalid ConditionExpression: Invalid function name; function: if_not_exists",
		"expression errors/condition attribute_exists(x, y)":                "1 validation error detected: Invalid ConditionExpression: Expected ), got ,",
		"expression errors/condition size(x)":                               "1 validation error detected: Invalid ConditionExpression: Expected comparison operator, BETWEEN, or IN",
		"expression errors/condition x":                                     "1 validation error detected: Invalid ConditionExpression: Expected comparison operator, BETWEEN, or IN",
		"expression errors/condition attribute_exists(:n)":                  "1 validation error detected: Invalid ConditionExpression: Expected attribute name, got :n",
		"expression errors/update SET x":                                    "1 validation error detected: Invalid UpdateExpression: Syntax error; Expected =, got end of expression",
		"expression errors/update SET x =":                                  "1 validation error detected: Invalid UpdateExpression: Syntax error; Expected operand in SET, got end of expression",
		"expression errors/update SET x = y,":                               "1 validation error detected: Invalid UpdateExpression: Syntax error; Expected attribute name, got end of expression",
		"expression errors/update REMOVE x y":                               "1 validation error detected: Invalid UpdateExpression: Syntax error; token: \"y\", near: \"y\"",
		"expression errors/update SET x = y * z":                            "1 validation error detected: Invalid UpdateExpression: Syntax error; token: \"*\", near: \"*\"",
		"expression errors/update SET x = a + b + c":                        "1 validation error detected: Invalid UpdateExpression: Syntax error; token: \"+\", near: \"+ c\"",
		"expression errors/update SET x = size(y)":                          "1 validation error detected: Invalid UpdateExpression: Invalid function name; function: size",
		"expression errors/update REMOVE x, x.y":                            "1 validation error detected: Invalid UpdateExpression: Two document paths overlap with each other; must remove or rewrite one of these paths; path one: [x, y], path two: [x]",
		"expression errors/update SET x.a = y, x[0] = y":                    "The provided expression refers to an attribute that does not exist in the item",
		"expression errors/update ADD x y":                                  "1 validation error detected: Invalid UpdateExpression: Syntax error; Expected value reference in ADD, got y",
		"expression errors/a filter's error names the filter":               "Invalid FilterExpression: Expected operand, got end of expression",
		"expression errors/a key condition's error names the key condition": "Expected value reference, got end of expression",
		"expression errors/a projection's error names the projection":       "Invalid ProjectionExpression: Expected attribute name, got end of expression",
		"placeholder errors/a value that is not defined in a condition":     "An expression attribute value used in expression is not defined; attribute value: :w",
		"placeholder errors/a value that is not defined in a key condition": "An expression attribute value used in expression is not defined; attribute value: :w",
		"placeholder errors/a name that is not defined in a condition":      "An expression attribute name used in the document path is not defined; attribute name: #w",
	})
	maps.Copy(all, worded("it checks values and keys elsewhere, and its errors name fewer of them", map[string]string{
		"items/DeleteItem rejects other return values":         "1 validation error detected: Value 'UPDATED_OLD' at 'returnValues' failed to satisfy constraint: Member must satisfy enum value set: [ALL_OLD, NONE]",
		"updates/list_append of a value that is not a list":    "list_append requires two list operands",
		"updates/an update that fails halfway changes nothing": "Operands for + must be numbers",
		"paths/ADD inside a missing map":                       "An operand in the update expression has an incorrect data type",
		"arithmetic/SET cannot add to a string":                "Operands for + must be numbers",
		"arithmetic/SET cannot add a string":                   "1 validation error detected: Invalid UpdateExpression: Incorrect operand type for operator or function; operator or function: +, operand type: STRING",
		"arithmetic/SET cannot subtract a string":              "1 validation error detected: Invalid UpdateExpression: Incorrect operand type for operator or function; operator or function: -, operand type: STRING",
		"arithmetic/ADD cannot add a string":                   "1 validation error detected: Invalid UpdateExpression: Incorrect operand type for operator or function; operator: ADD, operand type: STRING",
		"sets/DELETE accepts only sets":                        "1 validation error detected: Invalid UpdateExpression: Incorrect operand type for operator or function; operator: DELETE, operand type: STRING",
		"values/an invalid number in an expression's values":   "The parameter cannot be converted to a numeric value: x",
		"ttl/turning TTL on for another attribute":             "TimeToLive is already enabled with a different attribute name",
	}))
	maps.Copy(all, dynoxideBehaviour())
	return all
}

func dynoxideBehaviour() map[string]*Difference {
	reason := func(text string) Reason { return Reason{Code: "ValidationError", Text: text} }
	return map[string]*Difference{
		"items/UpdateItem with ALL_OLD returns nothing for a new item": {
			Why: "it returns the key of an item that was not there", want: Reply{Item: item(nil)},
		},
		"items/UpdateItem with UPDATED_OLD returns only the changed element of a list": {
			Why: "it returns the whole list", want: Reply{Item: Item{"l": list(num("1"), num("2"), num("3"))}},
		},
		"items/UpdateItem with UPDATED_NEW returns only the changed element of a list": {
			Why: "it returns the whole list", want: Reply{Item: Item{"l": list(num("1"), num("9"), num("3"))}},
		},
		"paths/SET beyond a list's end appends": {
			Why:  "it fills the gap with nulls",
			then: []Item{item(Item{"l": list(num("1"), null, null, null, null, null, null, num("9"))})},
		},
		"paths/two SET beyond a list's end append in the order of their indexes": {
			Why:  "it fills the gaps with nulls",
			then: []Item{item(Item{"l": list(num("1"), null, null, null, null, null, null, num("2"), null, num("9"))})},
		},
		"paths/REMOVE of several elements uses their old indexes": {
			Why: "it removes one after another", then: []Item{item(Item{"l": list(str("1"), str("2"))})},
		},
		"paths/REMOVE inside a missing map": {
			Why: "it succeeds and creates the item", then: []Item{item(nil)},
		},
		"paths/SET inside null": {
			Why: "it treats null as an empty map", then: []Item{item(Item{"m": dict(Item{"x": num("1")})})},
		},
		"paths/SET an element of null": {
			Why: "it treats null as an empty list", then: []Item{item(Item{"l": list(num("1"))})},
		},
		"sets/ADD is a union of numbers by value": {
			Why:  "it compares the numbers of a set as text",
			want: invalid("Input collection contains duplicates"), then: []Item{item(Item{"s": nums("1", "2")})},
		},
		"sets/DELETE removes numbers by value": {
			Why: "it compares the numbers of a set as text", then: []Item{item(Item{"s": nums("1", "2.5")})},
		},
		"projections/paths that contradict each other": {
			Why:  "it checks only for overlapping paths",
			want: Reply{Item: Item{"m": dict(Item{"q": dict(Item{"r": num("2"), "s": num("3")})})}},
		},
		"query/a start with a key of another hash key": {
			Why: "it reads the range key alone", want: Reply{Items: fiveAndOne()[1:5]},
		},
		"key conditions/pk = :p AND sk = :v with a number": {Why: "it returns no items instead of an error"},
		"key conditions/pk = :p with an empty string":      {Why: "it returns no items instead of an error"},
		"key conditions/begins_with rejects numbers": {
			Why: "it compares numbers as text", want: Reply{Items: numbered("1")},
		},
		"scan/a limit below one": {
			Why: "it cannot read the number", want: Reply{Err: &Fault{Code: "SerializationException"}},
		},
		"transactions/TransactGetItems with a projection": {
			Why: "it returns the key as well", want: Reply{Items: []Item{item(Item{"y": num("2")})}},
		},
		"transactions/a syntax error": {
			Why: "it parses expressions only after it has begun the transaction", want: canceled(reason("Expected operand, got end of expression")),
		},
		"transactions/a placeholder that is not defined": {
			Why:  "it parses expressions only after it has begun the transaction",
			want: canceled(reason("An expression attribute value used in expression is not defined; attribute value: :v")),
		},
		"cancellations/an update that does not fit the item is a reason": {
			Why: "its error text differs", want: canceled(Reason{Code: "None"}, reason("Operands for + must be numbers")),
		},
		"ttl/turning TTL on twice":           {Why: "it accepts a setting that changes nothing", want: Reply{Detail: "expires true"}},
		"ttl/turning TTL off when it is off": {Why: "it accepts a setting that changes nothing", want: Reply{Detail: "expires false"}},
		"capacity/reading one attribute of 9 KB": {
			Why: "it counts the size of the reply, not of the item that it read", want: Reply{Item: item(nil), Capacity: 1},
		},
		"expression errors/condition x = x":                         {Why: "it compares an attribute with itself", want: conditionFailed(nil)},
		"expression errors/condition attribute_type(x, :n)":         {Why: "it accepts any value as the name of a type", want: conditionFailed(nil)},
		"expression errors/IN rejects more than a hundred operands": {Why: "it has no limit", want: conditionFailed(nil)},
		"expression errors/booleans have no order":                  {Why: "it treats the comparison as false", want: conditionFailed(nil)},
		"expression errors/nulls have no order":                     {Why: "it treats the comparison as false", want: conditionFailed(nil)},
		"expression errors/lists have no order":                     {Why: "it treats the comparison as false", want: conditionFailed(nil)},
		"limits/an update to 400 KB": {
			Why:  "it adds AWS's cost of an update to the whole item instead of to the attributes that the update writes",
			want: invalid("Item size to update has exceeded the maximum allowed size"),
		},
	}
}
