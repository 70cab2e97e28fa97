package cli_test

import (
	"bytes"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/leasehold-go/leasehold/internal/lab"
	"github.com/leasehold-go/leasehold/layout"
	"github.com/leasehold-go/leasehold/table"
)

func TestBreakWarnsIfHolderCannotBeNotified(t *testing.T) {
	t.Parallel()
	for _, as := range []string{"text", "json"} {
		t.Run(as, func(t *testing.T) {
			t.Parallel()
			f := newFaulty(t, table.Spec{}, faultIf(func(op string, r *http.Request) bool {
				body := bodyOf(r)
				return op == "UpdateItem" && bytes.Contains(body, []byte("brokenGrants")) && !bytes.Contains(body, []byte("ownerName"))
			}, denies("UpdateItem")))
			_, lock := sharedLock(t, f.db)
			args := []string{"break", "job", "--yes", "--token", strconv.FormatInt(lock.Token(), 10)}
			want, kind := "broke the grant of job to ", "up to twenty minutes"
			if as == "json" {
				args, want, kind = append(args, "--json"), `"key":"job"`, `"error":"untold"`
			}
			out, errs, code := said(t, f.env, args...)
			if code != 0 || !strings.Contains(out, want) || !strings.Contains(errs, kind) || !strings.Contains(errs, "up to twenty minutes") {
				t.Errorf("exit code %d, %s%s", code, out, errs)
			}
			refuses(t, f.env, 1, "", "get", "job", "--held")
		})
	}
}

// DynamoDB removes the record, but its reply is lost. Before forget repeats the request, another
// client writes a record of the key.
func TestForgetReportsUnknownOutcomeIfReplyIsLost(t *testing.T) {
	t.Parallel()
	var f *faulty
	var removed atomic.Bool
	f = newFaulty(t, table.Spec{}, func(op string, w http.ResponseWriter, r *http.Request, next http.Handler) {
		if op != "DeleteItem" || removed.Swap(true) {
			next.ServeHTTP(w, r)
			return
		}
		next.ServeHTTP(httptest.NewRecorder(), r)
		f.empty()
		putItem(t, f.db, map[string]types.AttributeValue{"key": &types.AttributeValueMemberS{Value: "job"}})
		unavailable(op, w, r, next)
	})
	succeeds(t, f.env, "run", "job", "--", "true")
	stderr := refuses(t, f.env, 2, "outcome unknown", "forget", "job", "--yes")
	lab.WantNoPart(t, "stderr", stderr, "nothing was removed")
}

func TestForgetRemovesOnlyRecordsOfFreeKeys(t *testing.T) {
	t.Parallel()
	for _, f := range foreigners() {
		t.Run(f.layout.Name(), func(t *testing.T) {
			t.Parallel()
			server := f.holds(t)
			says := func(wantCode int, want string, args ...string) {
				t.Helper()
				if out, errs, code := said(t, server.env, args...); code != wantCode || !strings.Contains(out+errs, want) {
					t.Errorf("%q: exit code %d, %s%s", args, code, out, errs)
				}
			}
			says(1, " is held by "+f.name, "forget", "job", "--yes")
			says(0, "", "get", "job", "--held")
			damaged := maps.Clone(f.item)
			delete(damaged, f.damaged)
			putItem(t, server.db, damaged)
			says(1, "leasehold break", "forget", "job", "--yes")
			says(2, "is damaged", "break", "job")
			says(0, "", "run", "mine", "--", "true")
			if f.layout.Capabilities().KeepOnRelease {
				says(0, "forgot mine", "forget", "mine", "--yes")
			} else {
				says(1, "no such record", "forget", "mine", "--yes")
			}
			says(1, "no such record", "get", "mine")
			says(0, "", "run", "mine", "--", "true")
			says(2, "is damaged", "break", "job")
		})
	}
}

func TestForgetCommandRejectsRecordOfSharedLease(t *testing.T) {
	t.Parallel()
	db, env := served(t)
	locks, lock := sharedLock(t, db)
	row := "leasehold/session/" + lock.Record().Session
	for range 2 { // first round: the session is live; second round: the session has ended
		refuses(t, env, 1, "is the row of a shared lease rather than a key: nothing was removed", "forget", row, "--yes")
		refuses(t, env, 1, "is the row of a shared lease", "break", row) // if forget had removed the row, break would report a missing record instead
		lab.OK(t, locks.Close(t.Context()))
	}
}

func TestTableRewriteConvertsOnlyRecordsOfFreeKeys(t *testing.T) {
	t.Parallel()
	db, env := served(t)
	lab.OK(t, table.Create(t.Context(), db, table.Spec{Name: "locks", Layout: layout.Dynamolock{}}))
	succeeds(t, env, "run", "jobs/1", "--data", "step 1", "--", "true")
	succeeds(t, env, "run", "jobs/2", "--", "true")
	succeeds(t, env, "run", "others/1", "--", "true")
	succeeds(t, env, "acquire", "jobs/held", "-l", "1h", "-f", t.TempDir()+"/grant")
	putItem(t, db, map[string]types.AttributeValue{
		"key": s("jobs/theirs"), "ownerName": s("go-1"), "leaseDuration": s("20s"), "recordVersionNumber": s("1:v"), "isReleased": s("1"),
	})
	// read returns all records. The string "readable" lists the keys of those records that the
	// library dynamolock can read. The native layout writes a lease without a unit, such as 20000,
	// and dynamolock cannot read such a lease.
	read := func() (items map[string]map[string]types.AttributeValue, readable string) {
		items = map[string]map[string]types.AttributeValue{}
		for _, item := range lab.Must(db.Scan(t.Context(), &dynamodb.ScanInput{TableName: aws.String("locks")}))(t).Items {
			items[lab.Text(item, "key")] = item
		}
		for _, key := range slices.Sorted(maps.Keys(items)) {
			if _, err := time.ParseDuration(lab.Text(items[key], "leaseDuration")); err == nil {
				readable += key + " "
			}
		}
		return items, readable
	}
	before, _ := read()
	rewrite := func(code int, readable string, args ...string) (lines []string, stderr string) {
		t.Helper()
		stdout, stderr, got := said(t, env, append([]string{"table", "rewrite", "--layout", "dynamolock"}, args...)...)
		if _, now := read(); got != code || now != readable {
			t.Fatalf("rewrite %v: exit code %d: %s%s; dynamolock can read %s, want %s", args, got, stdout, stderr, now, readable)
		}
		return strings.Split(strings.TrimSuffix(stdout, "\n"), "\n"), stderr
	}
	due, errs := rewrite(1, "jobs/theirs ", "jobs/")
	if len(due) != 3 || due[0] != "due\tjobs/1\tleaseDuration is 20000" || due[1] != "due\tjobs/2\tleaseDuration is 20000" ||
		!strings.HasPrefix(due[2], "held\tjobs/held\tleaseDuration is 3600000\tby ") ||
		!strings.Contains(errs, "nothing was rewritten: rewrite asks at a terminal, and there is none: use --yes") {
		t.Errorf("without a terminal: %q, %s", due, errs)
	}
	done, errs := rewrite(1, "jobs/1 jobs/2 jobs/theirs ", "jobs/", "--yes")
	if len(done) != 3 || done[0] != "rewritten\tjobs/1\tleaseDuration is 20000" || !strings.HasPrefix(done[2], "held\tjobs/held\t") ||
		!strings.Contains(errs, "rewrote 2 of 3 records, the others are held") {
		t.Errorf("rewritten: %q, %s", done, errs)
	}
	after, _ := read()
	for _, key := range []string{"jobs/1", "jobs/2"} {
		if after[key]["isReleased"] == nil || after[key]["expiresAt"] != nil {
			t.Errorf("%s: %v", key, after[key])
		}
	}
	if data, ok := after["jobs/1"]["data"].(*types.AttributeValueMemberB); !ok || string(data.Value) != "step 1" {
		t.Error("data is gone")
	}
	if was, now := lab.Number(before["jobs/1"], "fencingToken"), lab.Number(after["jobs/1"], "fencingToken"); now <= was {
		t.Errorf("token %s after %s", now, was)
	}
	lab.Want(t, "version of their record", lab.Text(after["jobs/theirs"], "recordVersionNumber"), "1:v")
	if all, _ := rewrite(1, "jobs/1 jobs/2 jobs/theirs others/1 ", "--yes", "--json"); len(all) != 2 || !strings.Contains(all[0], `"key":"jobs/held","result":"held"`) ||
		all[1] != `{"table":"locks","key":"others/1","result":"rewritten","what":"leaseDuration is 20000"}` {
		t.Errorf("all keys: %q", all)
	}
	succeeds(t, env, "break", "jobs/held", "--yes", "--token", tokenOf(t, env, "jobs/held"))
	const every = "jobs/1 jobs/2 jobs/held jobs/theirs others/1 "
	if rest, _ := rewrite(0, every, "--yes"); len(rest) != 1 || !strings.HasPrefix(rest[0], "rewritten\tjobs/held\t") {
		t.Errorf("after break: %q", rest)
	}
	if none, errs := rewrite(0, every, "--yes", "jobs/"); !slices.Equal(none, []string{""}) || !strings.Contains(errs, "dynamolock reads every record of \"jobs/*\"") {
		t.Errorf("again, with a prefix: %q, %s", none, errs)
	}
}

func tokenOf(t *testing.T, env []string, key string) string {
	t.Helper()
	out, _, _ := said(t, env, "get", key)
	_, rest, _ := strings.Cut(out, "token\t")
	token, _, _ := strings.Cut(rest, "\n")
	return token
}
