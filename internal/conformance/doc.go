// Package conformance says what DynamoDB does, as a table of cases that any
// engine can be held to: requests sent by the AWS SDK, and the reply, error and
// table content that AWS documents for them.
//
//	conformance.Run(t, conformance.Engine{Name: "localdynamo", Client: client})
//
// AWS's documentation decides what is right. Where it is silent, as it is on
// the text of most errors, the text is the one that the service is known to
// send. Where a real server differs, the case keeps AWS's reply and says beside
// it what that server does and why it is believed to be wrong; the difference
// is asserted as well, so that it is noticed when it goes away.
//
// Every case has a table to itself. To read the package, start with [Case],
// then any file of cases: conditions.go, updates.go, query.go.
package conformance
