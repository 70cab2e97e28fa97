package cli_test

import (
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/leasehold-go/leasehold/internal/cli/say"
	"github.com/leasehold-go/leasehold/internal/lab"
	"github.com/leasehold-go/leasehold/internal/records"
	"github.com/leasehold-go/leasehold/layout"
	"github.com/leasehold-go/leasehold/table"
)

func s(v string) types.AttributeValue { return &types.AttributeValueMemberS{Value: v} }
func n(v int64) types.AttributeValue  { return &types.AttributeValueMemberN{Value: fmt.Sprint(v)} }

// foreign is the lock record of a process that used another lock library and then died.
type foreign struct {
	layout  layout.Layout
	item    map[string]types.AttributeValue
	damaged string // name of an attribute that every record needs; tests remove the attribute to damage the record
	version string
	row     string // expected line of leasehold ls in a pipe, without the key
	name    string // name of the owner, as messages show it
}

func foreigners() []foreign {
	expires := time.Now().Add(-10 * time.Second).Truncate(time.Second)
	const rfc = "2006-01-02T15:04:05.000Z07:00"
	return []foreign{{
		layout: layout.AWSLabs{},
		item: map[string]types.AttributeValue{
			"key": s("job"), "ownerName": s("java-1"), "leaseDuration": s("1000"), "recordVersionNumber": s("v-1"),
		},
		damaged: "leaseDuration", version: "v-1", row: "java-1\t\t1s\t", name: "java-1",
	}, {
		layout: layout.Dynamolock{},
		item: map[string]types.AttributeValue{
			"key": s("job"), "ownerName": s("go-1"), "leaseDuration": s("1s"), "recordVersionNumber": s("1:v"),
		},
		damaged: "ownerName", version: "1:v", row: "go-1\t\t1s\t", name: "go-1",
	}, {
		layout: layout.PythonDynamoDBLock{},
		item: map[string]types.AttributeValue{
			"lock_key": s("job"), "sort_key": s("-"), "owner_name": s("py-1"), "lease_duration": n(1),
			"record_version_number": s("v-1"), "expiry_time": n(time.Now().Add(time.Hour).Unix()),
		},
		damaged: "expiry_time", version: "v-1", row: "-\tpy-1\t\t1s\t", name: "py-1",
	}, {
		layout: layout.DynamoDLM{},
		item: map[string]types.AttributeValue{
			"resource_id": s("job"), "concurrency_id": n(0), "release_code": s("c0de"), "expires": n(expires.Unix()),
		},
		damaged: "expires", version: "c0de", row: "0\t\t\t" + expires.UTC().Format(rfc) + "\t", name: "somebody",
	}, {
		layout: layout.DyndbMutex{},
		item: map[string]types.AttributeValue{
			"lockname": s("job"), "holder": s("mutex-1"), "expire_ts": n(expires.UnixMilli()), "ttl": n(expires.UnixMilli() + 172800000),
		},
		damaged: "holder", version: fmt.Sprint(expires.UnixMilli()),
		row: "mutex-1\t\t" + expires.UTC().Format(rfc) + "\t", name: "mutex-1",
	}}
}

// The method "holds" starts a server whose table contains the record f.item: the process that used
// the other library holds the key "job".
func (f foreign) holds(t *testing.T) *faulty {
	t.Helper()
	server := newFaulty(t, table.Spec{Layout: f.layout}, healthy)
	server.env = append(server.env, "LEASEHOLD_LAYOUT="+f.layout.Name())
	putItem(t, server.db, f.item)
	return server
}

func TestRecordsOfOtherLibrariesCanBeListedReadAndBroken(t *testing.T) {
	t.Parallel()
	for _, f := range foreigners() {
		t.Run(f.layout.Name(), func(t *testing.T) {
			env := f.holds(t).env
			prints := func(want string, args ...string) {
				t.Helper()
				lab.Want(t, strings.Join(args, " "), succeeds(t, env, args...), want)
			}
			prints("job\t"+f.row+"\n", "ls")
			prints("job\t"+f.row+"\tdead\n", "ls", "--check")
			if out := succeeds(t, env, "get", "job"); !strings.Contains(out, "version\t"+f.version+"\n") || strings.Contains(out, "token") {
				t.Errorf("get: %q, want the version %s and no token", out, f.version)
			}
			refuses(t, env, 2, "--yes needs --token", "break", "job", "--yes")
			refuses(t, env, 1, "has changed: now held by "+f.name, "break", "job", "--yes", "--token", "another")
			lab.WantMatch(t, "break", succeeds(t, env, "break", "job", "--yes", "--token", f.version), " to "+regexp.QuoteMeta(f.name)+"\n$")
			prints("", "ls")
		})
	}
}

func TestListContinuesPastDamagedRecord(t *testing.T) {
	t.Parallel()
	native := foreign{
		layout: layout.Native{}, damaged: "leaseDuration", row: "web-1\t\t1s\t",
		item: map[string]types.AttributeValue{
			"key": s("job"), "ownerName": s("web-1"), "leaseDuration": s("1000"), "recordVersionNumber": s("v-1"),
		},
	}
	for _, f := range append(foreigners(), native) {
		t.Run(f.layout.Name(), func(t *testing.T) {
			server := f.holds(t)
			env := server.env
			f.item[lab.Must(records.Of(f.layout))(t).Schema().Partition] = s("damaged")
			delete(f.item, f.damaged)
			putItem(t, server.db, f.item)
			out, errs, code := said(t, env, "ls")
			if out != "job\t"+f.row+"\n" || code != 2 || !strings.HasPrefix(errs, "leasehold: the record of damaged ") ||
				!strings.Contains(errs, " is not a lock of this layout: ") || !strings.Contains(errs, f.damaged+" is missing") {
				t.Errorf("%q, %s, exit code %d", out, errs, code)
			}
			lab.WantMatch(t, "get", refuses(t, env, 2, "", "get", "damaged", "--json"), `^{"error":"bad_record","message":"the record of damaged `)
			refuses(t, env, 125, f.damaged+" is missing", "run", "-n", "damaged", "--", "true")
		})
	}
}

// renew and release must use the layout in the grant file, even if the settings name the native
// layout. Otherwise a renewal would write a lease that dynamolock cannot read, and a release would
// add an expiry time for DynamoDB's TTL.
func TestRenewAndReleaseUseLayoutFromGrantFile(t *testing.T) {
	t.Parallel()
	for _, f := range foreigners() {
		t.Run(f.layout.Name(), func(t *testing.T) {
			server := f.holds(t)
			env := server.env
			stored := func() string {
				t.Helper()
				for _, item := range lab.Must(server.db.Scan(t.Context(), &dynamodb.ScanInput{TableName: aws.String("locks")}))(t).Items {
					if raw, err := say.Item(item); err == nil && strings.Contains(string(raw), `{"S":"mine"}`) {
						return string(raw)
					}
				}
				return ""
			}
			elsewhere := append(env[:len(env)-1:len(env)-1], "LEASEHOLD_LAYOUT=native")
			file := filepath.Join(t.TempDir(), "grant")
			succeeds(t, env, "acquire", "mine", "-l", "30s", "-f", file)
			stderr := refuses(t, elsewhere, 2, "", "renew", "--layout", "native", "-f", file)
			lab.WantMatch(t, "renew in another layout", stderr, ": leave out --layout\n$")
			succeeds(t, elsewhere, "renew", "-f", file)
			if raw := stored(); raw == "" || f.layout == (layout.Dynamolock{}) && !strings.Contains(raw, `{"S":"30s"}`) {
				t.Errorf("renewed to %s", raw)
			}
			succeeds(t, elsewhere, "release", "-f", file)
			lab.WantNoPart(t, "the released record", stored(), "expiresAt")
		})
	}
}

func TestDemoSucceedsInNonNativeLayouts(t *testing.T) {
	t.Parallel()
	for _, l := range []layout.Layout{layout.PythonDynamoDBLock{}, layout.DynamoDLM{}, layout.DyndbMutex{}} {
		t.Run(l.Name(), func(t *testing.T) {
			t.Parallel()
			f := newFaulty(t, table.Spec{Layout: l}, healthy)
			demo := succeeds(t, f.env, "demo", "--table", "locks", "--layout", l.Name())
			lab.WantParts(t, "demo", demo, "b  continued: its write was refused, its CMD had been stopped\n")
			f.empty()
		})
	}
}
