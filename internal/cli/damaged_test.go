//go:build unix

package cli_test

import (
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/leasehold-go/leasehold/internal/lab"
	"github.com/leasehold-go/leasehold/internal/records"
	"github.com/leasehold-go/leasehold/table"
)

func TestBreakRemovesDamagedRecordOnlyIfUnchanged(t *testing.T) {
	t.Parallel()
	for _, f := range foreigners() {
		if n := f.layout.Name(); n != "awslabs" && n != "python-dynamodb-lock" && n != "dynamo-dlm" {
			// Skip this layout. The other layouts cover the three kinds of table keys: no sort key,
			// a string as sort key, and a number as sort key.
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
			says(0, "", "get", "job", "--held") // the record of the key "job" was not changed
		})
	}
}

// The damaged record is in the table "locks", but LEASEHOLD_TABLE is "others", and LEASEHOLD_LAYOUT
// is not set. So the command that leasehold suggests must contain the flags --table and --layout.
func TestSuggestedBreakCommandContainsTableAndLayout(t *testing.T) {
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

// troubled starts a server. It also returns the path of a file, which the test's CMD creates just
// before CMD ends. From then on, for the time d, the server answers every request with the given
// error code.
func troubled(t *testing.T, code string, d time.Duration) (f *faulty, ended string) {
	t.Helper()
	ended = filepath.Join(t.TempDir(), "ended")
	return newFaulty(t, table.Spec{}, faultIf(func(string, *http.Request) bool {
		info, err := os.Stat(ended)
		return err == nil && time.Since(info.ModTime()) < d
	}, refusing(code))), ended
}

func TestRunRetriesFailedReleaseUntilSuccess(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ args, after []string }{
		"done mark": {[]string{"-l", "1m", "--once", "v1"}, []string{"get", "k", "--done", "v1"}},
		"key":       {[]string{"-l", "15m"}, []string{"run", "-n", "k", "--", "true"}},
	} {
		for _, trouble := range []string{"ThrottlingException", "ExpiredTokenException"} {
			t.Run(name+", "+trouble, func(t *testing.T) {
				t.Parallel()
				f, ended := troubled(t, trouble, 6*time.Second)
				refuses(t, f.env, 0, "leasehold: CMD has ended: trying to ", append(append([]string{"run", "k"}, tc.args...), "--", "touch", ended)...)
				succeeds(t, f.env, tc.after...)
			})
		}
	}
}

func TestRunExitsWith123IfFinishedWorkCannotBeRecorded(t *testing.T) {
	t.Parallel()
	f, ended := troubled(t, "ThrottlingException", time.Hour)
	refuses(t, f.env, 123, "leasehold: k: the mark that this is done may not be stored, so the work may be repeated",
		"run", "k", "-l", "3s", "--once", "v1", "--", "touch", ended)
}

func TestRunReportsFailedReleaseInJSON(t *testing.T) {
	t.Parallel()
	f, ended := troubled(t, "ThrottlingException", time.Hour)
	refuses(t, f.env, 0, `{"note":"k could not be released, and will be free when the lease expires, by `+time.Now().Format("2006-"), "run", "k", "-l", "3s", "--json", "--", "touch", ended)
}

func TestSIGINTStopsRetriesOfFailedRelease(t *testing.T) {
	t.Parallel()
	type variant struct {
		args []string
		code int
		says string
	}
	lab.ParallelVariants(t, map[string]variant{
		"done mark": {[]string{"--once", "v1"}, 123, "the mark that this is done may not be stored"},
		"key":       {nil, 0, "k could not be released, and will be free when the lease expires, by "},
		"keys":      {[]string{"-k", "b"}, 0, "k and b could not be released, and will be free when the lease expires, by "},
	}, func(t *testing.T, tc variant) {
		f, ended := troubled(t, "ThrottlingException", time.Hour)
		p := start(t, t.TempDir(), f.env, append(append([]string{"run", "k", "-l", "15m"}, tc.args...), "--", "touch", ended)...)
		eventually(t, "leasehold tries to release", func() bool { return strings.Contains(p.stderr.String(), "trying to") })
		began := time.Now()
		p.signal(syscall.SIGINT)
		p.ends(tc.code)
		p.said(tc.says)
		lab.WantTook(t, "after the signal, the command ended in", began, 0, 15*time.Second) // 15 s is much less than the lease of 15 minutes
	})
}
