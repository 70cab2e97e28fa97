package conformance

// cancellationCases returns the cases for cancelled transactions, and for the cancellation reasons
// in the errors of these transactions.
func cancellationCases() []Case {
	a, b := item(Item{"x": num("1")}), keyedHash("b", Item{"x": num("3")})
	keyB := keyedHash("b", nil)
	none := Reason{Code: "None"}
	failed := func(old Item) Reason {
		return Reason{Code: "ConditionalCheckFailed", Text: "The conditional request failed", Item: old}
	}
	return []Case{
		{
			Name:  "one failed condition stops every write",
			Given: []Item{a, b},
			When: TransactWrite{Writes: []Request{
				Update{Do: "SET x = :v", Values: Item{":v": num("9")}},
				Delete{Key: keyB, If: "x = :v", Values: Item{":v": num("4")}},
			}},
			Want: canceled(none, failed(nil)),
			Then: []Item{a, b},
		},
		{
			Name:  "every failed condition is named, with the requested items",
			Given: []Item{a, b},
			When: TransactWrite{Writes: []Request{
				Put{If: "attribute_not_exists(pk)", OldIfFail: true},
				Put{Item: keyedHash("c", nil)},
				Check{Key: keyB, If: "x = :v", Values: Item{":v": num("4")}, OldIfFail: true},
				Update{Key: keyedHash("d", nil), Do: "REMOVE x", If: "attribute_exists(pk)", OldIfFail: true},
				Delete{Key: keyedHash("e", nil), If: "attribute_exists(pk)"},
			}},
			Want: canceled(failed(a), none, failed(b), failed(nil), failed(nil)),
			Then: []Item{a, b},
		},
		{
			Name:  "a failed condition of a delete returns the item when asked to",
			Given: []Item{a},
			When:  TransactWrite{Writes: []Request{Delete{If: "x = :v", Values: Item{":v": num("2")}, OldIfFail: true}}},
			Want:  canceled(failed(a)),
			Then:  []Item{a},
		},
		{
			Name:  "a failed check alone cancels the transaction",
			Given: []Item{a},
			When:  TransactWrite{Writes: []Request{Check{If: "x = :v", Values: Item{":v": num("2")}}, Put{Item: keyB}}},
			Want:  canceled(failed(nil), none),
			Then:  []Item{a},
		},
		{
			Name:  "an update that does not fit the item is a reason",
			Given: []Item{item(Item{"x": str("s")})},
			When: TransactWrite{Writes: []Request{
				Put{Item: keyB},
				Update{Do: "SET x = x + :v", Values: Item{":v": num("1")}},
			}},
			Want: canceled(none, Reason{Code: "ValidationError", Text: "An operand in the update expression has an incorrect data type"}),
			Then: []Item{item(Item{"x": str("s")})},
		},
		{
			Name: "an update inside a missing map is a reason",
			When: TransactWrite{Writes: []Request{Update{Do: "SET m.x = :v", Values: Item{":v": num("1")}}}},
			Want: canceled(Reason{Code: "ValidationError", Text: "The document path provided in the update expression is invalid for update"}),
			Then: []Item{},
		},
		{
			Name: "a key of another type is a reason",
			When: TransactWrite{Writes: []Request{Put{Item: keyB}, Put{Item: Item{"pk": num("1")}}}},
			Want: canceled(none, Reason{Code: "ValidationError", Text: "One or more parameter values were invalid: Type mismatch for key pk expected: S actual: N"}),
			Then: []Item{},
		},
		{
			Name:   "a cancelled transaction leaves its token free",
			Given:  []Item{item(Item{"n": num("1")})},
			Before: []Request{refused{TransactWrite{Token: "token", Writes: []Request{Update{Do: "ADD n :v", If: "n = :w", Values: Item{":v": num("1"), ":w": num("2")}}}}}, setN("2", "")},
			When:   TransactWrite{Token: "token", Writes: []Request{Update{Do: "ADD n :v", If: "n = :w", Values: Item{":v": num("1"), ":w": num("2")}}}},
			Then:   []Item{item(Item{"n": num("3")})},
		},
		Case{
			Name: "an unknown table",
			When: TransactWrite{Writes: []Request{Put{}}},
			Want: notFound("Requested resource not found"),
		}.elsewhere(),
	}
}
