package conformance

// everyType returns the item on which the cases of conditionCases evaluate their conditions. The
// item has an attribute of every type.
func everyType() Item {
	return item(Item{
		"s":     str("hello"),
		"blank": str(""),
		"n":     num("10"),
		"b":     bin("bytes"),
		"t":     boolean(true),
		"nil":   null,
		"l":     list(num("1"), str("two"), dict(Item{"x": num("3")})),
		"m":     dict(Item{"x": num("1"), "deep": dict(Item{"er": str("down")})}),
		"ss":    strs("a", "b"),
		"ns":    nums("1", "2.5"),
		"bs":    bins("p", "q"),
	})
}

// conditionCases returns the cases for every comparator and function of a condition. The request is
// a DeleteItem, which succeeds if and only if the condition is true.
func conditionCases() []Case {
	var cases []Case
	for _, c := range []struct {
		condition string
		values    Item // values of the placeholders :v and :w
		holds     bool
	}{
		{"s = :v", Item{":v": str("hello")}, true},
		{"s = :v", Item{":v": str("Hello")}, false},
		{":v = s", Item{":v": str("hello")}, true},
		{"n = :v", Item{":v": num("10.0")}, true},
		{"n = :v", Item{":v": num("1E1")}, true},
		{"n = :v", Item{":v": str("10")}, false},
		{"b = :v", Item{":v": bin("bytes")}, true},
		{"t = :v", Item{":v": boolean(true)}, true},
		{"t = :v", Item{":v": boolean(false)}, false},
		{"nil = :v", Item{":v": null}, true},
		{"ss = :v", Item{":v": strs("b", "a")}, true},
		{"ns = :v", Item{":v": nums("2.5", "1")}, true},
		{"bs = :v", Item{":v": bins("q", "p")}, true},
		{"ss = :v", Item{":v": strs("a")}, false},
		{"l = :v", Item{":v": list(num("1.0"), str("two"), dict(Item{"x": num("3")}))}, true},
		{"l = :v", Item{":v": list(str("two"), num("1"), dict(Item{"x": num("3")}))}, false},
		{"m = :v", Item{":v": dict(Item{"deep": dict(Item{"er": str("down")}), "x": num("1")})}, true},
		{"m = :v", Item{":v": dict(Item{"x": num("1")})}, false},
		{"s <> :v", Item{":v": str("other")}, true},
		{"s <> :v", Item{":v": str("hello")}, false},
		{"s <> :v", Item{":v": num("1")}, true},
		{"nope = :v", Item{":v": null}, false},
		{"nope <> :v", Item{":v": str("x")}, true},
		{"nope = nope2", nil, false},
		{"n < :v", Item{":v": num("10.00001")}, true},
		{"n < :v", Item{":v": num("9")}, false},
		{"n < :v", Item{":v": num("10")}, false},
		{"n <= :v", Item{":v": num("10")}, true},
		{"n > :v", Item{":v": num("-11")}, true},
		{"n >= :v", Item{":v": num("10")}, true},
		{"n >= :v", Item{":v": num("10.1")}, false},
		{"n > :v", Item{":v": str("1")}, false},
		{"nope < :v", Item{":v": num("1")}, false},
		{"s < :v", Item{":v": str("hellp")}, true},
		{"s > :v", Item{":v": str("Zebra")}, true},
		{"s < :v", Item{":v": str("hello world")}, true},
		{"b < :v", Item{":v": bin("bytf")}, true},
		{"n BETWEEN :v AND :w", Item{":v": num("10"), ":w": num("11")}, true},
		{"n BETWEEN :v AND :w", Item{":v": num("9"), ":w": num("10")}, true},
		{"n BETWEEN :v AND :w", Item{":v": num("11"), ":w": num("12")}, false},
		{"s BETWEEN :v AND :w", Item{":v": str("a"), ":w": str("z")}, true},
		{":v BETWEEN n AND :w", Item{":v": num("11"), ":w": num("12")}, true},
		{"NOT n BETWEEN :v AND :w", Item{":v": num("11"), ":w": num("12")}, true},
		{"n IN (:v, :w)", Item{":v": num("9"), ":w": num("10.0")}, true},
		{"n IN (:v, :w)", Item{":v": num("9"), ":w": str("10")}, false},
		{"s IN (:v, :w)", Item{":v": str("hello"), ":w": num("1")}, true},
		{"nope IN (:v)", Item{":v": num("9")}, false},
		{"attribute_exists(s)", nil, true},
		{"attribute_exists(nope)", nil, false},
		{"attribute_exists(nil)", nil, true},
		{"attribute_exists(m.deep.er)", nil, true},
		{"attribute_exists(m.deep.err)", nil, false},
		{"attribute_exists(l[2].x)", nil, true},
		{"attribute_exists(l[3])", nil, false},
		{"attribute_exists(s.x)", nil, false},
		{"attribute_not_exists(nope)", nil, true},
		{"attribute_not_exists(s)", nil, false},
		{"attribute_not_exists(nope.deeper[4])", nil, true},
		{"attribute_type(s, :v)", Item{":v": str("S")}, true},
		{"attribute_type(n, :v)", Item{":v": str("N")}, true},
		{"attribute_type(b, :v)", Item{":v": str("B")}, true},
		{"attribute_type(t, :v)", Item{":v": str("BOOL")}, true},
		{"attribute_type(nil, :v)", Item{":v": str("NULL")}, true},
		{"attribute_type(l, :v)", Item{":v": str("L")}, true},
		{"attribute_type(m, :v)", Item{":v": str("M")}, true},
		{"attribute_type(ss, :v)", Item{":v": str("SS")}, true},
		{"attribute_type(ns, :v)", Item{":v": str("NS")}, true},
		{"attribute_type(bs, :v)", Item{":v": str("BS")}, true},
		{"attribute_type(s, :v)", Item{":v": str("N")}, false},
		{"attribute_type(nope, :v)", Item{":v": str("NULL")}, false},
		{"begins_with(s, :v)", Item{":v": str("hel")}, true},
		{"begins_with(s, :v)", Item{":v": str("")}, true},
		{"begins_with(s, :v)", Item{":v": str("el")}, false},
		{"begins_with(b, :v)", Item{":v": bin("by")}, true},
		{"begins_with(n, :v)", Item{":v": str("1")}, false},
		{"begins_with(nope, :v)", Item{":v": str("1")}, false},
		{"contains(s, :v)", Item{":v": str("ell")}, true},
		{"contains(s, :v)", Item{":v": str("elk")}, false},
		{"contains(b, :v)", Item{":v": bin("yte")}, true},
		{"contains(ss, :v)", Item{":v": str("b")}, true},
		{"contains(ss, :v)", Item{":v": str("c")}, false},
		{"contains(ns, :v)", Item{":v": num("2.5")}, true},
		{"contains(bs, :v)", Item{":v": bin("q")}, true},
		{"contains(l, :v)", Item{":v": str("two")}, true},
		{"contains(l, :v)", Item{":v": dict(Item{"x": num("3")})}, true},
		{"contains(l, :v)", Item{":v": num("2")}, false},
		{"contains(s, :v)", Item{":v": num("1")}, false},
		{"contains(nope, :v)", Item{":v": str("x")}, false},
		{"contains(:v, s)", Item{":v": str("say hello")}, true},
		{"size(s) = :v", Item{":v": num("5")}, true},
		{"size(blank) = :v", Item{":v": num("0")}, true},
		{"size(b) = :v", Item{":v": num("5")}, true},
		{"size(ss) = :v", Item{":v": num("2")}, true},
		{"size(l) > :v", Item{":v": num("2")}, true},
		{"size(m) < :v", Item{":v": num("3")}, true},
		{"size(m.deep.er) = :v", Item{":v": num("4")}, true},
		{"size(nope) = :v", Item{":v": num("0")}, false},
		{"size(n) = :v", Item{":v": num("2")}, false},
		{"m.x = l[0]", nil, true},
		{"l[2].x = :v", Item{":v": num("3")}, true},
		{"NOT s = :v", Item{":v": str("x")}, true},
		{"NOT NOT s = :v", Item{":v": str("hello")}, true},
		{"s = :v AND n = :w", Item{":v": str("hello"), ":w": num("10")}, true},
		{"s = :v AND n = :w", Item{":v": str("hello"), ":w": num("11")}, false},
		{"s = :v OR n = :w", Item{":v": str("x"), ":w": num("10")}, true},
		// AND binds tighter than OR, and NOT binds tighter than both.
		{"s = :v OR n = :w AND n = :w", Item{":v": str("hello"), ":w": num("11")}, true},
		{"(s = :v OR n = :w) AND n = :w", Item{":v": str("hello"), ":w": num("11")}, false},
		{"NOT s = :v AND n = :w", Item{":v": str("hello"), ":w": num("11")}, false},
		{"NOT (s = :v AND n = :w)", Item{":v": str("hello"), ":w": num("11")}, true},
		{"not attribute_exists(nope) and s = :v or n = :w", Item{":v": str("hello"), ":w": num("11")}, true},
		{"s=:v", Item{":v": str("hello")}, true},
	} {
		verdict, want, then := "holds", Reply{}, []Item{}
		if !c.holds {
			verdict, want, then = "fails", conditionFailed(nil), []Item{everyType()}
		}
		name := c.condition
		for _, p := range []string{":v", ":w"} {
			if v, ok := c.values[p]; ok {
				name += " " + p + " " + show(v)
			}
		}
		cases = append(cases, Case{
			Name:  name + " " + verdict,
			Given: []Item{everyType()},
			When:  Delete{If: c.condition, Values: c.values},
			Want:  want,
			Then:  then,
		})
	}
	return append(cases, conditionPlaceCases()...)
}

// conditionPlaceCases returns cases that show which item a condition is checked against, and which
// attribute names a condition may use.
func conditionPlaceCases() []Case {
	return []Case{
		{
			Name:  "a condition sees the item before the update",
			Given: []Item{item(Item{"n": num("1")})},
			When:  Update{Do: "SET n = :two", If: "n = :one", Values: Item{":one": num("1"), ":two": num("2")}},
			Then:  []Item{item(Item{"n": num("2")})},
		},
		{
			Name:  "a condition on the key alone sees whether the item exists",
			Table: rangeKey,
			Given: []Item{key("a", "1")},
			When:  Put{Item: key("a", "2"), If: "attribute_not_exists(pk)"},
			Then:  []Item{key("a", "1"), key("a", "2")},
		},
		{
			Name:  "a condition may use names for reserved words and dots",
			Given: []Item{item(Item{"name": str("x"), "a.b": num("1")})},
			When: Delete{
				If:    "#name = :x AND #dotted = :one",
				Names: Names{"#name": "name", "#dotted": "a.b"}, Values: Item{":x": str("x"), ":one": num("1")},
			},
			Then: []Item{},
		},
		{
			Name:  "a name may stand for one step of a path",
			Given: []Item{item(Item{"m": dict(Item{"status": list(num("7"))})})},
			When: Delete{
				If:    "m.#s[0] = :v",
				Names: Names{"#s": "status"}, Values: Item{":v": num("7")},
			},
			Then: []Item{},
		},
		{
			Name: "a comparison with a missing item is false",
			When: Update{Do: "SET n = :v", If: "n = :v", Values: Item{":v": num("1")}},
			Want: conditionFailed(nil),
			Then: []Item{},
		},
	}
}
