// Package conformance tests whether a server behaves like DynamoDB. It is a table of
// cases: requests sent by the AWS SDK, and the reply, error and table content that
// AWS documents for them.
//
//	conformance.Run(t, conformance.Engine{Name: "localdynamo", Client: client})
//
// AWS's documentation decides what is right. It does not contain most error texts:
// for these, a case has the text that the service is known to send. If another server
// replies differently, the case stays as it is. A list of differences for that server
// contains its reply, and the reason why this reply is believed to be wrong. The tests
// fail if a listed difference no longer exists.
//
// Every case has its own table. To read the package, start with [Case], then any
// file of cases: conditions.go, updates.go, query.go.
package conformance
