// Package conformance tests whether a server behaves like DynamoDB. A case consists of requests
// that the AWS SDK sends, and the reply, error and table content that AWS documents for them.
//
//	conformance.Run(t, conformance.Engine{Name: "localdynamo", Client: client})
//
// A case follows the documentation of AWS. The documentation does not contain most error texts, so
// a case contains the text that AWS is known to send. If another server replies differently, the
// case is not changed. Instead, the different reply is added to a list of that server's known
// differences, with the reason why the reply is believed to be wrong. The tests fail if a listed
// difference no longer exists.
//
// Every case has its own table. To read the package, start with [Case], then any
// file of cases: conditions.go, updates.go, query.go.
package conformance
