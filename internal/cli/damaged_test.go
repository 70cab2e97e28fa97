//go:build unix

package cli_test

import (
	"maps"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/leasehold-go/leasehold/internal/lab"
	"github.com/leasehold-go/leasehold/internal/records"
)

func TestBreakRemovesDamagedRecordOnlyIfUnchanged(t *testing.T) {
	t.Parallel()
	for _, f := range foreigners() {
		if n := f.layout.Name(); n != "awslabs" && n != "python-dynamodb-lock" && n != "dynamo-dlm" {
			// These three layouts cover the three kinds of table keys: no sort key, a
			// string as sort key, and a number as sort key.
			continue
		}
		t.Run(f.layout.Name(), func(t *testing.T) {
			t.Parallel()
			server := f.holds(t)
			put := func(item map[string]types.AttributeValue) { putItem(t, server.db, item) }
			proto := lab.Must(records.Of(f.layout))(t)
			whole := maps.Clone(f.item)
			whole[proto.Schema().Partition] = s("it's bad")
			damaged := maps.Clone(whole)
			delete(damaged, f.damaged)
			damaged["note"] = &types.AttributeValueMemberSS{Value: []string{"b", "a"}}
			put(damaged)
			says := func(code int, want string, args ...string) {
				t.Helper()
				refuses(t, server.env, code, want, args...)
			}
			sort := ""
			if proto.Schema().Sort != "" {
				sort = "--sort-key " + proto.Schema().KeyOf(whole).Sort + " "
			}
			for code, args := range map[int][]string{2: {"get", "it's bad"}, 125: {"run", "-n", "it's bad", "--", "true"}} {
				says(code, `see and remove it with leasehold break `+sort+`'it'\''s bad'`, args...)
			}
			says(2, "break shows what it removes, and asks at a terminal, and there is none", "break", "it's bad")
			remove := func() *screen {
				t.Helper()
				s := onTerminal(t, t.TempDir(), server.env, "break", "it's bad")
				s.shows(`"note": {\r\n    "SS": \[\r\n      "a",\r\n      "b"(?s:.*)It is not a valid lock record: \w+ [^\r\n]+\.\r\n(?s:.*)Remove the record of "it's bad"[^?]*, if it is still as shown\? \[y/N\] $`)
				return s
			}
			asked := remove()
			changed := maps.Clone(damaged)
			changed["note"] = s("by hand")
			put(changed)
			asked.types("y\n")
			asked.ends(1)
			asked.shows(`has changed meanwhile: "it's bad"[^:]*: nothing was removed: check\s+with`)
			put(whole)
			put(damaged)
			asked = remove()
			asked.types("y\n")
			asked.ends(0)
			asked.shows(`removed the record of "it's bad"`)
			says(1, "no such record", "break", "it's bad")
			says(0, "", "get", "job", "--held") // the record of the key job was not changed
		})
	}
}

// If a suggested command lacked the flags --table and --layout, it would use the table in
// LEASEHOLD_TABLE, which is a different table here.
func TestCommandSuggestedForDamagedRecordContainsTable(t *testing.T) {
	t.Parallel()
	db, env := served(t)
	putItem(t, db, map[string]types.AttributeValue{"key": s("damaged")})
	env = append(env, "LEASEHOLD_TABLE=others")
	const flags = " --table locks --layout awslabs "
	for code, args := range map[int][]string{
		2:   {"ls", "-t", "locks", "--layout=awslabs"},
		125: {"run", "-n", "-t", "locks", "--layout", "awslabs", "damaged", "--", "true"},
	} {
		refuses(t, env, code, "see and remove it with leasehold break"+flags+"damaged\n", args...)
	}
}
