// Package conformance tests whether a server behaves like DynamoDB. It is a table of
// cases: requests sent by the AWS SDK, and the reply, error and table content that
// AWS documents for them.
//
//	conformance.Run(t, conformance.Engine{Name: "localdynamo", Client: client})
//
// AWS's documentation decides what is right. It does not contain most error texts:
// these are the texts that the service is known to send. If a real server differs,
// the case keeps AWS's reply, and the server's list of differences says what it does
// and why that is believed to be wrong. The tests also check that the difference
// still exists, so that we notice when it goes away.
//
// Every case has its own table. To read the package, start with [Case], then any
// file of cases: conditions.go, updates.go, query.go.
package conformance
