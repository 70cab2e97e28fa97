package conformance

import "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

// itemCases returns the cases for GetItem, PutItem, UpdateItem and DeleteItem: what these requests
// do, and which attributes they return.
func itemCases() []Case {
	one := item(Item{"n": num("1"), "s": str("x")})
	return []Case{
		{
			Name:  "GetItem of a missing item is empty",
			Given: []Item{keyedHash("b", nil)},
			When:  Get{},
		},
		{
			Name:  "GetItem returns the whole item",
			Given: []Item{one},
			When:  Get{},
			Want:  Reply{Item: one},
		},
		{
			Name:  "GetItem can be eventually consistent",
			Given: []Item{one},
			When:  Get{Eventual: true},
			Want:  Reply{Item: one},
		},
		{
			Name:  "one hash key with two range keys makes two items",
			Table: rangeKey,
			Given: []Item{keyed("a", "1", Item{"n": num("1")}), keyed("a", "2", Item{"n": num("2")})},
			When:  Get{Key: key("a", "2")},
			Want:  Reply{Item: keyed("a", "2", Item{"n": num("2")})},
		},
		{
			Name:  "PutItem replaces the whole item",
			Given: []Item{one},
			When:  Put{Item: item(Item{"b": boolean(true)})},
			Then:  []Item{item(Item{"b": boolean(true)})},
		},
		{
			Name:  "PutItem with ALL_OLD returns the replaced item",
			Given: []Item{one},
			When:  Put{Item: item(nil), Return: types.ReturnValueAllOld},
			Want:  Reply{Item: one},
			Then:  []Item{item(nil)},
		},
		{
			Name: "PutItem with ALL_OLD returns nothing for a new item",
			When: Put{Item: one, Return: types.ReturnValueAllOld},
			Then: []Item{one},
		},
		{
			Name:  "PutItem with NONE returns nothing",
			Given: []Item{one},
			When:  Put{Item: one, Return: types.ReturnValueNone},
			Then:  []Item{one},
		},
		{
			Name: "PutItem rejects other return values",
			When: Put{Item: one, Return: types.ReturnValueAllNew},
			Want: invalid("ReturnValues can only be ALL_OLD or NONE"),
			Then: []Item{},
		},
		{
			Name:  "DeleteItem removes the item",
			Given: []Item{one, keyedHash("b", nil)},
			When:  Delete{},
			Then:  []Item{keyedHash("b", nil)},
		},
		{
			Name: "DeleteItem of a missing item succeeds",
			When: Delete{},
			Then: []Item{},
		},
		{
			Name:  "DeleteItem with ALL_OLD returns the deleted item",
			Given: []Item{one},
			When:  Delete{Return: types.ReturnValueAllOld},
			Want:  Reply{Item: one},
			Then:  []Item{},
		},
		{
			Name: "DeleteItem with ALL_OLD returns nothing for a missing item",
			When: Delete{Return: types.ReturnValueAllOld},
		},
		{
			Name: "DeleteItem rejects other return values",
			When: Delete{Return: types.ReturnValueUpdatedOld},
			Want: invalid("ReturnValues can only be ALL_OLD or NONE"),
		},
		{
			Name: "UpdateItem without an expression creates an item from its key",
			When: Update{},
			Then: []Item{item(nil)},
		},
		{
			Name:  "UpdateItem without an expression leaves an item as it is",
			Given: []Item{one},
			When:  Update{Return: types.ReturnValueAllNew},
			Want:  Reply{Item: one},
			Then:  []Item{one},
		},
		{
			Name:  "UpdateItem returns nothing by default",
			Given: []Item{one},
			When:  setN("2", ""),
			Then:  []Item{item(Item{"n": num("2"), "s": str("x")})},
		},
		{
			Name:  "UpdateItem with NONE returns nothing",
			Given: []Item{one},
			When:  setN("2", types.ReturnValueNone),
		},
		{
			Name:  "UpdateItem with ALL_OLD returns the item before",
			Given: []Item{one},
			When:  setN("2", types.ReturnValueAllOld),
			Want:  Reply{Item: one},
		},
		{
			Name:  "UpdateItem with ALL_NEW returns the item after",
			Given: []Item{one},
			When:  setN("2", types.ReturnValueAllNew),
			Want:  Reply{Item: item(Item{"n": num("2"), "s": str("x")})},
		},
		{
			Name:  "UpdateItem with UPDATED_OLD returns the old values",
			Given: []Item{one},
			When:  setN("2", types.ReturnValueUpdatedOld),
			Want:  Reply{Item: Item{"n": num("1")}},
		},
		{
			Name:  "UpdateItem with UPDATED_NEW returns the new values",
			Given: []Item{one},
			When:  setN("2", types.ReturnValueUpdatedNew),
			Want:  Reply{Item: Item{"n": num("2")}},
		},
		{
			Name: "UpdateItem with ALL_OLD returns nothing for a new item",
			When: setN("2", types.ReturnValueAllOld),
			Then: []Item{item(Item{"n": num("2")})},
		},
		{
			Name: "UpdateItem with UPDATED_OLD returns nothing for a new item",
			When: setN("2", types.ReturnValueUpdatedOld),
		},
		{
			Name: "UpdateItem with ALL_NEW returns the whole new item",
			When: setN("2", types.ReturnValueAllNew),
			Want: Reply{Item: item(Item{"n": num("2")})},
		},
		{
			Name:  "UpdateItem with UPDATED_NEW leaves out removed attributes",
			Given: []Item{one},
			When:  Update{Do: "REMOVE s SET n = :n", Values: Item{":n": num("2")}, Return: types.ReturnValueUpdatedNew},
			Want:  Reply{Item: Item{"n": num("2")}},
		},
		{
			Name:  "UpdateItem with UPDATED_OLD returns removed attributes",
			Given: []Item{one},
			When:  Update{Do: "REMOVE s SET n = :n", Values: Item{":n": num("2")}, Return: types.ReturnValueUpdatedOld},
			Want:  Reply{Item: Item{"n": num("1"), "s": str("x")}},
		},
		{
			Name:  "UpdateItem with UPDATED_NEW returns only the changed part of a map",
			Given: []Item{item(Item{"m": dict(Item{"x": num("1"), "y": num("2")})})},
			When:  Update{Do: "SET m.x = :n", Values: Item{":n": num("3")}, Return: types.ReturnValueUpdatedNew},
			Want:  Reply{Item: Item{"m": dict(Item{"x": num("3")})}},
		},
		{
			Name:  "UpdateItem with UPDATED_OLD returns only the changed part of a map",
			Given: []Item{item(Item{"m": dict(Item{"x": num("1"), "y": num("2")})})},
			When:  Update{Do: "SET m.x = :n", Values: Item{":n": num("3")}, Return: types.ReturnValueUpdatedOld},
			Want:  Reply{Item: Item{"m": dict(Item{"x": num("1")})}},
		},
		{
			Name:  "UpdateItem with UPDATED_OLD returns only the changed element of a list",
			Given: []Item{item(Item{"l": list(num("1"), num("2"), num("3"))})},
			When:  Update{Do: "SET l[1] = :n", Values: Item{":n": num("9")}, Return: types.ReturnValueUpdatedOld},
			Want:  Reply{Item: Item{"l": list(num("2"))}},
		},
		{
			Name:  "UpdateItem with UPDATED_NEW returns only the changed element of a list",
			Given: []Item{item(Item{"l": list(num("1"), num("2"), num("3"))})},
			When:  Update{Do: "SET l[1] = :n", Values: Item{":n": num("9")}, Return: types.ReturnValueUpdatedNew},
			Want:  Reply{Item: Item{"l": list(num("9"))}},
		},
		{
			Name:  "a failed condition changes nothing and returns no item",
			Given: []Item{one},
			When:  Put{Item: item(nil), If: "attribute_not_exists(pk)", Return: types.ReturnValueAllOld},
			Want:  conditionFailed(nil),
			Then:  []Item{one},
		},
		{
			Name:  "a failed condition of PutItem returns the item when asked to",
			Given: []Item{one},
			When:  Put{Item: item(nil), If: "attribute_not_exists(pk)", OldIfFail: true},
			Want:  conditionFailed(one),
			Then:  []Item{one},
		},
		{
			Name:  "a failed condition of UpdateItem returns the item when asked to",
			Given: []Item{one},
			When:  Update{Do: "REMOVE s", If: "attribute_not_exists(pk)", OldIfFail: true},
			Want:  conditionFailed(one),
			Then:  []Item{one},
		},
		{
			Name:  "a failed condition of DeleteItem returns the item when asked to",
			Given: []Item{one},
			When:  Delete{If: "attribute_not_exists(pk)", OldIfFail: true},
			Want:  conditionFailed(one),
			Then:  []Item{one},
		},
		{
			Name: "a failed condition on a missing item returns no item",
			When: Update{Do: "REMOVE s", If: "attribute_exists(pk)", OldIfFail: true},
			Want: conditionFailed(nil),
			Then: []Item{},
		},
		{
			Name: "DeleteItem of a missing item fails if the item must exist",
			When: Delete{If: "attribute_exists(pk)"},
			Want: conditionFailed(nil),
		},
	}
}

// setN returns an update that sets the attribute "n" to a number.
func setN(n string, r types.ReturnValue) Request {
	return Update{Do: "SET n = :n", Values: Item{":n": num(n)}, Return: r}
}

// keyedHash returns an item with the given key, for a table with the key schema hashKey.
func keyedHash(pk string, attributes Item) Item {
	with := item(attributes)
	with["pk"] = str(pk)
	return with
}
