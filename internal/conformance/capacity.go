package conformance

import "strings"

// capacityCases returns the cases for the capacity units that requests consume. A write consumes
// one unit per KB, and a strongly consistent read one unit per 4 KB. An eventually consistent read
// consumes half as much, and a transaction twice as much.
func capacityCases() []Case {
	kilobytes := func(n int) Item { return item(Item{"x": str(strings.Repeat("x", n*1024-4))}) } // the names "x" and "pk" and the value "a" take 4 bytes
	small, large := item(Item{"x": num("1")}), kilobytes(9)
	five := fiveAndOne()[:5]
	cost := func(name string, given []Item, r Request, want Reply, units float64) Case {
		want.Capacity = units
		return Case{Name: name, Given: given, When: Metered{r}, Want: want}
	}
	ofRange := func(c Case) Case {
		c.Table = rangeKey
		return c
	}
	return []Case{
		cost("reading nothing", nil, Get{}, Reply{}, 1),
		cost("reading nothing, eventually", nil, Get{Eventual: true}, Reply{}, 0.5),
		cost("reading a small item", []Item{small}, Get{}, Reply{Item: small}, 1),
		cost("reading 9 KB", []Item{large}, Get{}, Reply{Item: large}, 3),
		cost("reading 9 KB, eventually", []Item{large}, Get{Eventual: true}, Reply{Item: large}, 1.5),
		cost("reading one attribute of 9 KB", []Item{large}, Get{Project: "pk"}, Reply{Item: item(nil)}, 3),
		cost("putting a small item", nil, Put{Item: small}, Reply{}, 1),
		cost("putting 1 KB", nil, Put{Item: kilobytes(1)}, Reply{}, 1),
		cost("putting 9 KB", nil, Put{Item: large}, Reply{}, 9),
		cost("putting a small item over 9 KB", []Item{large}, Put{Item: small}, Reply{}, 9),
		cost("updating a small item", []Item{small}, setN("1", ""), Reply{}, 1),
		cost("deleting nothing", nil, Delete{}, Reply{}, 1),
		cost("deleting 9 KB", []Item{large}, Delete{}, Reply{}, 9),
		ofRange(cost("querying five small items", five, Query{Where: "pk = :p", Values: Item{":p": str("a")}}, Reply{Items: five}, 1)),
		ofRange(cost("querying five small items, eventually", five, Query{Where: "pk = :p", Values: Item{":p": str("a")}, Eventual: true}, Reply{Items: five}, 0.5)),
		cost("scanning 18 KB", []Item{large, keyedHash("b", Item{"x": large["x"]})}, Scan{Project: "pk"},
			Reply{Items: []Item{item(nil), keyedHash("b", nil)}}, 5),
		cost("getting two items in a batch", []Item{small}, BatchGet{Keys: []Item{item(nil), keyedHash("b", nil)}}, Reply{Items: []Item{small}}, 2),
		cost("putting two items in a batch", nil, BatchWrite{Put: []Item{small, keyedHash("b", nil)}}, Reply{}, 2),
		cost("putting a small item in a transaction", nil, TransactWrite{Writes: []Request{Put{Item: small}}}, Reply{}, 2),
		cost("putting two small items in a transaction", nil, TransactWrite{Writes: []Request{Put{Item: small}, Put{Item: keyedHash("b", nil)}}}, Reply{}, 4),
		cost("reading two small items in a transaction", []Item{small}, TransactGet{{}, {Key: keyedHash("b", nil)}}, Reply{Items: []Item{small, nil}}, 4),
	}
}
