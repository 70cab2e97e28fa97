package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/cli/failure"
	"github.com/leasehold-go/leasehold/internal/cli/wording"
	"github.com/leasehold-go/leasehold/internal/visible"
)

// messages writes to stderr, in text or JSON. It is safe for concurrent use.
type messages struct {
	w     *output
	width int

	mu          sync.Mutex
	quiet, json bool
	table       string       // of records in JSON
	where       string       // which table or file it is, in error messages
	storeFlags  string       // those given, for a command that a message tells to type
	line        bool         // the cursor is at the end of a line that will be rewritten
	stream      *eventStream // of --events; nil: events are messages
}

func newMessages(to *output) *messages { return &messages{w: to, width: to.columns()} }

func (m *messages) configure(f globalFlags) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.quiet, m.json = f.quiet, f.json
}

// setTable sets the table that later errors are about, and how they name it.
func (m *messages) setTable(table, where string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.table, m.where = table, where
}

// setStoreFlags sets the flags that later messages put into a command to type.
func (m *messages) setStoreFlags(words string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.storeFlags = words
}

// rewrites reports whether a line may be rewritten in place.
func (m *messages) rewrites() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.w.terminal && !m.quiet && !m.json
}

// note writes a message that is not an error. -q silences it.
func (m *messages) note(format string, args ...any) {
	m.mu.Lock()
	defer m.mu.Unlock()
	text := fmt.Sprintf(format, args...)
	switch {
	case m.quiet:
	case m.json:
		m.object(map[string]string{"note": text})
	default:
		m.sentence(text)
	}
}

// always is note for a message that -q does not silence.
func (m *messages) always(format string, args ...any) {
	m.mu.Lock()
	defer m.mu.Unlock()
	text := fmt.Sprintf(format, args...)
	if m.json {
		m.object(map[string]string{"note": text})
		return
	}
	m.sentence(text)
}

// text is note for messages that --json replaces by an event.
func (m *messages) text(format string, args ...any) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.quiet && !m.json {
		m.sentence(fmt.Sprintf(format, args...))
	}
}

// tell writes a message that is not an error: text, or an event under --json. -q
// silences it.
func (m *messages) tell(e eventJSON, format string, args ...any) {
	m.event(e)
	m.text(format, args...)
}

// rewrite writes a line to the terminal that the next message overwrites.
func (m *messages) rewrite(text string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	text = "leasehold: " + visible.Line(text)
	if r := []rune(text); len(r) >= m.width { // a line that wraps cannot be rewritten
		text = string(r[:m.width-1])
	}
	m.print(text)
	m.line = true
}

// clear removes the line that rewrite wrote.
func (m *messages) clear() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.print("")
}

// event writes an event: to the stream of --events, or as a message under --json.
func (m *messages) event(e eventJSON) {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case m.stream != nil:
		m.stream.send(e)
	case m.json && !m.quiet:
		m.object(e)
	}
}

// setStream sets where events go, and returns where they went before.
func (m *messages) setStream(s *eventStream) (before *eventStream) {
	m.mu.Lock()
	defer m.mu.Unlock()
	before, m.stream = m.stream, s
	return before
}

// sentence writes a message, and on a terminal breaks it at words. m.mu is held.
func (m *messages) sentence(text string) {
	const head = "leasehold: "
	text = visible.Line(text)
	if m.w.terminal {
		m.print(wording.Fill(head, text, m.width))
		return
	}
	m.print(head + text + "\n")
}

// print writes text over the line that rewrite wrote, if any. m.mu is held.
func (m *messages) print(text string) {
	var before sequence
	if m.line {
		m.line, before = false, overLine
	}
	_ = m.w.show(before, text)
}

func (m *messages) object(v any) {
	b, err := json.Marshal(v)
	if err != nil {
		b, _ = json.Marshal(map[string]string{"error": "unknown", "message": err.Error()})
	}
	m.print(string(b) + "\n")
}

// errorJSON is an error on stderr under --json.
type errorJSON struct {
	Error   string      `json:"error"`
	Message string      `json:"message"`
	Record  *recordJSON `json:"record,omitempty"`
}

// fail writes an error, even with -q.
func (m *messages) fail(err error) {
	e := m.failure(err)
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.json {
		m.sentence(e.Message)
		return
	}
	m.object(e)
}

// failure describes an error.
func (m *messages) failure(err error) errorJSON {
	m.mu.Lock()
	defer m.mu.Unlock()
	text := failure.Text(err, m.where)
	if !strings.HasPrefix(m.where, "table ") { // the library knows no files
		text = strings.Replace(text, " in table "+m.table, " in "+m.where, 1)
	}
	if errors.Is(err, leasehold.ErrRecord) {
		text = strings.Replace(text, "leasehold get --raw", "leasehold get"+m.storeFlags+" --raw", 1)
		text = strings.Replace(text, "leasehold break --damaged", "leasehold break"+m.storeFlags+" --damaged", 1)
	}
	text = strings.Replace(text, "start over with leasehold forget", "start over with leasehold forget"+m.storeFlags, 1)
	e := errorJSON{Error: failure.Kind(err), Message: failure.Plain(text)}
	if r := failure.Record(err); r != nil {
		e.Record = &recordJSON{Table: m.table, Record: *r}
	}
	return e
}

// report writes the error that ended the command. With -q, the exit code alone
// says that KEY is held: that is the answer to -n and -w, not an error.
func (a *app) report(err error) {
	if failure.Silent(err) || a.flags.quiet && errors.Is(err, leasehold.ErrHeld) {
		return
	}
	a.say.fail(err)
}

// printable is s as it stands in a sentence or a cell.
func printable(s string) string { return visible.Name(s) }
