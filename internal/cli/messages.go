package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode"

	"github.com/leasehold-go/leasehold"
)

// messages writes to stderr, in text or JSON. It is safe for concurrent use.
type messages struct {
	w        io.Writer
	terminal bool
	width    int

	mu          sync.Mutex
	quiet, json bool
	table       string       // of records in JSON
	where       string       // which table or file it is, in error messages
	storeFlags  string       // those given, for a command that a message tells to type
	line        bool         // the cursor is at the end of a line that will be rewritten
	stream      *eventStream // of --events; nil: events are messages
}

func newMessages(env Env) *messages {
	return &messages{w: env.Stderr, terminal: isTerminal(env.Stderr), width: width(env.Stderr)}
}

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
	return m.terminal && !m.quiet && !m.json
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
		m.print("leasehold: " + text + "\n")
	}
}

// always is note for messages that -q does not silence. It names the store that
// is used by default: a cron job that has lost its variable then locks against
// nobody else, and must say so.
func (m *messages) always(format string, args ...any) {
	m.mu.Lock()
	defer m.mu.Unlock()
	text := fmt.Sprintf(format, args...)
	if m.json {
		m.object(map[string]string{"note": text})
		return
	}
	m.print("leasehold: " + text + "\n")
}

// text is note for messages that --json replaces by an event.
func (m *messages) text(format string, args ...any) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.quiet && !m.json {
		m.print("leasehold: " + fmt.Sprintf(format, args...) + "\n")
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
	text = "leasehold: " + text
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

// print writes text over the line that rewrite wrote, if any. m.mu is held.
func (m *messages) print(text string) {
	if m.line {
		m.line = false
		text = "\r\x1b[K" + text
	}
	_, _ = io.WriteString(m.w, text)
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
		m.print("leasehold: " + e.Message + "\n")
		return
	}
	m.object(e)
}

// failure describes an error.
func (m *messages) failure(err error) errorJSON {
	m.mu.Lock()
	defer m.mu.Unlock()
	text := errorText(err, m.where)
	if !strings.HasPrefix(m.where, "table ") { // the library knows no files
		text = strings.Replace(text, " in table "+m.table, " in "+m.where, 1)
	}
	if errors.Is(err, leasehold.ErrBadRecord) {
		text = strings.Replace(text, "leasehold get --raw", "leasehold get"+m.storeFlags+" --raw", 1)
		text = strings.Replace(text, "leasehold break --damaged", "leasehold break"+m.storeFlags+" --damaged", 1)
	}
	e := errorJSON{Error: kindOf(err), Message: plain(text)}
	if r := recordIn(err); r != nil {
		e.Record = &recordJSON{Table: m.table, Record: *r}
	}
	return e
}

// report writes the error that ended the command. With -q, the exit code alone
// says that KEY is held: that is the answer to -n and -w, not an error.
func (a *app) report(err error) {
	if silent(err) || a.flags.quiet && errors.Is(err, leasehold.ErrHeld) {
		return
	}
	a.say.fail(err)
}

// silent reports whether err is nothing but an exit code.
func silent(err error) bool {
	var code *exitError
	return err == nil || errors.As(err, &code) && code.err == nil
}

// printable quotes s if it is empty or would disturb a terminal or a
// tab-separated line.
func printable(s string) string {
	if s == "" || strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return strconv.Quote(s)
	}
	return s
}

// age formats a duration for people: 12s, 3m12s, 5h3m, 6d5h.
func age(d time.Duration) string {
	d = max(d, 0)
	s := int64(d / time.Second)
	switch {
	case s < 60:
		return fmt.Sprintf("%ds", s)
	case s < 3600:
		return fmt.Sprintf("%dm%ds", s/60, s%60)
	case s < 86400:
		return fmt.Sprintf("%dh%dm", s/3600, s/60%60)
	}
	return fmt.Sprintf("%dd%dh", s/86400, s/3600%24)
}

// jsonTime is the format of every time: RFC 3339 in UTC with milliseconds.
const jsonTime = "2006-01-02T15:04:05.000Z07:00"

func timeJSON(t time.Time) string { return t.UTC().Format(jsonTime) }
