package cli_test

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/leasehold-go/leasehold/internal/lab"
	"github.com/leasehold-go/leasehold/layout"
	"github.com/leasehold-go/leasehold/table"
)

func TestRewriteMakesFreeRecordsReadableForDynamolock(t *testing.T) {
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
	// read returns all records, and the keys of the records that the library dynamolock can
	// read. dynamolock expects a lease with a unit, and the native layout writes none.
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
	if lab.Text(after["jobs/theirs"], "recordVersionNumber") != "1:v" {
		t.Error("a record was written that dynamolock can read")
	}
	if all, _ := rewrite(1, "jobs/1 jobs/2 jobs/theirs others/1 ", "--yes", "--json"); len(all) != 2 || !strings.Contains(all[0], `"key":"jobs/held","result":"held"`) ||
		all[1] != `{"table":"locks","key":"others/1","result":"rewritten","what":"leaseDuration is 20000"}` {
		t.Errorf("the rest: %q", all)
	}
	succeeds(t, env, "break", "jobs/held", "--yes", "--token", tokenOf(t, env, "jobs/held"))
	const every = "jobs/1 jobs/2 jobs/held jobs/theirs others/1 "
	if rest, _ := rewrite(0, every, "--yes"); len(rest) != 1 || !strings.HasPrefix(rest[0], "rewritten\tjobs/held\t") {
		t.Errorf("once it is free: %q", rest)
	}
	if none, errs := rewrite(0, every, "--yes"); !slices.Equal(none, []string{""}) || !strings.Contains(errs, "nothing to rewrite") {
		t.Errorf("again: %q, %s", none, errs)
	}
}

func tokenOf(t *testing.T, env []string, key string) string {
	t.Helper()
	out, _, _ := said(t, env, "get", key)
	_, rest, _ := strings.Cut(out, "token\t")
	token, _, _ := strings.Cut(rest, "\n")
	return token
}
