package table

import (
	"bytes"
	"encoding/json"
)

// Access is what an IAM policy allows.
type Access string

// Values of Access.
const (
	Use     Access = "use"     // hold locks; for a service
	Operate Access = "operate" // hold, list and break locks; for an operator
	Read    Access = "read"    // list locks and get their records
)

// actions are the actions that the library needs. For a transaction IAM checks
// the action of each item (AWS, Developer Guide, "Using IAM with DynamoDB
// transactions"): that of a guard is ConditionCheckItem. There is no action
// TransactWriteItems.
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

// Policy returns a least-privilege IAM policy document for the table ARN: only the
// actions that package leasehold and its recipes need. It does not contain the
// actions of Create and Check, nor those of the caller's own writes in a Commit or
// reads in a Read.
//
// The ARN is used as given. If it is empty, or if a is none of the constants of
// this package, IAM refuses the document.
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
	// It cannot fail: the value contains only strings.
	_ = e.Encode(struct {
		Version   string
		Statement []statement
	}{"2012-10-17", []statement{{"Allow", append([]string{}, actions[a]...), arn}}})
	return b.String()
}
