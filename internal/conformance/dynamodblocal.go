package conformance

import "maps"

// dynamoDBLocal returns the known differences between DynamoDB Local 2.6.1 and AWS.
func dynamoDBLocal() map[string]*Difference {
	all := worded("its checks of tables, keys and sizes have their own error texts", map[string]string{
		"arithmetic/a sum of more than 38 digits":                              "DynamoDB only supports precision up to 38 digits",
		"numbers/\"123456789123456789123456789123456789123\" is not a number":  "DynamoDB only supports precision up to 38 digits",
		"numbers/\"1.12345678912345678912345678912345678912\" is not a number": "DynamoDB only supports precision up to 38 digits",
		"numbers/\"x\" is not a number":                                        "A value provided cannot be converted into a number",
		"numbers/\"1 \" is not a number":                                       "A value provided cannot be converted into a number",
		"numbers/\"\" is not a number":                                         "A value provided cannot be converted into a number",
		"numbers/\"0x10\" is not a number":                                     "A value provided cannot be converted into a number",
		"numbers/\"NaN\" is not a number":                                      "A value provided cannot be converted into a number",
		"numbers/\"Infinity\" is not a number":                                 "A value provided cannot be converted into a number",
		"values/an invalid number in an expression's values":                   "ExpressionAttributeValues contains invalid value: A value provided cannot be converted into a number for key :x",
		"query/a start with half a key":                                        "Exclusive Start Key must have same size as table's key schema",
		"query/a start with a key of another hash key":                         "The provided starting key does not match the range key predicate",
		"key conditions/pk = :p AND n = :v":                                    "Query condition missed key schema element",
		"numbers/a set of numbers cannot contain text":                         "A value provided cannot be converted into a number",
		"items/PutItem rejects other return values":                            "Return values set to invalid value",
		"items/DeleteItem rejects other return values":                         "Return values set to invalid value",
		"key conditions/sk = :v":                                               "Query condition missed key schema element",
		"scan/a segment without the number of segments":                        "If segment is specified, total segment must also be specified",
		"scan/a number of segments without a segment":                          "If total segments is specified, a particular segment must also be specified for this request",
		"scan/a segment beyond the number of segments":                         "1 validation error detected: Value '2' at 'segment' failed to satisfy constraint: Member must have value less than or equal to 1",
		"scan/a limit below one":                                               "Limit must be greater than or equal to 1",
		"scan/a start with half a key":                                         "Exclusive Start Key must have same size as table's key schema",
		"batches/BatchGetItem of 101 keys":                                     "Too many items requested for the BatchGetItem call",
		"batches/BatchGetItem of a wrong key":                                  "One of the required keys was not given a value",
		"batches/BatchWriteItem of 26 items":                                   "Too many items requested for the BatchWriteItem call",
		"batches/BatchWriteItem of an item without its key puts nothing":       "One of the required keys was not given a value",
		"batches/BatchGetItem of an unknown table":                             "Cannot do operations on a non-existent table",
		"transactions/TransactGetItems of 101 items":                           "Member must have length less than or equal to 100",
		"transactions/101 writes":                                              "Member must have length less than or equal to 100",
		"cancellations/an unknown table":                                       "Cannot do operations on a non-existent table",
		"tables/a table exists already":                                        "Cannot create preexisting table",
		"tables/DescribeTable of an unknown table":                             "Cannot do operations on a non-existent table",
		"tables/DeleteTable of an unknown table":                               "Cannot do operations on a non-existent table",
		"tables/GetItem of an unknown table":                                   "Cannot do operations on a non-existent table",
		"tables/PutItem to an unknown table":                                   "Cannot do operations on a non-existent table",
		"tables/UpdateItem of an unknown table":                                "Cannot do operations on a non-existent table",
		"tables/DeleteItem of an unknown table":                                "Cannot do operations on a non-existent table",
		"tables/Scan of an unknown table":                                      "Cannot do operations on a non-existent table",
		"tables/Query of an unknown table":                                     "Cannot do operations on a non-existent table",
		"tables/a key whose attribute is not defined":                          "Hash Key not specified in Attribute Definitions.  Type unknown.",
		"tables/a name that is too short":                                      "Invalid table/index name.  Table/index names must be between 3 and 255 characters long, and may contain only the characters a-z, A-Z, 0-9, '_', '-', and '.'",
		"ttl/turning TTL on for another attribute":                             "TimeToLive is active on a different AttributeName",
		"ttl/TTL of an unknown table":                                          "Cannot do operations on a non-existent table",
		"key errors/GetItem by another attribute":                              "One of the required keys was not given a value",
		"key errors/GetItem by a key of another type":                          "One or more parameter values were invalid: Type mismatch for key",
		"key errors/GetItem by too many attributes":                            "The number of conditions on the keys is invalid",
		"key errors/GetItem by half a key":                                     "The number of conditions on the keys is invalid",
		"key errors/UpdateItem by another attribute":                           "One of the required keys was not given a value",
		"key errors/UpdateItem by half a key":                                  "The number of conditions on the keys is invalid",
		"key errors/DeleteItem by another attribute":                           "One of the required keys was not given a value",
		"key errors/DeleteItem by a key of another type":                       "One or more parameter values were invalid: Type mismatch for key",
		"key errors/PutItem without the hash key":                              "One of the required keys was not given a value",
		"key errors/PutItem without the range key":                             "One of the required keys was not given a value",
		"key errors/PutItem with a key of another type":                        "One or more parameter values were invalid: Type mismatch for key",
		"key errors/PutItem with a range key of another type":                  "One or more parameter values were invalid: Type mismatch for key",
		"limits/a hash key over 2,048 bytes":                                   "Hash primary key values must be under 2048 bytes, and range primary key values must be under 1024 bytes",
		"limits/a hash key counts bytes, not characters":                       "Hash primary key values must be under 2048 bytes, and range primary key values must be under 1024 bytes",
		"limits/UpdateItem by a hash key over 2,048 bytes":                     "Hash primary key values must be under 2048 bytes, and range primary key values must be under 1024 bytes",
		"limits/GetItem by a hash key over 2,048 bytes":                        "Hash primary key values must be under 2048 bytes, and range primary key values must be under 1024 bytes",
		"limits/a range key over 1,024 bytes":                                  "Hash primary key values must be under 2048 bytes, and range primary key values must be under 1024 bytes",
	})
	maps.Copy(all, dynamoDBLocalBehaviour())
	return all
}

func dynamoDBLocalBehaviour() map[string]*Difference {
	const unasked = "it reports the consumed capacity although the request did not ask for it"
	const whole = "it returns the whole attribute, not only the part that has changed"
	const early = "it checks an update before it begins the transaction"
	none, failed := Reason{Code: "None"}, Reason{Code: "ConditionalCheckFailed", Text: "The conditional request failed"}
	dotted := func(old Item) Reason {
		return Reason{Code: failed.Code, Text: failed.Text + ".", Item: old}
	}
	return map[string]*Difference{
		"items/DeleteItem of a missing item succeeds":                      {Why: unasked, want: Reply{Capacity: 1}},
		"items/DeleteItem with ALL_OLD returns nothing for a missing item": {Why: unasked, want: Reply{Capacity: 1}},
		"items/UpdateItem with UPDATED_NEW returns only the changed part of a map": {
			Why: whole, want: Reply{Item: Item{"m": dict(Item{"x": num("3"), "y": num("2")})}},
		},
		"items/UpdateItem with UPDATED_OLD returns only the changed part of a map": {
			Why: whole, want: Reply{Item: Item{"m": dict(Item{"x": num("1"), "y": num("2")})}},
		},
		"items/UpdateItem with UPDATED_OLD returns only the changed element of a list": {
			Why: whole, want: Reply{Item: Item{"l": list(num("1"), num("2"), num("3"))}},
		},
		"items/UpdateItem with UPDATED_NEW returns only the changed element of a list": {
			Why: whole, want: Reply{Item: Item{"l": list(num("1"), num("9"), num("3"))}},
		},
		"numbers/an update returns the number it stored": {
			Why: "it returns the number as it was sent", want: Reply{Item: Item{"n": num("01.50")}},
		},
		"cancellations/every failed condition is named, with the requested items": {
			Why: "its text of a failed check ends with a full stop",
			want: canceled(Reason{Code: failed.Code, Text: failed.Text, Item: item(Item{"x": num("1")})}, none,
				dotted(keyedHash("b", Item{"x": num("3")})), failed, failed),
		},
		"cancellations/a failed check alone cancels the transaction": {
			Why: "its text of a failed check ends with a full stop", want: canceled(dotted(nil), none),
		},
		"cancellations/an update that does not fit the item is a reason": {
			Why: early, want: invalid("An operand in the update expression has an incorrect data type"),
		},
		"cancellations/an update inside a missing map is a reason": {
			Why: early, want: invalid("The document path provided in the update expression is invalid for update"),
		},
		"cancellations/a key of another type is a reason": {
			Why:  "it does not name the key",
			want: canceled(none, Reason{Code: "ValidationError", Text: "One or more parameter values were invalid: Type mismatch for key"}),
		},
		"tables/tags are listed": {
			Why: "it has no tags", want: Reply{Err: &Fault{Code: "UnknownOperationException"}},
		},
		"capacity/getting two items in a batch": {
			Why: "it counts no capacity for an item that does not exist", want: Reply{Items: []Item{item(Item{"x": num("1")})}, Capacity: 1},
		},
		"capacity/putting a small item in a transaction": {Why: "it doubles the capacity of a transaction twice", want: Reply{Capacity: 4}},
	}
}
