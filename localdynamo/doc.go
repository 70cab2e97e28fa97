// Package localdynamo is an embedded DynamoDB: the part that leasehold and its
// users' tests need, in this process. It is for tests, and for locks on one
// machine.
//
//	engine := localdynamo.New()
//	defer engine.Close()
//	db := engine.Client() // the AWS SDK's own client, with no socket behind it
//
// It is used through the real SDK, with its serialisation, error types and
// retries. The engine replaces only the network and the service. It starts no
// goroutine and reads no clock except time.Now, so it works inside
// testing/synctest, where an hour of TTL takes no time. It keeps its tables in
// memory or, with package boltstore, in a file that all processes of a machine can
// share. An [Engine] is also an http.Handler, for clients in other languages.
//
// # What it supports
//
// CreateTable, DescribeTable, UpdateTable, DeleteTable, ListTables,
// DescribeTimeToLive, UpdateTimeToLive, tags, DescribeLimits, DescribeEndpoints;
// GetItem, PutItem, UpdateItem, DeleteItem, Query, Scan (with segments),
// BatchGetItem, BatchWriteItem, TransactGetItems and TransactWriteItems. It
// supports the whole expression grammar (package expr), all types, numbers of 38
// digits, the old item of a failed condition, cancellation reasons, idempotency
// tokens, consumed capacity, and the service's limits, error types and error
// texts.
//
// # What it does not support
//
// Secondary indexes, streams, backups, PartiQL and the parameters that expressions
// have replaced (Expected, AttributeUpdates and the like) are refused with an error
// that says so. There is no IAM: the engine checks no credentials, or one access key
// ([WithAccessKey]). Serve it on loopback only.
//
// It is not a DynamoDB for production. Only one process writes at a time, a file
// serves one machine, and nothing is replicated.
//
// # How it differs from DynamoDB
//
//   - Everything is serialised. Every read is strongly consistent, even if it did
//     not ask for that. A BatchWriteItem is atomic. Transactions never conflict.
//     To test code against TransactionConflict, throttling or stale reads, inject
//     these faults in front of the engine.
//   - A table is ACTIVE at once, TTL is ENABLED at once, and ItemCount is exact.
//   - TTL deletes an item one hour after its time; the service takes up to a few
//     days. Until then the item is returned, as in the service. An item whose TTL
//     attribute is missing or not a number is never deleted.
//   - A Scan returns items in an arbitrary order, but a different one from the
//     service's.
//   - An idempotency token is kept for exactly ten minutes of the wall clock. If that
//     is set forward by more, between two sends of a transaction, both are executed.
//   - A request with more than 500,000 values, members and list elements counted, is
//     refused with a ValidationException. One item cannot have so many.
//   - The size of a string is in UTF-16 units, as in DynamoDB Local. AWS does not
//     document the unit.
//   - For a nested path, UPDATED_OLD and UPDATED_NEW return only the value at that
//     path, as the service does; DynamoDB Local returns the whole attribute.
//
// Error texts that AWS does not document are those of DynamoDB Local 2.6.1.
//
// # Reading the source
//
// Start with engine.go. A request arrives in RoundTrip or ServeHTTP; reader.go
// parses it into a request, which goes to one of the operations. write.go is shared
// by all writes (single, batch.go, transact.go), get.go by all reads, page.go by
// Query and Scan. condition.go, update.go, projection.go and keycondition.go
// evaluate the trees of package expr: they are pure functions over items. value.go
// and number.go are the values in items. key.go says where everything is in a
// [Store]; stored.go is the encoding of an item there, memory.go the Store in
// memory.
package localdynamo
