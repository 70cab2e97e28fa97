package table

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/leasehold-go/leasehold/internal/protocol"
)

// Access is the set of operations that an IAM policy allows.
type Access string

// Kinds of access.
const (
	Use     Access = "use"     // hold locks: the access that a service needs
	Operate Access = "operate" // hold, list and break locks: the access that an operator needs
	Read    Access = "read"    // list locks and read their records
)

// SharedLeases is the prefix of the keys of the rows that contain shared leases. Pass it to
// Policy to allow Config.SharedLease. But a client with permission to write these rows can end
// all locks under shared leases, whatever their keys are and whichever client holds them. It can
// also renew the shared lease of a dead client, so that the locks of that client stay held.
const SharedLeases = protocol.SessionPrefix

// actions contains the IAM actions that the library needs. For a transaction, IAM checks the
// action of each item (AWS, Developer Guide, "Using IAM with DynamoDB transactions"). So a
// guard needs ConditionCheckItem, and there is no action TransactWriteItems.
var actions = map[Access][]string{
	Use: {
		"dynamodb:BatchGetItem",       // for AcquireAll and AcquireAny
		"dynamodb:ConditionCheckItem", // for Commit and Guards
		"dynamodb:DeleteItem",         // for releases that delete the record
		"dynamodb:GetItem",
		"dynamodb:UpdateItem",
	},
	Operate: {
		"dynamodb:BatchGetItem",
		"dynamodb:ConditionCheckItem",
		"dynamodb:DeleteItem",
		"dynamodb:GetItem",
		"dynamodb:Query", // for a List of one partition
		"dynamodb:Scan",  // for a List of the whole table
		"dynamodb:UpdateItem",
	},
	Read: {
		"dynamodb:GetItem",
		"dynamodb:Query",
		"dynamodb:Scan",
	},
}

// Policy returns a least-privilege IAM policy document for the table with the given ARN. It
// allows only the actions that the packages leasehold, election, rwlock and semaphore need. It
// does not allow the actions of Create and Check. It also does not allow the caller's own writes
// in a Commit, or the caller's own reads in a Read.
//
// If prefixes are given, the policy allows only keys that begin with one of them. End each prefix
// with a separator: the prefix "bill" also allows the key "billing/7". Such a policy does not allow
// dynamodb:Scan, because a scan names no key. The records of semaphores, read/write locks and
// elections have keys that begin with the caller's key. The rows of shared leases do not. So the
// policy denies Config.SharedLease unless SharedLeases is one of the prefixes. A shorter prefix of
// SharedLeases is an error, because it would allow these rows by accident.
//
// Policy does not check the parameters "arn" and "a". IAM refuses the document if arn is empty, or
// if the Access is not one of the constants of this package.
func (s Spec) Policy(arn string, a Access, prefixes ...string) (string, error) {
	for _, prefix := range prefixes {
		if len(prefix) < len(SharedLeases) && strings.HasPrefix(SharedLeases, prefix) {
			return "", fmt.Errorf("the prefix %q also allows the reserved keys %s…, the shared leases of all clients: "+
				"use another prefix or, to allow them, %s itself", prefix, SharedLeases, SharedLeases)
		}
	}
	allowed := statement{Effect: "Allow", Action: append([]string{}, actions[a]...), Resource: arn}
	if len(prefixes) > 0 {
		allowed.Action = slices.DeleteFunc(allowed.Action, func(action string) bool { return action == "dynamodb:Scan" })
		allowed.Condition = leadingKeys(prefixes)
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	// Encode cannot fail, because the value contains only strings.
	_ = e.Encode(struct {
		Version   string
		Statement []statement
	}{"2012-10-17", []statement{allowed}})
	return b.String(), nil
}

type statement struct {
	Effect    string
	Action    []string
	Resource  string
	Condition map[string]map[string]any `json:",omitempty"`
}

// leadingKeys returns a condition that is true if every key of a request begins with one of
// prefixes. ForAllValues is also true for a request without keys (AWS, IAM User Guide, "Set
// operators for multivalued context keys"). So a second condition excludes such requests.
func leadingKeys(prefixes []string) map[string]map[string]any {
	const key = "dynamodb:LeadingKeys"
	// The characters that are special in IAM patterns are escaped (AWS, IAM User Guide, "IAM
	// policy elements: Variables and tags").
	literal := strings.NewReplacer("$", "${$}", "*", "${*}", "?", "${?}")
	patterns := make([]string, len(prefixes))
	for i, prefix := range prefixes {
		patterns[i] = literal.Replace(prefix) + "*"
	}
	return map[string]map[string]any{
		"ForAllValues:StringLike": {key: patterns},
		"Null":                    {key: "false"},
	}
}
