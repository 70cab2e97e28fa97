package table_test

import (
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/lab"
	"github.com/leasehold-go/leasehold/layout"
	"github.com/leasehold-go/leasehold/table"
)

// access is one check by IAM. The keys are the partition keys in the request. IAM compares
// them with the prefixes in the policy's condition.
type access struct {
	action string
	keys   []string
}

// accessesOf returns the checks that IAM makes for a request to the lock table. For a
// transaction, IAM checks each item separately.
func accessesOf(operation string, body []byte, partition string) []access {
	type keyed struct {
		TableName                 string
		Key                       map[string]map[string]any
		KeyConditionExpression    string
		ExpressionAttributeValues map[string]map[string]any
	}
	var in struct {
		keyed
		RequestItems  map[string]struct{ Keys []map[string]map[string]any }
		TransactItems []map[string]keyed
	}
	if err := json.Unmarshal(body, &in); err != nil {
		panic(err)
	}
	keysOf := func(of keyed) (keys []string) {
		for _, v := range regexp.MustCompile(`:\w+`).FindAllString(of.KeyConditionExpression, -1) {
			keys = append(keys, of.ExpressionAttributeValues[v]["S"].(string))
		}
		if of.Key != nil {
			keys = append(keys, of.Key[partition]["S"].(string))
		}
		return keys
	}
	var items []access
	for _, item := range in.TransactItems {
		for kind, of := range item { // kind is Put, Update, Delete, Get or ConditionCheck
			if of.TableName == "locks" {
				items = append(items, access{"dynamodb:" + kind + "Item", keysOf(of)})
			}
		}
	}
	if batch, ok := in.RequestItems["locks"]; ok {
		var keys []string
		for _, k := range batch.Keys {
			keys = append(keys, k[partition]["S"].(string))
		}
		items = append(items, access{"dynamodb:" + operation, keys})
	} else if in.TableName == "locks" {
		items = append(items, access{"dynamodb:" + operation, keysOf(in.keyed)})
	}
	return items
}

// stringOrStrings is a value in a policy condition: IAM allows a string or a list of strings.
type stringOrStrings []string

func (s *stringOrStrings) UnmarshalJSON(b []byte) error {
	if err := json.Unmarshal(b, (*[]string)(s)); err == nil {
		return nil
	}
	*s = []string{""}
	return json.Unmarshal(b, &(*s)[0])
}

// denies reports whether the policy denies the access. It follows the IAM User Guide,
// sections "Policy evaluation logic" and "IAM JSON policy elements: Condition operators".
func (d *document) denies(a access) bool {
	for _, s := range d.Statement {
		if !slices.Contains(s.Action, a.action) {
			continue
		}
		holds := true
		for operator, by := range s.Condition {
			for name, values := range by {
				if name != "dynamodb:LeadingKeys" {
					panic("the condition key " + name)
				}
				switch operator {
				case "ForAllValues:StringLike": // also true if the request names no keys
					for _, key := range a.keys {
						holds = holds && slices.ContainsFunc(values, func(pattern string) bool { return isLike(key, pattern) })
					}
				case "Null":
					holds = holds && (values[0] == "true") == (len(a.keys) == 0)
				default:
					panic("the operator " + operator)
				}
			}
		}
		if holds {
			return false
		}
	}
	return true
}

// isLike reports whether s matches pattern by the rules of IAM's StringLike. The pattern * matches
// any text, ? matches any character, and ${*}, ${?} and ${$} match these characters themselves.
func isLike(s, pattern string) bool {
	parts := regexp.MustCompile(`\$\{[*?$]\}|[*?]|[^*?$]+|\$`).FindAllString(pattern, -1)
	var expr strings.Builder
	for _, part := range parts {
		switch {
		case part == "*":
			expr.WriteString(".*")
		case part == "?":
			expr.WriteString(".")
		case strings.HasPrefix(part, "${"):
			expr.WriteString(regexp.QuoteMeta(part[2:3]))
		default:
			expr.WriteString(regexp.QuoteMeta(part))
		}
	}
	return regexp.MustCompile("(?s)^" + expr.String() + "$").MatchString(s)
}

// Under the given policy, calledUnder makes all calls that a service needs, and also Get, Break and
// List. It returns the checks that IAM made. The keys are "k", "m", "n" and "dead". No call uses a
// shared lease, which needs the prefix SharedLeases.
func calledUnder(t *testing.T, l layout.Layout, policy *document) (items []access) {
	synctest.Test(t, func(t *testing.T) {
		for _, name := range slices.Sorted(maps.Keys(calls[table.Use])) {
			if name == "Config.SharedLease" {
				continue
			}
			a := newAccount(t, l)
			a.iam.policy = policy
			calls[table.Use][name](a)
			a.must(a.first.Close(t.Context()), a.second.Close(t.Context()))
			synctest.Wait()
			items = append(items, a.iam.items...)
		}
		a := newAccount(t, l)
		a.iam.policy = policy
		calls[table.Read]["Client.Get"](a)
		calls[table.Operate]["Client.Break"](a)
		for _, err := range a.first.List(t.Context(), leasehold.ListOptions{Partition: "k"}) {
			a.must(err)
		}
		items = append(items, a.iam.items...)
	})
	return items
}

func TestPolicyForPrefixAllowsOnlyKeysWithPrefix(t *testing.T) {
	for _, name := range layout.Names() {
		l := lab.Must(layout.Parse(name))(t)
		t.Run(name, func(t *testing.T) {
			spec := table.Spec{Name: "locks", Layout: l}
			own := policy(t, spec, arn, table.Operate, "k", "n", "m", "dead")
			items := calledUnder(t, l, &own)
			if len(items) < 100 {
				t.Errorf("%d accesses, want at least 100", len(items))
			}
			for _, access := range accesses {
				foreign := policy(t, spec, arn, access, "kk", "other/")
				for _, a := range items {
					if !foreign.denies(a) {
						t.Fatalf("%s of another prefix allows %v", access, a)
					}
				}
			}
		})
	}
}

func TestPolicyForSharedLeasePrefixAllowsEverySharedLease(t *testing.T) {
	own := policy(t, table.Spec{}, arn, table.Use, "k", "n", table.SharedLeases)
	synctest.Test(t, func(t *testing.T) {
		a := newAccount(t, layout.Native{})
		a.iam.policy = &own
		calls[table.Use]["Config.SharedLease"](a)
		a.must(a.first.Close(t.Context()), a.second.Close(t.Context()))
		synctest.Wait()
		var sessions, locks int
		for _, item := range a.iam.items {
			switch {
			case own.denies(item):
				t.Errorf("denied: %v", item)
			case strings.HasPrefix(item.keys[0], table.SharedLeases):
				sessions++
			default:
				locks++
			}
		}
		if sessions < 3 || locks < 3 {
			t.Errorf("%d accesses to shared leases and %d to locks, want at least 3 of each", sessions, locks)
		}
	})
	anybodys := access{"dynamodb:UpdateItem", []string{table.SharedLeases + "abcdefghijklmnopqrstuvwxyz"}}
	if own.denies(anybodys) {
		t.Errorf("%v is denied", anybodys)
	}
	if other := (access{"dynamodb:UpdateItem", []string{"payroll/7"}}); !own.denies(other) {
		t.Errorf("allows %v", other)
	}
}

func TestPolicyForPrefixDeniesEveryScanAndRequestsForOtherKeys(t *testing.T) {
	for _, a := range accesses {
		d := policy(t, table.Spec{}, arn, a, "billing/")
		if !d.denies(access{action: "dynamodb:Scan"}) || !d.denies(access{"dynamodb:Scan", []string{"billing/7"}}) {
			t.Errorf("%s lists the whole table", a)
		}
		for _, action := range d.Statement[0].Action {
			switch {
			case !d.denies(access{action: action}):
				t.Errorf("%s allows %s without a key", a, action)
			case d.denies(access{action, []string{"billing/7"}}):
				t.Errorf("%s denies %s of a key with the prefix", a, action)
			case !d.denies(access{action, []string{"billing/7", "payroll/7"}}):
				t.Errorf("%s allows %s of two keys, one without the prefix", a, action)
			case !d.denies(access{action, []string{"leasehold/session/abcdefghijklmnopqrstuvwxyz"}}):
				t.Errorf("%s allows %s of a shared lease", a, action)
			}
		}
	}
}

func TestPolicyMatchesPrefixLiterally(t *testing.T) {
	for _, prefix := range []string{"a*b?/", "${aws:username}/", "$", "${*}", "*", "?"} {
		d := policy(t, table.Spec{}, arn, table.Use, prefix)
		if d.denies(access{"dynamodb:GetItem", []string{prefix + "7"}}) {
			t.Errorf("%q: a key with the prefix is denied by %v", prefix, d.Statement[0].Condition)
		}
		for _, other := range []string{"aXbY/7", "nobody/7", "7", ""} {
			if !d.denies(access{"dynamodb:GetItem", []string{other}}) {
				t.Errorf("%q: the key %q is allowed by %v", prefix, other, d.Statement[0].Condition)
			}
		}
	}
}

func TestPolicyRejectsIncompleteSharedLeasePrefix(t *testing.T) {
	for _, prefix := range []string{"", "l", "lease", "leasehold", "leasehold/", "leasehold/session"} {
		text, err := table.Spec{}.Policy(arn, table.Use, "billing/", prefix)
		if err == nil || text != "" || !strings.Contains(err.Error(), strconv.Quote(prefix)) || !strings.Contains(err.Error(), table.SharedLeases) {
			t.Errorf("%q: %v, and a policy of %d bytes", prefix, err, len(text))
		}
	}
	for _, prefix := range []string{"billing/", "leasehold-app/", "leasehold/billing/", "m", table.SharedLeases, table.SharedLeases + "abc"} {
		d := policy(t, table.Spec{}, arn, table.Use, prefix)
		if d.denies(access{"dynamodb:UpdateItem", []string{prefix + "7"}}) {
			t.Errorf("%q: a key with the prefix is denied", prefix)
		}
	}
}
