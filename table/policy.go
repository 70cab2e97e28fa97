package table

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/leasehold-go/leasehold/internal/records"
)

// Access is the access that an IAM policy allows.
type Access string

// Values of Access.
const (
	Use     Access = "use"     // hold locks; for a service
	Operate Access = "operate" // hold, list and break locks; for an operator
	Read    Access = "read"    // list locks and get their records
)

// SharedLeases is the reserved prefix of the keys under which shared leases are stored. It
// is a prefix for Policy. A client that may write these rows can end the locks of every
// client of the table that has a shared lease, whatever the keys of the locks are. It can
// also keep the locks of a dead client held.
const SharedLeases = records.SessionPrefix

// actions are the IAM actions that the library needs. For a transaction, IAM checks the
// action of each item (AWS, Developer Guide, "Using IAM with DynamoDB transactions"). So a
// guard needs ConditionCheckItem, and there is no action TransactWriteItems.
var actions = map[Access][]string{
	Use: {
		"dynamodb:BatchGetItem",       // for AcquireAll and AcquireAny
		"dynamodb:ConditionCheckItem", // for Commit and Guard
		"dynamodb:DeleteItem",         // for releases that delete the record
		"dynamodb:GetItem",
		"dynamodb:UpdateItem",
	},
	Operate: {
		"dynamodb:BatchGetItem",
		"dynamodb:ConditionCheckItem",
		"dynamodb:DeleteItem",
		"dynamodb:GetItem",
		"dynamodb:Query", // for List of one partition
		"dynamodb:Scan",  // for List
		"dynamodb:UpdateItem",
	},
	Read: {
		"dynamodb:GetItem",
		"dynamodb:Query",
		"dynamodb:Scan",
	},
}

// Policy returns a least-privilege IAM policy document for the table ARN: only the actions
// that package leasehold and its recipes need. It contains neither the actions of Create
// and Check, nor the actions of the caller's own writes in a Commit or reads in a Read.
//
// With prefixes, the policy allows only keys that begin with one of them. Prefixes are used
// as given: end them with a separator, or "bill" allows "billing/7" as well. Such a policy
// does not allow dynamodb:Scan, because a scan names no key. Semaphores, read/write locks
// and elections are under their own keys. The rows of shared leases are not, so
// Config.SharedLease is denied unless SharedLeases is one of the prefixes. Policy returns
// an error for a shorter prefix with which SharedLeases begins, such as "lease", because it
// would allow these rows by accident.
//
// The ARN is used as given. IAM refuses the document if the ARN is empty, or if a is not
// one of the constants of this package.
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
	// Encode cannot fail, as the value contains only strings.
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

// leadingKeys returns a condition that holds if every key of a request begins with one of
// prefixes. ForAllValues also holds for a request without keys (AWS, IAM User Guide, "Set
// operators for multivalued context keys"), so a second condition excludes that case.
func leadingKeys(prefixes []string) map[string]map[string]any {
	const key = "dynamodb:LeadingKeys"
	// Special characters of IAM patterns are escaped (AWS, IAM User Guide, "IAM policy
	// elements: Variables and tags").
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
