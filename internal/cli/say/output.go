package say

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"

	"golang.org/x/term"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/cli/failure"
	"github.com/leasehold-go/leasehold/internal/cli/wording"
	"github.com/leasehold-go/leasehold/internal/visible"
)

// Output is a standard stream of this process. All of leasehold's own output passes through
// it, both text and JSON. So text that other users wrote is shown, but cannot act on the
// terminal. Only CMD writes to the stream directly.
type Output struct {
	To       io.Writer
	Terminal bool
	Coloured bool
	Failed   error // the last error of Write; nil if no Write has failed
}

// To returns an Output that writes to a stream. It uses colours if colours is true and the
// stream is a terminal.
func To(stream io.Writer, colours bool) *Output {
	terminal := IsTerminal(stream)
	return &Output{To: stream, Terminal: terminal, Coloured: terminal && colours}
}

// sequence is one of leasehold's own terminal sequences. It is omitted unless the output is
// a terminal.
type sequence string

const overLine sequence = "\r\x1b[K"

// Colour is a terminal sequence for a colour. NO_COLOR switches it off.
type Colour string

// Of returns the arguments for Show that print text in the colour.
func (c Colour) Of(text string) []any {
	if c == "" {
		return []any{text}
	}
	return []any{c, text, noColour}
}

const (
	// Red marks dead holders and failures.
	Red Colour = "\x1b[31m"
	// Yellow marks risks.
	Yellow   Colour = "\x1b[33m"
	noColour Colour = "\x1b[0m"
)

// Show writes all parts, which are texts, sequences and colours, in one write.
func (o *Output) Show(parts ...any) error {
	var b strings.Builder
	for _, p := range parts {
		switch p := p.(type) {
		case string:
			b.WriteString(visible.Text(p))
		case sequence:
			if o.Terminal {
				b.WriteString(string(p))
			}
		case Colour:
			if o.Coloured {
				b.WriteString(string(p))
			}
		}
	}
	_, err := io.WriteString(o.To, b.String())
	return err
}

// Write shows text. Each call must pass a whole text: a character that is split between two
// calls is shown as bytes.
func (o *Output) Write(text []byte) (int, error) {
	if err := o.Show(string(text)); err != nil {
		o.Failed = err
		return 0, err
	}
	return len(text), nil
}

// Data writes a user's data: byte for byte in a pipe, but as visible text on a terminal.
func (o *Output) Data(b []byte) error {
	to := o.To
	if o.Terminal {
		to = o
	}
	_, err := to.Write(b)
	return err
}

// Columns returns the terminal's number of columns, or 80 if unknown.
func (o *Output) Columns() int {
	if f, ok := o.To.(interface{ Fd() uintptr }); ok {
		if columns, _, err := term.GetSize(int(f.Fd())); err == nil && columns > 1 {
			return columns
		}
	}
	return 80
}

// Tabbed joins cells with tabs.
func Tabbed(cells ...string) string {
	shown := make([]string, len(cells))
	for i, c := range cells {
		shown[i] = visible.Line(c)
	}
	return strings.Join(shown, "\t")
}

// Prose writes a line for people. On a terminal it breaks the line at words.
func (o *Output) Prose(format string, args ...any) error {
	text := visible.Line(fmt.Sprintf(format, args...))
	if o.Terminal {
		return o.Show(wording.Fill("", text, o.Columns()))
	}
	return o.Show(text, "\n")
}

// IsTerminal reports whether a stream is a terminal.
func IsTerminal(stream any) bool {
	f, ok := stream.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// Messages writes to stderr, in text or JSON. It is safe for concurrent use.
type Messages struct {
	w     *Output
	width int

	mu          sync.Mutex
	quiet, json bool
	table       string       // name of the table, for records in JSON
	where       string       // the table or file, for error messages
	storeFlags  string       // flags that name the store, for a command that a message contains
	line        bool         // the cursor is at the end of a line that Rewrite wrote
	stream      *eventStream // the stream of --events; nil if events are messages
}

// NewMessages returns Messages that writes to an output.
func NewMessages(to *Output) *Messages { return &Messages{w: to, width: to.Columns()} }

// Configure applies --quiet and --json.
func (m *Messages) Configure(quiet, json bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.quiet, m.json = quiet, json
}

// SetTable sets the table that later errors concern. table is its name, where is its name
// in messages, and flags are the flags that name it in commands.
func (m *Messages) SetTable(table, where, flags string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.table, m.where, m.storeFlags = table, where, flags
}

// Rewrites reports whether a line can be rewritten.
func (m *Messages) Rewrites() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.w.Terminal && !m.quiet && !m.json
}

// Note writes a message that is not an error. -q suppresses it.
func (m *Messages) Note(format string, args ...any) {
	m.message(fmt.Sprintf(format, args...), false, true)
}

// Always writes a message as Note does, but -q does not suppress it.
func (m *Messages) Always(format string, args ...any) {
	m.message(fmt.Sprintf(format, args...), true, true)
}

// Text writes a message as Note does, but writes nothing under --json, where an event
// replaces the message.
func (m *Messages) Text(format string, args ...any) {
	m.message(fmt.Sprintf(format, args...), false, false)
}

// message writes a message. despiteQuiet and inJSON state whether it is also written with -q
// and with --json.
func (m *Messages) message(text string, despiteQuiet, inJSON bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case m.quiet && !despiteQuiet, m.json && !inJSON:
	case m.json:
		m.object(map[string]string{"note": text})
	default:
		m.sentence(text)
	}
}

// Tell writes a message that is not an error, as text or as an event under --json. -q
// suppresses it.
func (m *Messages) Tell(e Event, format string, args ...any) {
	m.Event(e)
	m.Text(format, args...)
}

// Rewrite writes a line to the terminal. The next message overwrites it.
func (m *Messages) Rewrite(text string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	text = "leasehold: " + visible.Line(text)
	if r := []rune(text); len(r) >= m.width { // a line that wraps cannot be rewritten
		text = string(r[:m.width-1])
	}
	m.print(text)
	m.line = true
}

// Clear removes the line that Rewrite wrote.
func (m *Messages) Clear() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.print("")
}

// Event writes an event: to the stream of --events, or as a message under --json.
func (m *Messages) Event(e Event) {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case m.stream != nil:
		m.stream.send(e)
	case m.json && !m.quiet:
		m.object(e)
	}
}

// sentence writes a message. On a terminal it breaks the message at words. The caller must
// hold m.mu.
func (m *Messages) sentence(text string) {
	const head = "leasehold: "
	text = visible.Line(text)
	if m.w.Terminal {
		m.print(wording.Fill(head, text, m.width))
		return
	}
	m.print(head + text + "\n")
}

// print writes text. It overwrites the line that Rewrite wrote, if there is one. The caller
// must hold m.mu.
func (m *Messages) print(text string) {
	var before sequence
	if m.line {
		m.line, before = false, overLine
	}
	_ = m.w.Show(before, text)
}

func (m *Messages) object(v any) {
	b, err := json.Marshal(v)
	if err != nil {
		b, _ = json.Marshal(map[string]string{"error": "unknown", "message": err.Error()})
	}
	m.print(string(b) + "\n")
}

// Error is an error in the form that stderr shows under --json.
type Error struct {
	Error   string  `json:"error"`
	Message string  `json:"message"`
	Record  *Record `json:"record,omitempty"`
}

// Fail writes errors, even with -q.
func (m *Messages) Fail(errs ...error) {
	for _, err := range errs {
		e := m.failure(err)
		m.mu.Lock()
		if m.json {
			m.object(e)
		} else {
			m.sentence(e.Message)
		}
		m.mu.Unlock()
	}
}

// failure describes an error.
func (m *Messages) failure(err error) Error {
	m.mu.Lock()
	defer m.mu.Unlock()
	text := failure.Text(err, m.where)
	if !strings.HasPrefix(m.where, "table ") { // the locks are in a file, but errors of the library name a table
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
