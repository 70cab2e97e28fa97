package cli

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/leasehold-go/leasehold/internal/cli/wording"
	"github.com/leasehold-go/leasehold/internal/visible"
)

// output is a standard stream of this process. All that leasehold itself says goes
// through it, text and JSON alike: what others wrote shows there, and does not act. The
// stream beneath, Env's, is CMD's alone; a test looks for other writers.
type output struct {
	to       io.Writer
	terminal bool
	coloured bool
}

func newOutput(to io.Writer, env Env) *output {
	o := &output{to: to, terminal: isTerminal(to)}
	o.coloured = o.terminal && env.get("NO_COLOR") == ""
	return o
}

// sequence is leasehold's own, and acts on the terminal: elsewhere it is left out.
type sequence string

const (
	overLine     sequence = "\r\x1b[K"
	home         sequence = "\x1b[H"
	restOfLine   sequence = "\x1b[K"
	restOfScreen sequence = "\x1b[J"

	// Without the cursor, and without wrapping lines that are too wide all the same,
	// as those of wide letters are.
	enterScreen sequence = "\x1b[?1049h\x1b[?25l\x1b[?7l"
	leaveScreen sequence = "\x1b[?7h\x1b[?25h\x1b[?1049l"
)

// colour is a sequence that NO_COLOR switches off.
type colour string

// of is text in a colour, for show.
func (c colour) of(text string) []any {
	if c == "" {
		return []any{text}
	}
	return []any{c, text, noColour}
}

const (
	red      colour = "\x1b[31m"
	yellow   colour = "\x1b[33m"
	noColour colour = "\x1b[0m"
)

// show writes texts, sequences and colours in one piece.
func (o *output) show(parts ...any) error {
	var b strings.Builder
	for _, p := range parts {
		switch p := p.(type) {
		case string:
			b.WriteString(visible.Text(p))
		case sequence:
			if o.terminal {
				b.WriteString(string(p))
			}
		case colour:
			if o.coloured {
				b.WriteString(string(p))
			}
		}
	}
	_, err := io.WriteString(o.to, b.String())
	return err
}

// Write shows text. It takes whole texts: a letter cut in two is shown as its bytes.
func (o *output) Write(text []byte) (int, error) {
	if err := o.show(string(text)); err != nil {
		return 0, err
	}
	return len(text), nil
}

// data writes what a user has stored: byte for byte, but at a terminal shows it.
func (o *output) data(b []byte) error {
	to := o.to
	if o.terminal {
		to = o
	}
	_, err := to.Write(b)
	return err
}

// columns is the terminal's number of columns, or 80 if unknown.
func (o *output) columns() int {
	columns, _ := screenSize(o.to)
	return columns
}

// SetWriteDeadline bounds the next write, if the stream can do so.
func (o *output) SetWriteDeadline(t time.Time) error {
	if f, ok := o.to.(*os.File); ok {
		return f.SetWriteDeadline(t)
	}
	return os.ErrNoDeadline
}

// tabbed joins cells with tabs.
func tabbed(cells ...string) string {
	shown := make([]string, len(cells))
	for i, c := range cells {
		shown[i] = visible.Line(c)
	}
	return strings.Join(shown, "\t")
}

// writeProse writes a line for people, and on a terminal breaks it at words.
func writeProse(w *output, format string, args ...any) error {
	text := visible.Line(fmt.Sprintf(format, args...))
	if w.terminal {
		return w.show(wording.Fill("", text, w.columns()))
	}
	return w.show(text, "\n")
}
