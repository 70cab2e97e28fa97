package conformance

// transactionCases returns the cases for transactions that succeed, for idempotency tokens, and for
// invalid transactions.
func transactionCases() []Case {
	a, b := item(Item{"x": num("1"), "y": num("2")}), keyedHash("b", Item{"x": num("3")})
	keyB, keyC := keyedHash("b", nil), keyedHash("c", nil)
	increment := func(token string, by string) Request {
		return TransactWrite{Token: token, Writes: []Request{Update{Do: "ADD n :v", Values: Item{":v": num(by)}}}}
	}
	return []Case{
		{
			Name:  "all four kinds of write in one transaction",
			Given: []Item{a, b},
			When: TransactWrite{Writes: []Request{
				Update{Do: "SET x = :v", Values: Item{":v": num("9")}},
				Delete{Key: keyB},
				Put{Item: keyedHash("d", nil)},
				Check{Key: keyC, If: "attribute_not_exists(pk)"},
			}},
			Then: []Item{item(Item{"x": num("9"), "y": num("2")}), keyedHash("d", nil)},
		},
		{
			Name:  "conditions that hold",
			Given: []Item{a, b},
			When: TransactWrite{Writes: []Request{
				Put{Item: item(nil), If: "x = :v", Values: Item{":v": num("1")}},
				Delete{Key: keyB, If: "#x = :v", Names: Names{"#x": "x"}, Values: Item{":v": num("3")}},
			}},
			Then: []Item{item(nil)},
		},
		{
			Name: "a hundred writes",
			When: TransactWrite{Writes: puts(manyKeys(100))},
			Then: manyKeys(100),
		},
		{
			Name:   "a token used again with the same request succeeds without effect",
			Before: []Request{increment("token", "1")},
			When:   increment("token", "1"),
			Then:   []Item{item(Item{"n": num("1")})},
		},
		{
			Name:   "a token used again depends on the request, not on the table",
			Before: []Request{increment("token", "1"), setN("50", "")},
			When:   increment("token", "1"),
			Then:   []Item{item(Item{"n": num("50")})},
		},
		{
			Name:   "another token is another transaction",
			Before: []Request{increment("token", "1")},
			When:   increment("other", "1"),
			Then:   []Item{item(Item{"n": num("2")})},
		},
		{
			Name:   "a token used again with another request",
			Before: []Request{increment("token", "1")},
			When:   increment("token", "2"),
			Want:   Reply{Err: &Fault{Code: "IdempotentParameterMismatchException"}},
			Then:   []Item{item(Item{"n": num("1")})},
		},
		{
			Name: "a token over 36 characters",
			When: increment("0123456789012345678901234567890123456", "1"),
			Want: invalid("1 validation error detected: Value '0123456789012345678901234567890123456' at 'clientRequestToken' failed to satisfy constraint: Member must have length less than or equal to 36"),
			Then: []Item{},
		},
		{
			Name:  "TransactGetItems returns items in the order asked for",
			Given: []Item{a, b},
			When:  TransactGet{{Key: keyB}, {Key: keyC}, {}},
			Want:  Reply{Items: []Item{b, nil, a}},
		},
		{
			Name:  "TransactGetItems with a projection",
			Given: []Item{a},
			When:  TransactGet{{Project: "#n", Names: Names{"#n": "y"}}},
			Want:  Reply{Items: []Item{{"y": num("2")}}},
		},
		{
			Name: "TransactGetItems of a hundred items",
			When: TransactGet(gets(manyKeys(100))),
			Want: Reply{Items: make([]Item, 100)},
		},
		{
			Name: "TransactGetItems of 101 items",
			When: TransactGet(gets(manyKeys(101))),
			Want: invalid("1 validation error detected: Value '…' at 'transactItems' failed to satisfy constraint: Member must have length less than or equal to 100"),
		},
		{
			Name: "TransactGetItems of one item twice",
			When: TransactGet{{}, {}},
			Want: invalid("Transaction request cannot include multiple operations on one item"),
		},
		{
			Name: "101 writes",
			When: TransactWrite{Writes: puts(manyKeys(101))},
			Want: invalid("1 validation error detected: Value '…' at 'transactItems' failed to satisfy constraint: Member must have length less than or equal to 100"),
			Then: []Item{},
		},
		{
			Name: "two writes of one item",
			When: TransactWrite{Writes: []Request{Put{}, Update{Do: "REMOVE x"}}},
			Want: invalid("Transaction request cannot include multiple operations on one item"),
			Then: []Item{},
		},
		{
			Name: "a check and a write of one item",
			When: TransactWrite{Writes: []Request{Check{If: "attribute_not_exists(pk)"}, Put{}}},
			Want: invalid("Transaction request cannot include multiple operations on one item"),
			Then: []Item{},
		},
		{
			Name: "a syntax error",
			When: TransactWrite{Writes: []Request{Put{If: "x ="}}},
			Want: invalid("Invalid ConditionExpression: Syntax error; token: \"<EOF>\", near: \"=\""),
			Then: []Item{},
		},
		{
			Name: "a placeholder that is not defined",
			When: TransactWrite{Writes: []Request{Put{If: "x = :v"}}},
			Want: invalid("Invalid ConditionExpression: An expression attribute value used in expression is not defined; attribute value: :v"),
			Then: []Item{},
		},
	}
}

func puts(items []Item) []Request {
	var all []Request
	for _, i := range items {
		all = append(all, Put{Item: i})
	}
	return all
}

func gets(keys []Item) []Get {
	var all []Get
	for _, k := range keys {
		all = append(all, Get{Key: k})
	}
	return all
}
