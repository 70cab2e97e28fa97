//go:build unix

package cli_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/creack/pty"
	"golang.org/x/term"

	"github.com/leasehold-go/leasehold/internal/lab"
	"github.com/leasehold-go/leasehold/internal/visible"
	"github.com/leasehold-go/leasehold/layout"
)

// ownSequences lists all escape sequences that leasehold itself writes to a terminal.
var ownSequences = []string{
	"\r\x1b[K", "\x1b[H", "\x1b[K", "\x1b[J", "\x1b[?1049h\x1b[?25l\x1b[?7l", "\x1b[?7h\x1b[?25h\x1b[?1049l", // sequences that move the cursor and erase text
	"\x1b[31m", "\x1b[33m", "\x1b[0m", // sequences for colours
}

// hostileRun is a run of a command that reads text that other users may have written.
type hostileRun struct {
	args    []string
	stdin   string
	endless bool
}

// hostileRuns returns a run of each command that reads text that other users may have written.
func hostileRuns(dir, table, key string) []hostileRun {
	var all []hostileRun
	add := func(stdin string, endless bool, lines [][]string) {
		for _, args := range lines {
			all = append(all, hostileRun{args, stdin, endless})
		}
	}
	grant, err := json.Marshal(map[string]any{
		"table": table, "key": key, "owner": "me/abcdefghijklmnopqrstuvwxyz", "token": 1, "grant": "g", "versions": []string{"v"},
		"leaseMs": 5000, "trustedUntil": time.Now().Add(5 * time.Second),
	})
	if err != nil {
		panic(err)
	}
	add("n\n", false, slices.Concat(looksAt(key), watches(key), changes(key), ofTables()))
	add(string(grant), false, ofGrants())
	add("n\n", false, [][]string{{"run", "-n", "--events", filepath.Join(dir, "events"), "--metrics", filepath.Join(dir, "run.prom"), key, "--", "true"}})
	add("n\n", true, endless(key))
	return all
}

// command runs a command line and returns the output. If terminal is true, the command
// runs on a terminal; otherwise its output goes to buffers.
func (h *hostileTables) command(t *testing.T, m hostileRun, terminal bool, args ...string) (stdout, stderr []byte) {
	t.Helper()
	var stdin io.Reader = strings.NewReader(m.stdin)
	if !terminal {
		var out, err bytes.Buffer
		h.execute(stdin, &out, &err, args)
		return out.Bytes(), err.Bytes()
	}
	ours, theirs, err := pty.Open()
	lab.OK(t, err)
	defer ours.Close()
	lab.Must(term.MakeRaw(int(theirs.Fd())))(t) // the terminal must not convert line endings
	shown := make(chan []byte)
	go func() {
		b, _ := io.ReadAll(ours) // ReadAll returns when the command's end of the terminal is closed
		shown <- b
	}()
	// If stdin is a terminal, "leasehold break" asks for confirmation there. Before it asks, it
	// observes the holder for the length of a lease, unless the record is damaged. To avoid this
	// wait, stdin is the terminal only if the record is damaged.
	if args[0] == "break" && h.main(io.Discard, io.Discard, append([]string{"get"}, args[1:]...)...) == 2 {
		stdin = theirs
		lab.Must(ours.WriteString(m.stdin))(t)
	}
	h.execute(stdin, theirs, theirs, args)
	_ = theirs.Close()
	return withoutOwn(string(<-shown)), nil
}

// withoutOwn removes from text the escape sequences that leasehold itself writes.
func withoutOwn(text string) []byte {
	for _, ownSequence := range ownSequences {
		text = strings.ReplaceAll(text, ownSequence, "")
	}
	return []byte(text)
}

// check runs a command line. It fails the test if the output, or a file that the command writes,
// contains characters that would control a terminal or be invisible there. It also checks that JSON
// output is valid.
func (h *hostileTables) check(t *testing.T, l layout.Layout, m hostileRun, terminal bool) {
	t.Helper()
	args := h.onTable(l, m.args)
	stdout, stderr := h.command(t, m, terminal, args...)
	what := fmt.Sprintf("%s, terminal %v: %q", l.Name(), terminal, args)
	for _, text := range [][]byte{stdout, stderr} {
		onlyShows(t, what, text)
		if slices.Contains(args, "--json") && !terminal {
			isJSON(t, what, text)
		}
	}
	if events := filepath.Join(h.dir, "events"); slices.Contains(args, events) {
		b := lab.Must(os.ReadFile(events))(t)
		onlyShows(t, "--events", b)
		isJSON(t, "--events", b)
		lab.OK(t, os.Remove(events))
		// The metrics file contains the key unchanged. This is safe, because the user of the
		// command has chosen the key. But a hostile key would fail the check, so check the file
		// only if the key is harmless.
		metrics, key := filepath.Join(h.dir, "run.prom"), args[len(args)-3]
		b = lab.Must(os.ReadFile(metrics))(t)
		if visible.Line(key) == key {
			onlyShows(t, "--metrics", b)
		}
		lab.OK(t, os.Remove(metrics))
	}
}

// checkAll stores the row, runs each command line with the key of the row, and checks the
// output. It does nothing if the server rejects the row.
func (h *hostileTables) checkAll(t *testing.T, l layout.Layout, row map[string]types.AttributeValue, commands func(string) [][]string) {
	t.Helper()
	if h.put(t, l.Name(), row) {
		for _, args := range commands(h.keyOf(t, l.Name(), row)) {
			h.check(t, l, hostileRun{args: args, stdin: "n\n"}, false)
		}
	}
}

func TestRecordFieldsCannotControlTerminal(t *testing.T) {
	h := newHostileTables(t)
	for _, l := range h.layouts {
		for _, row := range h.spoiltRows(l, acts) {
			h.checkAll(t, l, row, looksAt)
		}
		for _, row := range h.rows[l.Name()] {
			h.checkAll(t, l, withFree(row, acts), changes)
		}
	}
}

// FuzzHostileTextNeverControlsTerminal runs one command, on a terminal or without a terminal. The
// command reads a row that contains the fuzzed text, as if another user had written the row. In
// some runs, error replies of the server also contain the text.
func FuzzHostileTextNeverControlsTerminal(f *testing.F) {
	h := newHostileTables(f)
	native := slices.IndexFunc(h.layouts, func(l layout.Layout) bool { return l.Name() == (layout.Native{}).Name() })
	for n := range hostileRuns("", "", "") {
		for _, terminal := range []bool{false, true} {
			f.Add(acts, byte(native), byte(0), byte(n), terminal, byte(1), byte(n), n%2 == 0)
		}
	}
	f.Fuzz(func(t *testing.T, text string, ofLayout, ofRow, ofRun byte, terminal bool, answered, refusal byte, refuses bool) {
		l := h.layouts[int(ofLayout)%len(h.layouts)]
		rows := h.spoiltRows(l, text)
		row := rows[int(ofRow)%len(rows)]
		if !h.put(t, l.Name(), row) {
			return
		}
		all := hostileRuns(h.dir, l.Name(), h.keyOf(t, l.Name(), row))
		m := all[int(ofRun)%len(all)]
		h.liar.says(nil, 0)
		if refuses || m.endless {
			said := refusals(text)
			h.liar.says(said[int(refusal)%len(said)], int(answered)%4)
		}
		defer h.liar.says(nil, 0)
		h.check(t, l, m, terminal)
	})
}

// This test starts the command as a process on a pseudo-terminal. As on the terminal of a
// user, the kernel converts the line endings.
func TestHostileRecordCannotControlPseudoTerminal(t *testing.T) {
	t.Parallel()
	h := newHostileTables(t)
	l := layout.Native{}
	for _, row := range h.rows[l.Name()] {
		if !h.put(t, l.Name(), withFree(row, acts)) {
			t.Fatal("the server rejects the row")
		}
		s := onTerminal(t, h.dir, bare(h.dir), "ls", "--all", "--table", l.Name(), "--region", "local", "--endpoint-url", h.url)
		s.wait()
		<-s.done
		onlyShows(t, "ls", withoutOwn(strings.ReplaceAll(s.shown(), "\r\n", "\n")))
	}
}

// Each command that exits by itself must also exit if the reply of the server is hostile.
// The text of the reply must not control the terminal. Commands retry for ten seconds or
// more, so the test runs all commands concurrently.
func TestCommandExitsDespiteHostileServerReply(t *testing.T) {
	t.Parallel()
	var ends sync.WaitGroup
	var underWay sync.Map
	for name, lie := range lies(acts) {
		h := newHostileTables(t)
		h.liar.says(lie, 0)
		for n, m := range hostileRuns(h.dir, (layout.Native{}).Name(), "k") {
			// A trickle is a reply that the server sends so slowly that a command stops waiting for
			// it and retries. To save time, only three commands get a trickle here.
			// TestCallsReturnWithinTimeLimitsUnderEveryFault tests trickles for every call of the
			// library, in virtual time.
			if m.endless || name == "a trickle" && !slices.Contains([]string{"ls", "acquire", "run"}, m.args[0]) {
				continue
			}
			what := fmt.Sprintf("%s, %d: %q", name, n, m.args)
			underWay.Store(what, true)
			ends.Go(func() {
				defer underWay.Delete(what)
				h.check(t, layout.Native{}, m, false)
			})
		}
	}
	ended := make(chan bool)
	go func() {
		ends.Wait()
		close(ended)
	}()
	select {
	case <-ended:
	case <-time.After(8 * patience):
		underWay.Range(func(what, _ any) bool {
			t.Errorf("not ended: %s", what)
			return true
		})
		<-ended
	}
}
