// Package localdynamo is an embedded DynamoDB for tests, and for locks on one
// machine. It runs in this process, and implements the operations that leasehold
// and the tests of its users need.
//
//	engine := localdynamo.New()
//	defer engine.Close()
//	db := engine.Client() // the AWS SDK's own client, with no socket behind it
//
// Programs use the engine through the real SDK, with the SDK's serialisation, error types and
// retries. The engine replaces only the network and the service. It starts no goroutine and
// reads no clock except time.Now, so it works inside testing/synctest, where an hour of TTL
// takes no time. It keeps its tables in memory or, with package boltstore, in a file that all
// processes of a machine can share. An [Engine] is also an http.Handler, for clients in other
// languages.
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
// The engine refuses secondary indexes, streams, backups, PartiQL and the parameters
// that expressions have replaced (Expected, AttributeUpdates and the like). The error
// says that they are not supported. There is no IAM. By default the engine checks no
// credentials; with [WithAccessKey] it checks one access key. Serve it on loopback
// only.
//
// It is not a DynamoDB for production. Only one process writes at a time, a file
// serves one machine, and nothing is replicated.
//
// # How it differs from DynamoDB
//
//   - All requests are serialised. Every read is strongly consistent, even without
//     ConsistentRead. A BatchWriteItem is atomic. Transactions never conflict. To test code
//     against TransactionConflict, throttling or stale reads, inject these faults in front
//     of the engine.
//   - A table is ACTIVE immediately, TTL is ENABLED immediately, and ItemCount is exact.
//   - TTL deletes an item one hour after its expiry time. DynamoDB may take a few days.
//     Until the deletion, reads return the item, as in DynamoDB. An item whose TTL attribute
//     is missing or not a number is never deleted.
//   - A Scan returns items in an arbitrary order, which differs from the arbitrary order of
//     DynamoDB.
//   - An idempotency token is kept for exactly ten minutes of the wall clock. If a
//     transaction is sent twice, and the clock is set forward by more than ten minutes in
//     between, the transaction is executed twice.
//   - A request is refused with a ValidationException if its JSON has more than 500,000 object
//     members and list elements. One item can exceed this limit only by lists with more than
//     90,000 empty strings or binary values.
//   - In an expression, size(path) counts a string in UTF-16 units, as in DynamoDB Local. AWS
//     does not document the unit.
//   - For a nested path, UPDATED_OLD and UPDATED_NEW return only the value at that path, as
//     DynamoDB does. DynamoDB Local returns the whole attribute.
//   - An UpdateItem that only removes attributes creates a missing item, as in DynamoDB Local.
//     DynamoDB does not create it (https://github.com/scylladb/scylladb/issues/5862).
//
// Error texts that AWS does not document are those of DynamoDB Local 2.6.1.
//
// # Reading the source
//
// Start with engine.go. A request arrives in RoundTrip or ServeHTTP. reader.go decodes it, and
// engine.go passes it to one of the operations. All writes (single writes, batch.go,
// transact.go) use write.go, all reads of single items use get.go, and Query and Scan use
// page.go. condition.go, update.go, projection.go and keycondition.go evaluate the trees of
// package expr. These four files do not access the Store. value.go and number.go define the
// values in items. key.go defines the keys of a [Store], and stored.go defines the encoding of
// an item in a Store. memory.go implements the Store in memory.
package localdynamo
