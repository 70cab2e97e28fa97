package table

import (
	"bytes"
	"encoding/json"
)

// Access is what an IAM policy allows.
type Access string

// The three kinds of access.
const (
	Use     Access = "use"     // hold locks: a service
	Operate Access = "operate" // use, list and break: an operator
	Read    Access = "read"    // list and get
)

// actions are what the library calls. Of a transaction IAM looks at the items
// (Developer Guide, "Using IAM with DynamoDB transactions"): a guard is a
// ConditionCheckItem, and there is no action for TransactWriteItems itself.
var actions = map[Access][]string{
	Use: {
		"dynamodb:BatchGetItem",       // AcquireAll, AcquireAny
		"dynamodb:ConditionCheckItem", // Commit, Guard
		"dynamodb:DeleteItem",         // releases that delete
		"dynamodb:GetItem",
		"dynamodb:UpdateItem",
	},
	Operate: {
		"dynamodb:BatchGetItem",
		"dynamodb:ConditionCheckItem",
		"dynamodb:DeleteItem",
		"dynamodb:GetItem",
		"dynamodb:Query", // List of a partition
		"dynamodb:Scan",  // List
		"dynamodb:UpdateItem",
	},
	Read: {
		"dynamodb:GetItem",
		"dynamodb:Query",
		"dynamodb:Scan",
	},
}

// Policy returns an IAM policy document for the table ARN, least privilege: the
// actions that package leasehold and its recipes need, no more. What Create and
// Check need is not in it, nor what a caller's own writes in a Commit or reads
// in a Read do to tables of the caller's.
//
// The ARN stands in it as given. With an empty one, or another Access than
// those of this package, the document is one that IAM refuses.
func (s Spec) Policy(arn string, a Access) string {
	type statement struct {
		Effect   string
		Action   []string
		Resource string
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	// Strings alone: it cannot fail.
	_ = e.Encode(struct {
		Version   string
		Statement []statement
	}{"2012-10-17", []statement{{"Allow", append([]string{}, actions[a]...), arn}}})
	return b.String()
}
