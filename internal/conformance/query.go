package conformance

import "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

// fiveAndOne returns five items with the hash key "a", and one item with another hash key.
func fiveAndOne() []Item {
	return []Item{
		keyed("a", "1", Item{"n": num("10")}), keyed("a", "2", Item{"n": num("20")}), keyed("a", "3", Item{"n": num("30")}),
		keyed("a", "4", Item{"n": num("40")}), keyed("a", "5", Item{"n": num("50")}), keyed("b", "1", Item{"n": num("60")}),
	}
}

// queryCases returns the cases for the order, the pages and the filters of a Query.
func queryCases() []Case {
	all := fiveAndOne()
	a := Item{":p": str("a")}
	query := func(name string, q Query, want Reply) Case {
		q.Where = "pk = :p"
		if q.Values == nil {
			q.Values = a
		}
		return Case{Name: name, Table: rangeKey, Given: all, When: q, Want: want}
	}
	return []Case{
		query("all of a hash key, in order", Query{}, Reply{Items: all[:5]}),
		query("backward", Query{Backward: true}, Reply{Items: []Item{all[4], all[3], all[2], all[1], all[0]}}),
		query("eventually consistent", Query{Eventual: true}, Reply{Items: all[:5]}),
		query("a hash key without items", Query{Values: Item{":p": str("none")}}, Reply{}),
		query("a page ends at the limit", Query{Limit: 2}, Reply{Items: all[:2], Last: key("a", "2")}),
		query("a page begins after its start key", Query{Limit: 2, Start: key("a", "2")}, Reply{Items: all[2:4], Last: key("a", "4")}),
		query("the last page has no last key", Query{Limit: 2, Start: key("a", "4")}, Reply{Items: all[4:5]}),
		query("a page that the limit ends exactly has a last key", Query{Limit: 5}, Reply{Items: all[:5], Last: key("a", "5")}),
		query("a page after the last is empty", Query{Start: key("a", "5")}, Reply{}),
		query("a page may start with a missing key", Query{Start: key("a", "25")}, Reply{Items: all[2:5]}),
		query("a page backward", Query{Backward: true, Limit: 2, Start: key("a", "4")}, Reply{Items: []Item{all[2], all[1]}, Last: key("a", "2")}),
		query("a filter leaves items out", Query{Filter: "n > :n", Values: Item{":p": str("a"), ":n": num("30")}},
			Reply{Items: all[3:5], Scanned: 5}),
		query("the limit counts items before the filter", Query{Filter: "n > :n", Limit: 4, Values: Item{":p": str("a"), ":n": num("30")}},
			Reply{Items: all[3:4], Scanned: 4, Last: key("a", "4")}),
		query("a page can be empty and not the last", Query{Filter: "n > :n", Limit: 2, Values: Item{":p": str("a"), ":n": num("30")}},
			Reply{Scanned: 2, Last: key("a", "2")}),
		query("a count has no items", Query{Select: types.SelectCount}, Reply{Count: 5}),
		query("a count with a filter", Query{Select: types.SelectCount, Filter: "n > :n", Values: Item{":p": str("a"), ":n": num("30")}},
			Reply{Count: 2, Scanned: 5}),
		query("a count with a limit", Query{Select: types.SelectCount, Limit: 3}, Reply{Count: 3, Last: key("a", "3")}),
		query("all attributes by name", Query{Select: types.SelectAllAttributes}, Reply{Items: all[:5]}),
		query("a filter may not use the range key", Query{Filter: "sk > :n", Values: Item{":p": str("a"), ":n": str("3")}},
			invalid("Filter Expression can only contain non-primary key attributes: Primary key attribute: sk")),
		query("a filter may not use the hash key", Query{Filter: "pk = :p"},
			invalid("Filter Expression can only contain non-primary key attributes: Primary key attribute: pk")),
		query("a start with half a key", Query{Start: Item{"pk": str("a")}}, invalid("The provided starting key is invalid…")),
		query("a start with a key of another hash key", Query{Start: key("b", "1")},
			invalid("The provided starting key is outside query boundaries based on provided conditions")),
		query("a count with a projection", Query{Select: types.SelectCount, Project: "n"},
			invalid("Cannot specify the ProjectionExpression when choosing to get only the Count")),
		{
			Name:  "a table without range key has one item of each hash key",
			Given: []Item{item(Item{"x": num("1")}), keyedHash("b", nil)},
			When:  Query{Where: "pk = :p", Values: a},
			Want:  Reply{Items: []Item{item(Item{"x": num("1")})}},
		},
	}
}

// keyConditionCases returns the cases for the key conditions that a Query may have.
func keyConditionCases() []Case {
	all := fiveAndOne()
	query := func(where string, values Item, want Reply) Case {
		v := Item{":p": str("a")}
		for name, value := range values {
			v[name] = value
		}
		return Case{Name: where, Table: rangeKey, Given: all, When: Query{Where: where, Values: v}, Want: want}
	}
	two, four := Item{":v": str("2")}, Item{":v": str("2"), ":w": str("4")}
	unsupported := invalid("Query key condition not supported")
	return []Case{
		query("pk = :p AND sk = :v", two, Reply{Items: all[1:2]}),
		query("pk = :p AND sk < :v", two, Reply{Items: all[:1]}),
		query("pk = :p AND sk <= :v", two, Reply{Items: all[:2]}),
		query("pk = :p AND sk > :v", two, Reply{Items: all[2:5]}),
		query("pk = :p AND sk >= :v", two, Reply{Items: all[1:5]}),
		query("pk = :p AND sk BETWEEN :v AND :w", four, Reply{Items: all[1:4]}),
		query("pk = :p AND begins_with(sk, :v)", two, Reply{Items: all[1:2]}),
		query("sk > :v AND pk = :p", two, Reply{Items: all[2:5]}),
		query(":p = pk AND :v < sk", two, Reply{Items: all[2:5]}),
		query("(pk = :p) and (sk = :v)", two, Reply{Items: all[1:2]}),
		query("pk = :p AND sk <> :v", two, invalid("Invalid operator used in KeyConditionExpression: <>")),
		query("pk = :p OR sk = :v", two, invalid("Invalid operator used in KeyConditionExpression: OR")),
		query("pk = :p AND NOT sk = :v", two, invalid("Invalid operator used in KeyConditionExpression: NOT")),
		query("pk = :p AND sk IN (:v)", two, invalid("Invalid operator used in KeyConditionExpression: IN")),
		query("pk = :p AND contains(sk, :v)", two, invalid("Invalid operator used in KeyConditionExpression: contains")),
		query("pk > :p", nil, unsupported),
		query("begins_with(pk, :p)", nil, unsupported),
		{
			Name:  "sk = :v",
			Table: rangeKey,
			When:  Query{Where: "sk = :v", Values: two},
			Want:  invalid("Query condition missed key schema element: pk"),
		},
		query("pk = :p AND n = :v", two, invalid("Query condition missed key schema element: sk")),
		query("pk = :p AND sk > :v AND sk < :w", four, invalid("KeyConditionExpressions must only contain one condition per key")),
		query("pk = :p AND sk = :v AND n = :w", four, invalid("Conditions can be of length 1 or 2 only")),
		query("pk = :p AND sk BETWEEN :w AND :v", four,
			invalid("Invalid KeyConditionExpression: The BETWEEN operator requires upper bound to be greater than or equal to lower bound; lower bound operand: AttributeValue: {S:4}, upper bound operand: AttributeValue: {S:2}")),
		query("pk = :p AND sk = :v with a number", Item{":v": num("2")},
			invalid("One or more parameter values were invalid: Condition parameter type does not match schema type")).where("pk = :p AND sk = :v"),
		query("pk = :p with an empty string", Item{":p": str("")},
			invalid("One or more parameter values are not valid. The AttributeValue for a key attribute cannot contain an empty string value. Key: pk")).where("pk = :p"),
		query("#k = :p AND #r = :v", two, Reply{Items: all[1:2]}).queryNames(Names{"#k": "pk", "#r": "sk"}),
		{
			Name:  "without a key condition",
			Table: rangeKey,
			When:  Query{},
			Want:  invalid("Either the KeyConditions or KeyConditionExpression parameter must be specified in the request."),
		},
		{
			Name:  "BETWEEN compares numbers",
			Table: numberRange,
			Given: numbered("1", "2", "10", "20"),
			When:  Query{Where: "pk = :p AND sk BETWEEN :v AND :w", Values: Item{":p": str("a"), ":v": num("2"), ":w": num("10.0")}},
			Want:  Reply{Items: numbered("2", "10")},
		},
		{
			Name:  "begins_with rejects numbers",
			Table: numberRange,
			Given: numbered("1", "10"),
			When:  Query{Where: "pk = :p AND begins_with(sk, :v)", Values: Item{":p": str("a"), ":v": num("1")}},
			Want:  invalid("Invalid KeyConditionExpression: Incorrect operand type for operator or function; operator or function: begins_with, operand type: N"),
		},
		{
			Name:  "begins_with accepts binaries",
			Table: binaryRange,
			Given: []Item{binaryKeyed("\x00\xff"), binaryKeyed("\x00\xff\x01"), binaryKeyed("\x01")},
			When:  Query{Where: "pk = :p AND begins_with(sk, :v)", Values: Item{":p": str("a"), ":v": bin("\x00\xff")}},
			Want:  Reply{Items: []Item{binaryKeyed("\x00\xff"), binaryKeyed("\x00\xff\x01")}},
		},
	}
}

func (c Case) where(expression string) Case {
	q := c.When.(Query)
	q.Where = expression
	c.When = q
	return c
}

func (c Case) queryNames(names Names) Case {
	q := c.When.(Query)
	q.Names = names
	c.When = q
	return c
}
