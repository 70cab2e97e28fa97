package conformance

// projectionCases returns the cases for projection expressions.
func projectionCases() []Case {
	given := item(Item{
		"x": num("1"), "y": str("2"), "name": str("reserved"), "a.b": str("dotted"),
		"m": dict(Item{"p": num("1"), "q": dict(Item{"r": num("2"), "s": num("3")})}),
		"l": list(str("0"), dict(Item{"z": num("1"), "w": num("2")}), str("2"), list(str("3.0"), str("3.1"))),
	})
	get := func(name, project string, want Item) Case {
		return Case{Name: name, Given: []Item{given}, When: Get{Project: project}, Want: Reply{Item: want}}
	}
	withNames := func(c Case, names Names) Case {
		g := c.When.(Get)
		g.Names = names
		c.When = g
		return c
	}
	return []Case{
		get("one attribute", "x", Item{"x": num("1")}),
		get("several attributes, not the key", "x, y", Item{"x": num("1"), "y": str("2")}),
		get("the key if asked for", "pk,x", Item{"pk": str("a"), "x": num("1")}),
		get("missing attributes are left out", "x, nope, m.nope, l[9], y.deeper", Item{"x": num("1")}),
		get("nothing of an item is an empty item", "nope", nil),
		get("part of a map", "m.q.r", Item{"m": dict(Item{"q": dict(Item{"r": num("2")})})}),
		get("parts of a map are put together", "m.q.r, m.p", Item{"m": dict(Item{"p": num("1"), "q": dict(Item{"r": num("2")})})}),
		get("an element of a list", "l[2]", Item{"l": list(str("2"))}),
		get("elements of a list keep their order", "l[3][1], l[0]", Item{"l": list(str("0"), list(str("3.1")))}),
		get("part of an element", "l[1].w", Item{"l": list(dict(Item{"w": num("2")}))}),
		withNames(get("names for reserved words and dots", "#n, #d, m.#p", Item{"name": str("reserved"), "a.b": str("dotted"), "m": dict(Item{"p": num("1")})}),
			Names{"#n": "name", "#d": "a.b", "#p": "p"}),
		{
			Name: "a missing item has no attributes",
			When: Get{Project: "x"},
		},
		{
			Name:  "a projection of a query",
			Table: rangeKey,
			Given: []Item{keyed("a", "1", Item{"x": num("1"), "y": num("2")}), keyed("a", "2", Item{"y": num("3")})},
			When:  Query{Where: "pk = :p", Values: Item{":p": str("a")}, Project: "sk, x"},
			Want:  Reply{Items: []Item{{"sk": str("1"), "x": num("1")}, {"sk": str("2")}}},
		},
		{
			Name:  "a projection of a scan",
			Given: []Item{item(Item{"x": num("1"), "y": num("2")})},
			When:  Scan{Project: "x"},
			Want:  Reply{Items: []Item{{"x": num("1")}}},
		},
		{
			Name:  "a filter sees what a projection leaves out",
			Given: []Item{item(Item{"x": num("1"), "y": num("2")})},
			When:  Scan{Project: "x", Filter: "y = :y", Values: Item{":y": num("2")}},
			Want:  Reply{Items: []Item{{"x": num("1")}}},
		},
		{
			Name:  "overlapping paths",
			Given: []Item{given},
			When:  Get{Project: "m.q, m"},
			Want:  invalid("Invalid ProjectionExpression: Two document paths overlap with each other; must remove or rewrite one of these paths; path one: [m, q], path two: [m]"),
		},
		{
			Name:  "the same path twice",
			Given: []Item{given},
			When:  Get{Project: "x, x"},
			Want:  invalid("Invalid ProjectionExpression: Two document paths overlap with each other; must remove or rewrite one of these paths; path one: [x], path two: [x]"),
		},
		{
			Name:  "paths that contradict each other",
			Given: []Item{given},
			When:  Get{Project: "m.q, m[0]"},
			Want:  invalid("Invalid ProjectionExpression: Two document paths conflict with each other; must remove or rewrite one of these paths; path one: [m, q], path two: [m, [0]]"),
		},
		{
			Name:  "a function is not a path",
			Given: []Item{given},
			When:  Get{Project: "begins_with(x)"},
			Want:  invalid("Invalid ProjectionExpression: Syntax error; token: \"(\", near: \"begins_with(x\""),
		},
	}
}
