// Package localdynamo is the part of DynamoDB that leasehold and its users' tests
// need, in this process. For one machine and for tests.
//
//	engine := localdynamo.New()
//	defer engine.Close()
//	db := engine.Client() // the AWS SDK's own client, with no socket behind it
//
// The real SDK runs in front of it, with its serialisation, its error types and
// its retries; what the engine replaces is the network and the service. It has
// no goroutine and looks at no clock but time.Now, so it works inside
// testing/synctest, where an hour of TTL takes no time. It keeps its tables in
// memory, or with package boltstore in a file that the processes of one machine
// share. An [Engine] is an http.Handler too, for clients in other languages.
//
// # What it does
//
// CreateTable, DescribeTable, UpdateTable, DeleteTable, ListTables,
// DescribeTimeToLive, UpdateTimeToLive, tags, DescribeLimits, DescribeEndpoints;
// GetItem, PutItem, UpdateItem, DeleteItem, Query, Scan (with segments),
// BatchGetItem, BatchWriteItem, TransactGetItems and TransactWriteItems: with the
// whole grammar of expressions (package expr), all types, numbers of 38 digits,
// the old item of a failed condition, cancellation reasons, idempotency tokens,
// consumed capacity, and the service's limits, error types and texts.
//
// # What it does not
//
// Secondary indexes, streams, backups, PartiQL and the parameters from before
// expressions (Expected, AttributeUpdates and the like) are refused with an error
// that says so. There are no credentials to check and nothing is ever throttled:
// serve it on loopback only.
//
// It is not a DynamoDB for production. One process writes at a time, a file
// serves one machine, and nothing is replicated.
//
// # How it differs from DynamoDB
//
//   - It is stricter in one way: everything is serialised. A read is as consistent
//     as a strongly consistent one, whatever it asked for; a BatchWriteItem happens
//     whole or not at all; no transaction conflicts with another. Code that has to
//     stand TransactionConflict, throttling or a stale read needs a fault injected
//     in front.
//   - A table is ACTIVE at once, TTL is ENABLED at once, and ItemCount is exact.
//   - TTL deletes an item one hour after its time; the service takes up to a few
//     days. Until then it is returned, as by the service. An item without the
//     attribute, or whose attribute is no number, is never deleted.
//   - A Scan meets items in an order that means nothing, but not in the service's.
//   - An idempotency token is kept for ten minutes to the second.
//   - size of a string counts UTF-16 units, as in DynamoDB Local; AWS's manual
//     does not say what it counts.
//   - UPDATED_OLD and UPDATED_NEW return of a nested path only what it denotes, as
//     the service does; DynamoDB Local returns the whole attribute.
//
// Where the manual is silent on a text, it is that of DynamoDB Local 2.6.1.
//
// # Reading the source
//
// Start with engine.go: a request comes in by RoundTrip or ServeHTTP, is read by
// reader.go into a request and goes to one of the calls. write.go is what all
// writes share, whatever call they came in (single, batch.go, transact.go);
// get.go is that for reads, page.go for Query and Scan. condition.go, update.go,
// projection.go and keycondition.go give package expr's trees their meaning: pure
// functions over items. value.go and number.go are what items are made of.
// key.go says how everything lies in a [Store]; stored.go is the form of an item
// there, memory.go the Store in memory.
package localdynamo
