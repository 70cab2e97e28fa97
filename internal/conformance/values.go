package conformance

// valueCases returns the cases for the values that DynamoDB stores unchanged, and for the values
// that it refuses.
func valueCases() []Case {
	bad := "One or more parameter values were invalid: "
	return []Case{
		kept("every type", everyType()),
		kept("an empty string", item(Item{"x": str("")})),
		kept("an empty binary", item(Item{"x": bin("")})),
		kept("an empty list", item(Item{"x": list()})),
		kept("an empty map", item(Item{"x": dict(Item{})})),
		kept("empty values inside", item(Item{"x": list(str(""), bin(""), list(), dict(Item{"e": str("")}))})),
		kept("an empty string in a set", item(Item{"x": strs("", "a")})),
		kept("every byte", item(Item{"x": bin("\x00\x01\x7f\x80\xfe\xff")})),
		kept("text of every plane", item(Item{"x": str("ä€𝄞\u0000\n\"\\\u2028")})),
		kept("names of any text", item(Item{"ä b.c[0]#:": num("1"), "-": num("2")})),
		kept("a set as it was put, in any order", item(Item{"x": nums("3", "1", "2")})),
		kept("lists of many types", item(Item{"x": list(null, boolean(false), strs("a"), list(list(num("1"))))})),
		{
			Name:  "a binary key is found by its bytes",
			Table: binaryHashKey,
			Given: []Item{{"pk": bin("\x00\xff"), "x": num("1")}, {"pk": bin("\x00"), "x": num("2")}},
			When:  Get{Key: Item{"pk": bin("\x00\xff")}},
			Want:  Reply{Item: Item{"pk": bin("\x00\xff"), "x": num("1")}},
		},
		{
			Name:  "binary keys are in the order of unsigned bytes",
			Table: binaryRange,
			Given: []Item{binaryKeyed("\xff"), binaryKeyed("\x00"), binaryKeyed("\x7f"), binaryKeyed("\x00\x00")},
			When:  Query{Where: "pk = :p", Values: Item{":p": str("a")}},
			Want:  Reply{Items: []Item{binaryKeyed("\x00"), binaryKeyed("\x00\x00"), binaryKeyed("\x7f"), binaryKeyed("\xff")}},
		},
		{
			Name:  "strings are in the order of their UTF-8 bytes",
			Table: rangeKey,
			Given: []Item{key("a", "𝄞"), key("a", "\uffff"), key("a", "b"), key("a", "B"), key("a", "ä")},
			When:  Query{Where: "pk = :p", Values: Item{":p": str("a")}},
			Want:  Reply{Items: []Item{key("a", "B"), key("a", "b"), key("a", "ä"), key("a", "\uffff"), key("a", "𝄞")}},
		},
		{
			Name: "an empty set of strings",
			When: Put{Item: item(Item{"x": strs()})},
			Want: invalid(bad + "An string set  may not be empty"),
			Then: []Item{},
		},
		{
			Name: "an empty set of numbers",
			When: Put{Item: item(Item{"x": nums()})},
			Want: invalid(bad + "An number set  may not be empty"),
			Then: []Item{},
		},
		{
			Name: "an empty set of binaries",
			When: Put{Item: item(Item{"x": bins()})},
			Want: invalid(bad + "Binary sets should not be empty"),
			Then: []Item{},
		},
		{
			Name: "a set with a string twice",
			When: Put{Item: item(Item{"x": strs("a", "b", "a")})},
			Want: invalid(bad + "Input collection [… contains duplicates…"),
			Then: []Item{},
		},
		{
			Name: "a set with a binary twice",
			When: Put{Item: item(Item{"x": bins("b", "b")})},
			Want: invalid(bad + "Input collection …of type BS contains duplicates."),
			Then: []Item{},
		},
		{
			Name: "an empty set in an expression's values",
			When: Update{Do: "SET x = :x", Values: Item{":x": strs()}},
			Want: invalid("ExpressionAttributeValues contains invalid value: " + bad + "An string set  may not be empty for key :x"),
			Then: []Item{},
		},
		{
			Name: "an invalid number in an expression's values",
			When: Update{Do: "SET x = :x", Values: Item{":x": num("x")}},
			Want: invalid("ExpressionAttributeValues contains invalid value: The parameter cannot be converted to a numeric value: x for key :x"),
			Then: []Item{},
		},
	}
}

// kept returns a case that stores an item, and then reads the same item back.
func kept(name string, whole Item) Case {
	return Case{Name: name + " is kept", Given: []Item{whole}, When: Get{}, Want: Reply{Item: whole}, Then: []Item{whole}}
}

func binaryKeyed(sk string) Item { return Item{"pk": str("a"), "sk": bin(sk)} }
