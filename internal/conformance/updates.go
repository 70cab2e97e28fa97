package conformance

// updateCases returns the cases for the actions of an update expression.
func updateCases() []Case {
	one, two := num("1"), num("2")
	return []Case{
		update("SET sets a new attribute", nil, "SET x = :one", Item{":one": one}, Item{"x": one}),
		update("SET replaces an attribute by one of another type", Item{"x": str("s")}, "SET x = :one", Item{":one": one}, Item{"x": one}),
		update("SET sets several", Item{"x": two}, "SET x = :one, y = :two", Item{":one": one, ":two": two}, Item{"x": one, "y": two}),
		update("SET copies another attribute", Item{"x": list(one)}, "SET y = x", nil, Item{"x": list(one), "y": list(one)}),
		update("every operand is read before anything is written", Item{"x": one, "y": two}, "SET x = y, y = x", nil, Item{"x": two, "y": one}),
		update("SET reads what REMOVE removes", Item{"x": one}, "REMOVE x SET y = x", nil, Item{"y": one}),
		update("keywords may be in lower case", Item{"x": one}, "set y = :two Remove x", Item{":two": two}, Item{"y": two}),
		update("clauses come in any order", Item{"x": one, "n": one, "s": strs("a", "b")},
			"DELETE s :a ADD n :two REMOVE x SET y = :two", Item{":a": strs("a"), ":two": two},
			Item{"n": num("3"), "s": strs("b"), "y": two}),
		update("if_not_exists returns its default if the attribute is missing", nil, "SET x = if_not_exists(x, :one)", Item{":one": one}, Item{"x": one}),
		update("if_not_exists returns an attribute that exists", Item{"x": two}, "SET x = if_not_exists(x, :one)", Item{":one": one}, Item{"x": two}),
		update("if_not_exists may read another attribute", Item{"y": two}, "SET x = if_not_exists(y, :one)", Item{":one": one}, Item{"x": two, "y": two}),
		update("if_not_exists may nest", Item{"z": two}, "SET x = if_not_exists(x, if_not_exists(z, :one))", Item{":one": one}, Item{"x": two, "z": two}),
		update("if_not_exists takes part in a sum", nil, "SET x = if_not_exists(x, :one) + :two", Item{":one": one, ":two": two}, Item{"x": num("3")}),
		update("list_append appends", Item{"l": list(one)}, "SET l = list_append(l, :l)", Item{":l": list(two, one)}, Item{"l": list(one, two, one)}),
		update("list_append prepends", Item{"l": list(one)}, "SET l = list_append(:l, l)", Item{":l": list(two)}, Item{"l": list(two, one)}),
		update("list_append starts a list with if_not_exists", nil, "SET l = list_append(if_not_exists(l, :none), :l)",
			Item{":none": list(), ":l": list(one)}, Item{"l": list(one)}),
		update("REMOVE removes", Item{"x": one, "y": two}, "REMOVE x", nil, Item{"y": two}),
		update("REMOVE of a missing attribute succeeds", Item{"y": two}, "REMOVE x, z", nil, Item{"y": two}),
		update("REMOVE of nothing creates an item of its key", nil, "REMOVE x", nil, nil),
		update("names stand for attributes on both sides", Item{"status": one}, "SET #a = #b REMOVE #b", nil, Item{"count": one}).
			named(Names{"#a": "count", "#b": "status"}),
		updateFails("list_append of a value that is not a list", Item{"x": one}, "SET x = list_append(x, :l)", Item{":l": list(one)},
			"An operand in the update expression has an incorrect data type"),
		updateFails("list_append of a missing attribute", nil, "SET x = list_append(x, :l)", Item{":l": list(one)},
			"The provided expression refers to an attribute that does not exist in the item"),
		updateFails("SET from a missing attribute", Item{"x": one}, "SET x = y", nil,
			"The provided expression refers to an attribute that does not exist in the item"),
		updateFails("the hash key cannot be set", nil, "SET pk = :one", Item{":one": str("b")},
			"One or more parameter values were invalid: Cannot update attribute pk. This attribute is part of the key"),
		updateFails("the hash key cannot be removed", nil, "REMOVE pk", nil,
			"One or more parameter values were invalid: Cannot update attribute pk. This attribute is part of the key"),
		updateFails("the hash key cannot be added to", nil, "ADD pk :one", Item{":one": one},
			"One or more parameter values were invalid: Cannot update attribute pk. This attribute is part of the key"),
		{
			Name:  "the range key cannot be set",
			Table: rangeKey,
			When:  Update{Key: key("a", "1"), Do: "SET sk = :v", Values: Item{":v": str("2")}},
			Want:  invalid("One or more parameter values were invalid: Cannot update attribute sk. This attribute is part of the key"),
			Then:  []Item{},
		},
		{
			Name:  "an update that fails halfway changes nothing",
			Given: []Item{item(Item{"x": str("s")})},
			When:  Update{Do: "SET y = :one, x = x + :one", Values: Item{":one": one}},
			Want:  invalid("An operand in the update expression has an incorrect data type"),
			Then:  []Item{item(Item{"x": str("s")})},
		},
	}
}

// pathCases returns the cases for updates of elements inside lists and maps.
func pathCases() []Case {
	one, two, nine := num("1"), num("2"), num("9")
	missing := "The document path provided in the update expression is invalid for update"
	return []Case{
		update("SET inside a map", Item{"m": dict(Item{"x": one})}, "SET m.y = :v", Item{":v": nine}, Item{"m": dict(Item{"x": one, "y": nine})}),
		update("SET deep inside", Item{"m": dict(Item{"l": list(dict(nil), dict(Item{"x": one}))})}, "SET m.l[1].x = :v", Item{":v": nine},
			Item{"m": dict(Item{"l": list(dict(nil), dict(Item{"x": nine}))})}),
		update("SET an element of a list", Item{"l": list(one, two)}, "SET l[0] = :v", Item{":v": nine}, Item{"l": list(nine, two)}),
		update("SET beyond a list's end appends", Item{"l": list(one)}, "SET l[7] = :v", Item{":v": nine}, Item{"l": list(one, nine)}),
		update("two SET beyond a list's end append in the order of their indexes", Item{"l": list(one)},
			"SET l[9] = :v, l[7] = :w", Item{":v": nine, ":w": two}, Item{"l": list(one, two, nine)}),
		update("REMOVE from a map", Item{"m": dict(Item{"x": one, "y": two})}, "REMOVE m.x", nil, Item{"m": dict(Item{"y": two})}),
		update("REMOVE of the last key of a map leaves an empty map", Item{"m": dict(Item{"x": one})}, "REMOVE m.x", nil, Item{"m": dict(nil)}),
		update("REMOVE an element shifts the rest", Item{"l": list(one, two, nine)}, "REMOVE l[0]", nil, Item{"l": list(two, nine)}),
		update("REMOVE of several elements uses their old indexes", Item{"l": list(str("0"), str("1"), str("2"), str("3"))},
			"REMOVE l[0], l[2]", nil, Item{"l": list(str("1"), str("3"))}),
		update("REMOVE beyond a list's end does nothing", Item{"l": list(one)}, "REMOVE l[5]", nil, Item{"l": list(one)}),
		update("REMOVE of a missing key of a map does nothing", Item{"m": dict(Item{"x": one})}, "REMOVE m.z", nil, Item{"m": dict(Item{"x": one})}),
		update("SET and REMOVE in different parts of one map", Item{"m": dict(Item{"x": one, "y": two})}, "SET m.x = :v REMOVE m.y", Item{":v": nine},
			Item{"m": dict(Item{"x": nine})}),
		update("a name with a dot is one attribute", Item{"m": dict(nil)}, "SET m.#n = :v", Item{":v": nine},
			Item{"m": dict(Item{"a.b": nine})}).named(Names{"#n": "a.b"}),
		update("ADD inside a map", Item{"m": dict(Item{"n": one})}, "ADD m.n :v", Item{":v": nine}, Item{"m": dict(Item{"n": num("10")})}),
		update("DELETE inside a map", Item{"m": dict(Item{"s": strs("a", "b")})}, "DELETE m.s :v", Item{":v": strs("a")}, Item{"m": dict(Item{"s": strs("b")})}),
		update("if_not_exists looks inside a map", Item{"m": dict(Item{"x": one})}, "SET m.x = if_not_exists(m.x, :v)", Item{":v": nine}, Item{"m": dict(Item{"x": one})}),
		updateFails("SET inside a missing map", nil, "SET m.x = :v", Item{":v": one}, missing),
		updateFails("SET inside a value that is not a map", Item{"m": str("s")}, "SET m.x = :v", Item{":v": one}, missing),
		updateFails("SET inside null", Item{"m": null}, "SET m.x = :v", Item{":v": one}, missing),
		updateFails("SET an element of null", Item{"l": null}, "SET l[0] = :v", Item{":v": one}, missing),
		updateFails("SET an element of a value that is not a list", Item{"l": dict(nil)}, "SET l[0] = :v", Item{":v": one}, missing),
		updateFails("SET an element of a missing list", nil, "SET l[0] = :v", Item{":v": one}, missing),
		updateFails("REMOVE inside a missing map", nil, "REMOVE m.x", nil, missing),
		updateFails("ADD inside a missing map", nil, "ADD m.x :v", Item{":v": one}, missing),
	}
}

// update returns a case in which the given update expression changes item(before) to item(after).
func update(name string, before Item, do string, values Item, after Item) Case {
	return Case{
		Name:  name,
		Given: given(before),
		When:  Update{Do: do, Values: values},
		Then:  []Item{item(after)},
	}
}

// updateFails returns a case in which DynamoDB refuses the given update expression and leaves the
// item unchanged. The parameter "text" is the expected error text.
func updateFails(name string, before Item, do string, values Item, text string) Case {
	then := given(before)
	if then == nil {
		then = []Item{}
	}
	return Case{
		Name:  name,
		Given: given(before),
		When:  Update{Do: do, Values: values},
		Want:  invalid(text),
		Then:  then,
	}
}

func given(before Item) []Item {
	if before == nil {
		return nil
	}
	return []Item{item(before)}
}

func (c Case) named(names Names) Case {
	u := c.When.(Update)
	u.Names = names
	c.When = u
	return c
}
