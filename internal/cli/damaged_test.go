package cli_test

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/leasehold-go/leasehold/internal/records"
)

func TestADamagedRecordIsShownAndExactlyThatIsRemoved(t *testing.T) {
	t.Parallel()
	for _, f := range foreigners() {
		if n := f.layout.Name(); n != "awslabs" && n != "python-dynamodb-lock" && n != "dynamo-dlm" {
			continue // the key, the sort key and its number are what differs
		}
		t.Run(f.layout.Name(), func(t *testing.T) {
			t.Parallel()
			put, env := f.holds(t)
			proto, err := records.Of(f.layout)
			if err != nil {
				t.Fatal(err)
			}
			whole := maps.Clone(f.item)
			whole[proto.Schema().Partition] = s("it's bad")
			damaged := maps.Clone(whole)
			delete(damaged, f.damaged)
			damaged["note"] = &types.AttributeValueMemberSS{Value: []string{"b", "a"}}
			put(damaged)
			says := func(wantCode int, want string, args ...string) string {
				t.Helper()
				out, errs, code := said(t, env, args...)
				if code != wantCode || !strings.Contains(errs, want) {
					t.Errorf("%q: exit code %d, %s", args, code, errs)
				}
				return out
			}
			sort, where := "", ""
			if proto.Schema().Sort != "" {
				where = " (" + proto.Schema().KeyOf(whole).Sort + ")"
				sort = "--sort-key " + proto.Schema().KeyOf(whole).Sort + " "
			}
			for code, args := range map[int][]string{2: {"get", "it's bad"}, 125: {"run", "-n", "it's bad", "--", "true"}} {
				says(code, `see it with leasehold get --raw `+sort+`'it'\''s bad' and, if nobody can hold it, remove it with leasehold break --damaged `+sort+`'it'\''s bad'`, args...)
			}
			raw := says(0, "", "get", "--raw", "it's bad")
			var shown map[string]map[string]any
			if err := json.Unmarshal([]byte(raw), &shown); err != nil || len(shown) != len(damaged) || shown["note"]["SS"] == nil {
				t.Errorf("%s, %v", raw, err)
			}
			file := filepath.Join(t.TempDir(), "raw")
			if err := os.WriteFile(file, []byte(raw), 0o600); err != nil {
				t.Fatal(err)
			}
			remove := []string{"break", "--damaged", "it's bad", "--yes", "--if-raw", file}
			changed := maps.Clone(damaged)
			changed["note"] = s("by hand")
			put(changed)
			says(1, `has changed meanwhile: "it's bad"`+where+": nothing was removed: look again with leasehold get --raw ", remove...)
			put(whole)
			says(1, "reads as a lock, and nothing is damaged", remove...)
			put(damaged)
			if out := says(0, "", remove...); out != `removed the record of "it's bad"`+where+"\n" {
				t.Errorf("said %q", out)
			}
			says(1, "no such record", remove...)
			says(0, "", "get", "job", "--held") // which was left alone
		})
	}
}

func TestASemaphoreAndASharedLeaseAreNotDamaged(t *testing.T) {
	t.Parallel()
	_, env := served(t)
	env = append(env, "LEASEHOLD_TABLE=locks")
	if _, errs, code := said(t, env, "run", "-p", "2", "gpu", "--", "true"); code != 0 {
		t.Fatalf("exit code %d, %s", code, errs)
	}
	raw, _, _ := said(t, env, "get", "--raw", "gpu")
	file := filepath.Join(t.TempDir(), "raw")
	if err := os.WriteFile(file, []byte(raw), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, errs, code := said(t, env, "break", "gpu", "--damaged", "--yes", "--if-raw", file); code != 1 || !strings.Contains(errs, "gpu is a semaphore, and nothing is damaged") {
		t.Errorf("exit code %d, %s", code, errs)
	}
	if _, errs, code := said(t, env, "get", "gpu", "--held"); code != 2 || !strings.Contains(errs, "leasehold get gpu/N --held") {
		t.Errorf("exit code %d, %s", code, errs)
	}
}

// Without them, the commands would look into another table.
func TestTheCommandsToTypeForADamagedRecordNameItsTable(t *testing.T) {
	t.Parallel()
	db, env := served(t)
	if _, err := db.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: aws.String("locks"), Item: map[string]types.AttributeValue{
		"key": &types.AttributeValueMemberS{Value: "damaged"},
	}}); err != nil {
		t.Fatal(err)
	}
	env = append(env, "LEASEHOLD_TABLE=others")
	const flags = " --table locks --layout awslabs "
	for code, args := range map[int][]string{
		2:   {"ls", "-t", "locks", "--layout=awslabs"},
		125: {"run", "-n", "-t", "locks", "--layout", "awslabs", "damaged", "--", "true"},
	} {
		want := "see it with leasehold get" + flags + "--raw damaged and, if nobody can hold it, remove it with leasehold break" + flags + "--damaged damaged\n"
		if _, errs, got := said(t, env, args...); got != code || !strings.Contains(errs, want) {
			t.Errorf("%q: exit code %d, %s", args, got, errs)
		}
	}
}
