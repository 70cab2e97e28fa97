package conformance

// placeholderErrorCases returns the cases for requests with a placeholder that is used but not
// defined, or defined but not used.
func placeholderErrorCases() []Case {
	one := Item{":v": num("1")}
	return []Case{
		{
			Name: "a value that is not defined in an update",
			When: Update{Do: "SET x = :w", Values: one},
			Want: invalid("Invalid UpdateExpression: An expression attribute value used in expression is not defined; attribute value: :w"),
		},
		{
			Name: "a value that is not defined in a condition",
			When: Put{If: "x = :w"},
			Want: invalid("Invalid ConditionExpression: An expression attribute value used in expression is not defined; attribute value: :w"),
		},
		{
			Name: "a value that is not defined in a key condition",
			When: Query{Where: "pk = :w"},
			Want: invalid("Invalid KeyConditionExpression: An expression attribute value used in expression is not defined; attribute value: :w"),
		},
		{
			Name: "a name that is not defined in an update",
			When: Update{Do: "REMOVE #w"},
			Want: invalid("Invalid UpdateExpression: An expression attribute name used in the document path is not defined; attribute name: #w"),
		},
		{
			Name: "a name that is not defined in a condition",
			When: Put{If: "attribute_exists(#w)"},
			Want: invalid("Invalid ConditionExpression: An expression attribute name used in the document path is not defined; attribute name: #w"),
		},
		{
			Name: "a name that is not defined in a projection",
			When: Get{Project: "#w"},
			Want: invalid("Invalid ProjectionExpression: An expression attribute name used in the document path is not defined; attribute name: #w"),
		},
		{
			Name: "a name that is not defined in a filter",
			When: Scan{Filter: "attribute_exists(#w)"},
			Want: invalid("Invalid FilterExpression: An expression attribute name used in the document path is not defined; attribute name: #w"),
		},
		{
			Name: "a value that is not used",
			When: Update{Do: "SET x = :v", Values: Item{":v": num("1"), ":w": num("2")}},
			Want: invalid("Value provided in ExpressionAttributeValues unused in expressions: keys: {:w}"),
			Then: []Item{},
		},
		{
			Name: "a name that is not used",
			When: Update{Do: "REMOVE x", Names: Names{"#w": "y"}},
			Want: invalid("Value provided in ExpressionAttributeNames unused in expressions: keys: {#w}"),
			Then: []Item{},
		},
		{
			Name:  "a value used in the condition alone is used",
			Given: []Item{item(Item{"x": num("1")})},
			When:  Update{Do: "REMOVE x", If: "x = :v", Values: one},
			Then:  []Item{item(nil)},
		},
		{
			Name: "values without an expression",
			When: Put{Values: one},
			Want: invalid("ExpressionAttributeValues can only be specified when using expressions…"),
		},
		{
			Name: "names without an expression",
			When: Get{Names: Names{"#x": "x"}},
			Want: invalid("ExpressionAttributeNames can only be specified when using expressions"),
		},
		{
			Name: "no values at all",
			When: Update{Do: "REMOVE x", Values: Item{}},
			Want: invalid("ExpressionAttributeValues must not be empty"),
		},
		{
			Name: "no names at all",
			When: Update{Do: "REMOVE x", Names: Names{}},
			Want: invalid("ExpressionAttributeNames must not be empty"),
		},
		{
			Name: "a value without its colon",
			When: Update{Do: "SET x = :v", Values: Item{"v": num("1")}},
			Want: invalid("ExpressionAttributeValues contains invalid key: Syntax error; key: \"v\""),
		},
		{
			Name: "a name without its number sign",
			When: Update{Do: "REMOVE #x", Names: Names{"x": "y"}},
			Want: invalid("ExpressionAttributeNames contains invalid key: Syntax error; key: \"x\""),
		},
	}
}
