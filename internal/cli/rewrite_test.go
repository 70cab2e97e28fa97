package cli_test

import (
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

// dynamolockReads parses a lease as dynamolock does.
func dynamolockReads(item map[string]types.AttributeValue) error {
	lease, _ := item["leaseDuration"].(*types.AttributeValueMemberS)
	_, err := time.ParseDuration(lease.Value)
	return err
}

func TestRewriteMakesFreeRecordsReadableForDynamolock(t *testing.T) {
	t.Parallel()
	db, env := served(t)
	lab.OK(t, table.Create(t.Context(), db, table.Spec{Name: "locks", Layout: layout.Dynamolock{}}))
	item := func(key string) map[string]types.AttributeValue {
		t.Helper()
		return lab.Must(db.GetItem(t.Context(), &dynamodb.GetItemInput{
			TableName: aws.String("locks"), Key: map[string]types.AttributeValue{"key": s(key)}, ConsistentRead: aws.Bool(true),
		}))(t).Item
	}
	succeeds(t, env, "run", "jobs/1", "--data", "step 1", "--", "true")
	succeeds(t, env, "run", "jobs/2", "--", "true")
	succeeds(t, env, "run", "others/1", "--", "true")
	succeeds(t, env, "acquire", "jobs/held", "-l", "1h", "-f", t.TempDir()+"/grant")
	putItem(t, db, map[string]types.AttributeValue{
		"key": s("jobs/theirs"), "ownerName": s("go-1"), "leaseDuration": s("20s"), "recordVersionNumber": s("1:v"), "isReleased": s("1"),
	})
	if err := dynamolockReads(item("jobs/1")); err == nil || !strings.Contains(err.Error(), "missing unit") {
		t.Fatalf("dynamolock reads what native wrote: %v", err)
	}
	before := item("jobs/1")

	lines := func(out string) []string { return strings.Split(strings.TrimSuffix(out, "\n"), "\n") }
	rewrite := func(code int, args ...string) ([]string, string) {
		t.Helper()
		out, errs, got := said(t, env, append([]string{"table", "rewrite", "--layout", "dynamolock"}, args...)...)
		if got != code {
			t.Fatalf("rewrite %v: %q, %s, exit code %d", args, out, errs, got)
		}
		return lines(out), errs
	}
	due, errs := rewrite(1, "jobs/")
	if !strings.Contains(errs, "nothing was rewritten: rewrite asks at a terminal, and there is none: use --yes") {
		t.Errorf("without a terminal: %s", errs)
	}
	if len(due) != 3 || due[0] != "due\tjobs/1\tleaseDuration is 20000" || due[1] != "due\tjobs/2\tleaseDuration is 20000" ||
		!strings.HasPrefix(due[2], "held\tjobs/held\tleaseDuration is 3600000\tby ") {
		t.Errorf("in the way: %q", due)
	}
	if err := dynamolockReads(item("jobs/1")); err == nil {
		t.Error("nobody has said yes, and it has written")
	}
	done, errs := rewrite(1, "jobs/", "--yes")
	if len(done) != 3 || done[0] != "rewritten\tjobs/1\tleaseDuration is 20000" || !strings.HasPrefix(done[2], "held\tjobs/held\t") ||
		!strings.Contains(errs, "rewrote 2 of 3 records, the others are held") {
		t.Errorf("rewritten: %q, %s", done, errs)
	}
	for _, key := range []string{"jobs/1", "jobs/2"} {
		now := item(key)
		if err := dynamolockReads(now); err != nil || now["isReleased"] == nil || now["expiresAt"] != nil {
			t.Errorf("%s: %v, %v", key, err, now)
		}
	}
	if data, ok := item("jobs/1")["data"].(*types.AttributeValueMemberB); !ok || string(data.Value) != "step 1" {
		t.Error("data is gone")
	}
	if token := func(i map[string]types.AttributeValue) string {
		return i["fencingToken"].(*types.AttributeValueMemberN).Value
	}; token(item("jobs/1")) <= token(before) {
		t.Errorf("token %s after %s", token(item("jobs/1")), token(before))
	}
	if version, ok := item("jobs/theirs")["recordVersionNumber"].(*types.AttributeValueMemberS); !ok || version.Value != "1:v" {
		t.Error("a record was written that dynamolock can read")
	}
	if err := dynamolockReads(item("others/1")); err == nil {
		t.Error("a record was written whose key has not the prefix")
	}
	if all, _ := rewrite(1, "--yes", "--json"); len(all) != 2 || !strings.Contains(all[0], `"key":"jobs/held","result":"held"`) ||
		all[1] != `{"table":"locks","key":"others/1","result":"rewritten","what":"leaseDuration is 20000"}` {
		t.Errorf("the rest: %q", all)
	}
	succeeds(t, env, "break", "jobs/held", "--yes", "--token", tokenOf(t, env, "jobs/held"))
	if rest, _ := rewrite(0, "--yes"); len(rest) != 1 || !strings.HasPrefix(rest[0], "rewritten\tjobs/held\t") {
		t.Errorf("once it is free: %q", rest)
	}
	if none, errs := rewrite(0, "--yes"); !slices.Equal(none, []string{""}) || !strings.Contains(errs, "nothing to rewrite") {
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

func TestRewriteRejectsLayoutThatNeedsNoRewrite(t *testing.T) {
	t.Parallel()
	_, env := served(t)
	for _, name := range []string{"native", "python-dynamodb-lock", "dynamo-dlm", "dyndb-mutex"} {
		refuses(t, env, 2, "nothing to rewrite", "table", "rewrite", "--layout", name, "--yes")
	}
}
