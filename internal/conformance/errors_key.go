package conformance

// keyErrorCases returns the cases for requests whose key does not fit the table's key schema.
func keyErrorCases() []Case {
	mismatch := invalid("The provided key element does not match the schema")
	bad := "One or more parameter values were invalid: "
	empty := "One or more parameter values are not valid. The AttributeValue for a key attribute cannot contain an empty string value. Key: "
	emptyBinary := "One or more parameter values are not valid. The AttributeValue for a key attribute cannot contain an empty binary value. Key: pk"
	return []Case{
		{Name: "GetItem by another attribute", When: Get{Key: Item{"id": str("a")}}, Want: mismatch},
		{Name: "GetItem by a key of another type", When: Get{Key: Item{"pk": num("1")}}, Want: mismatch},
		{Name: "GetItem by too many attributes", When: Get{Key: Item{"pk": str("a"), "x": str("b")}}, Want: mismatch},
		{Name: "GetItem by half a key", Table: rangeKey, When: Get{Key: Item{"pk": str("a")}}, Want: mismatch},
		{Name: "UpdateItem by another attribute", When: Update{Key: Item{"id": str("a")}, Do: "REMOVE x"}, Want: mismatch, Then: []Item{}},
		{Name: "UpdateItem by half a key", Table: rangeKey, When: Update{Key: Item{"pk": str("a")}, Do: "REMOVE x"}, Want: mismatch, Then: []Item{}},
		{Name: "DeleteItem by another attribute", When: Delete{Key: Item{"id": str("a")}}, Want: mismatch},
		{Name: "DeleteItem by a key of another type", When: Delete{Key: Item{"pk": bin("a")}}, Want: mismatch},
		{Name: "PutItem without the hash key", When: Put{Item: Item{"x": num("1")}}, Want: invalid(bad + "Missing the key pk in the item"), Then: []Item{}},
		{Name: "PutItem without the range key", Table: rangeKey, When: Put{Item: Item{"pk": str("a")}}, Want: invalid(bad + "Missing the key sk in the item"), Then: []Item{}},
		{Name: "PutItem with a key of another type", When: Put{Item: Item{"pk": num("1")}}, Want: invalid(bad + "Type mismatch for key pk expected: S actual: N"), Then: []Item{}},
		{Name: "PutItem with a range key of another type", Table: numberRange, When: Put{Item: key("a", "1")}, Want: invalid(bad + "Type mismatch for key sk expected: N actual: S"), Then: []Item{}},
		{Name: "PutItem with an empty hash key", When: Put{Item: Item{"pk": str("")}}, Want: invalid(empty + "pk"), Then: []Item{}},
		{Name: "PutItem with an empty range key", Table: rangeKey, When: Put{Item: key("a", "")}, Want: invalid(empty + "sk"), Then: []Item{}},
		{Name: "PutItem with an empty binary key", Table: binaryHashKey, When: Put{Item: Item{"pk": bin("")}}, Want: invalid(emptyBinary), Then: []Item{}},
		{Name: "GetItem by an empty key", When: Get{Key: Item{"pk": str("")}}, Want: invalid(empty + "pk")},
		{Name: "UpdateItem by an empty key", When: Update{Key: Item{"pk": str("")}, Do: "REMOVE x"}, Want: invalid(empty + "pk"), Then: []Item{}},
		{Name: "DeleteItem by an empty key", When: Delete{Key: Item{"pk": str("")}}, Want: invalid(empty + "pk")},
	}
}
