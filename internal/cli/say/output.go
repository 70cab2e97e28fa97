package say

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/term"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/cli/failure"
	"github.com/leasehold-go/leasehold/internal/cli/seconds"
	"github.com/leasehold-go/leasehold/internal/cli/wording"
	"github.com/leasehold-go/leasehold/internal/visible"
)

// Output is a standard stream of this process. All output of leasehold itself passes through an
// Output, text and JSON alike. It makes control characters visible, so that text of other users
// cannot control the terminal. CMD writes to the stream directly.
type Output struct {
	To       io.Writer
	Terminal bool
	Coloured bool
	Failed   error // error of the last failed Write; nil if none has failed

	queue *queue // writes the text if it is not nil; otherwise Show writes it to To
}

// To returns an Output that writes to stream. It uses colours only if colours is true and
// stream is a terminal.
func To(stream io.Writer, colours bool) *Output {
	terminal := IsTerminal(stream)
	return &Output{To: stream, Terminal: terminal, Coloured: terminal && colours}
}

// sequence is a terminal control sequence of leasehold. Show writes it only to a terminal.
type sequence string

const overLine sequence = "\r\x1b[K"

// Colour is a terminal control sequence for a colour. Show omits it if NO_COLOR is set.
type Colour string

const (
	// Red is the colour of dead holders and failures.
	Red Colour = "\x1b[31m"
	// Yellow is the colour of warnings.
	Yellow   Colour = "\x1b[33m"
	noColour Colour = "\x1b[0m"
)

// Show writes all parts with a single call of Write. A part is a string, a sequence or a
// Colour, which is the colour of the next string. Control characters in strings are made
// visible.
func (o *Output) Show(parts ...any) error {
	var b strings.Builder
	var after Colour // ends the colour of the next string; empty if that string has none
	for _, p := range parts {
		switch p := p.(type) {
		case string:
			b.WriteString(visible.Text(p) + string(after))
			after = ""
		case sequence:
			if o.Terminal {
				b.WriteString(string(p))
			}
		case Colour:
			if o.Coloured && p != "" {
				b.WriteString(string(p))
				after = noColour
			}
		}
	}
	if o.queue != nil {
		return o.queue.add(b.String())
	}
	_, err := io.WriteString(o.To, b.String())
	return err
}

// Write writes text as Show does. Each call must pass whole characters: a character that is
// split between two calls would be shown as bytes.
func (o *Output) Write(text []byte) (int, error) {
	if err := o.Show(string(text)); err != nil {
		o.Failed = err
		return 0, err
	}
	return len(text), nil
}

// Data writes the data of a lock record. In a pipe it writes the bytes unchanged. On a
// terminal it makes control characters visible.
func (o *Output) Data(b []byte) error {
	to := o.To
	if o.Terminal {
		to = o
	}
	_, err := to.Write(b)
	return err
}

// Columns returns the width of the terminal in characters, or 80 if it is unknown.
func (o *Output) Columns() int {
	if f, ok := o.To.(interface{ Fd() uintptr }); ok {
		if columns, _, err := term.GetSize(int(f.Fd())); err == nil && columns > 1 {
			return columns
		}
	}
	return 80
}

// Tabbed joins cells with tabs. It makes control characters in them visible.
func Tabbed(cells ...string) string {
	shown := make([]string, len(cells))
	for i, c := range cells {
		shown[i] = visible.Line(c)
	}
	return strings.Join(shown, "\t")
}

// Prose writes one or several sentences. It writes them as one line, but on a terminal it
// breaks the line between words.
func (o *Output) Prose(format string, args ...any) error {
	return o.Show(o.filled("", fmt.Sprintf(format, args...)))
}

// filled returns head and text as one line. For a terminal it breaks the line between words.
func (o *Output) filled(head, text string) string {
	text = visible.Line(text)
	if o.Terminal {
		return wording.Fill(head, text, o.Columns())
	}
	return head + text + "\n"
}

// IsTerminal reports whether stream is an *os.File that is a terminal.
func IsTerminal(stream any) bool {
	f, ok := stream.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// Messages writes messages to standard error, as text or JSON. It is safe for concurrent
// use.
type Messages struct {
	w *Output

	mu          sync.Mutex
	quiet, json bool
	table       string  // name of the lock table, for records in JSON
	where       string  // the table or file with the locks, for error messages
	storeFlags  string  // flags that choose the store, for commands that messages suggest
	line        bool    // true if the cursor is at the end of a line that Rewrite wrote
	events      *Output // receives the events, one JSON object a line; nil without --events
	eventsTo    string  // value of --events
}

// NewMessages returns a Messages that writes to the given Output. From then on, each write to the
// Output waits only briefly for a slow reader, such as a pager, or a terminal after Ctrl-S. Without
// this limit, the message about a renewal could wait until the lock is lost.
func NewMessages(to *Output) *Messages {
	to.queue = &queue{to: to.To, patience: messagePatience}
	return &Messages{w: to}
}

// messagePatience is how long a message waits for the reader. It is short compared to the shortest
// lease. But it is long enough that a message is usually written before CMD starts to write.
const messagePatience = 200 * time.Millisecond

// Flush waits for the reader until all messages are written. It is called before leasehold exits,
// when signals are no longer caught, so that a signal ends this wait.
func (m *Messages) Flush() { m.flush(m.w, math.MaxInt64, "standard error") }

// flush waits until all lines that were shown on o are written, but no longer than limit. If some
// are not written, flush prints a message. The parameter "to" is the name of o in this message.
func (m *Messages) flush(o *Output, limit time.Duration, to string) {
	if n, _ := o.queue.await(limit); n > 0 {
		m.Note("%s not written to %s: its reader is too slow", wording.Count(n, "line was", "lines were"), to)
	}
}

// Configure sets the values of the flags --quiet and --json.
func (m *Messages) Configure(quiet, json bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.quiet, m.json = quiet, json
}

// SetTable sets the lock table that later messages mention: its name, where it is, and the
// flags that choose it.
func (m *Messages) SetTable(table, where, flags string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.table, m.where, m.storeFlags = table, where, flags
}

// Rewrites reports whether messages go to a terminal as text, so that Rewrite may be used.
func (m *Messages) Rewrites() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.w.Terminal && !m.quiet && !m.json
}

// Note prints a message that is not an error, as text or as JSON. With -q it prints nothing.
func (m *Messages) Note(format string, args ...any) {
	m.message(fmt.Sprintf(format, args...), false, true)
}

// Always prints a message that is not an error, even with -q.
func (m *Messages) Always(format string, args ...any) {
	m.message(fmt.Sprintf(format, args...), true, true)
}

// Text prints a message that is not an error. With -q or --json it prints nothing.
func (m *Messages) Text(format string, args ...any) {
	m.message(fmt.Sprintf(format, args...), false, false)
}

// message prints text. With -q it prints only if despiteQuiet is true, and with --json only
// if inJSON is true.
func (m *Messages) message(text string, despiteQuiet, inJSON bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case m.quiet && !despiteQuiet, m.json && !inJSON:
	case m.json:
		m.print(jsonLine(map[string]string{"note": text}))
	default:
		m.sentence(text)
	}
}

// Tell reports something that is not an error: it emits the event e, and prints the text
// unless -q or --json is given.
func (m *Messages) Tell(e Event, format string, args ...any) {
	m.Event(e)
	m.Text(format, args...)
}

// Rewrite prints a line to the terminal. The next message overwrites this line.
func (m *Messages) Rewrite(text string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	text = "leasehold: " + visible.Line(text)
	if r, width := []rune(text), m.w.Columns(); len(r) >= width { // a line as wide as the terminal would wrap, and could not be overwritten
		text = string(r[:width-1])
	}
	m.print(text)
	m.line = true
}

// Clear erases the line that Rewrite printed.
func (m *Messages) Clear() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.print("")
}

// EachSecond calls fn once a second until the caller calls the function "end". fn may call Rewrite.
// If a call of fn is in progress, "end" waits until fn has returned. Then "end" erases the line
// that Rewrite printed.
func (m *Messages) EachSecond(fn func()) (end func()) {
	stop := seconds.Each(fn)
	return func() {
		stop()
		m.Clear()
	}
}

// Event writes e to the stream of --events. Without --events, it prints e if --json is
// given.
func (m *Messages) Event(e Event) {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case m.events != nil:
		_ = m.events.Show(jsonLine(e))
	case m.json && !m.quiet:
		m.print(jsonLine(e))
	}
}

// sentence prints a text message. On a terminal it breaks the message between words. The
// caller must hold m.mu.
func (m *Messages) sentence(text string) { m.print(m.w.filled("leasehold: ", text)) }

// print writes text to standard error. If the last line is one that Rewrite printed, print
// overwrites it. The caller must hold m.mu.
func (m *Messages) print(text string) {
	var before sequence
	if m.line {
		m.line, before = false, overLine
	}
	_ = m.w.Show(before, text)
}

// jsonLine returns v, an event or a message, as a line of JSON.
func jsonLine(v any) string {
	b, _ := json.Marshal(v) // cannot fail: events and messages always have a JSON form
	return string(b) + "\n"
}

// Error is an error as --json prints it to standard error.
type Error struct {
	Error   string  `json:"error"`
	Message string  `json:"message"`
	Record  *Record `json:"record,omitempty"`
}

// Fail prints each of the errors, even with -q.
func (m *Messages) Fail(errs ...error) {
	for _, err := range errs {
		e := m.failure(err)
		m.mu.Lock()
		if m.json {
			m.print(jsonLine(e))
		} else {
			m.sentence(e.Message)
		}
		m.mu.Unlock()
	}
}

// failure returns err in the form that Fail prints.
func (m *Messages) failure(err error) Error {
	m.mu.Lock()
	defer m.mu.Unlock()
	text := failure.Text(err, m.where)
	if !strings.HasPrefix(m.where, "table ") { // errors of package leasehold name the table, but here the user knows the store by its file
		text = strings.Replace(text, " in table "+m.table, " in "+m.where, 1)
	}
	if errors.As(err, new(*leasehold.RecordError)) {
		text = strings.Replace(text, "leasehold break", "leasehold break"+m.storeFlags, 1)
	}
	kind, _ := failure.Kind(err)
	e := Error{Error: kind, Message: failure.Plain(text)}
	if r := failure.Record(err); r != nil {
		e.Record = &Record{Table: m.table, Record: *r}
	}
	return e
}
