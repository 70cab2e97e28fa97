package say

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"golang.org/x/term"

	"github.com/leasehold-go/leasehold/internal/cli/wording"
	"github.com/leasehold-go/leasehold/internal/visible"
)

// Output is a standard stream of this process. All that leasehold itself says goes
// through it, text and JSON alike: what others wrote shows there, and does not act. The
// stream beneath is CMD's alone.
type Output struct {
	To       io.Writer
	Terminal bool
	Coloured bool
}

// To is the output to a stream, with colours if they are wanted and it is a terminal.
func To(stream io.Writer, colours bool) *Output {
	terminal := IsTerminal(stream)
	return &Output{To: stream, Terminal: terminal, Coloured: terminal && colours}
}

// sequence is leasehold's own, and acts on the terminal: elsewhere it is left out.
type sequence string

const (
	overLine sequence = "\r\x1b[K"
)

// Colour is a sequence that NO_COLOR switches off.
type Colour string

// Of is text in a colour, for show.
func (c Colour) Of(text string) []any {
	if c == "" {
		return []any{text}
	}
	return []any{c, text, noColour}
}

const (
	// Red is for what is dead or fails.
	Red Colour = "\x1b[31m"
	// Yellow is for what may fail.
	Yellow   Colour = "\x1b[33m"
	noColour Colour = "\x1b[0m"
)

// Show writes texts, sequences and colours in one piece.
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

// Write shows text. It takes whole texts: a letter cut in two is shown as its bytes.
func (o *Output) Write(text []byte) (int, error) {
	if err := o.Show(string(text)); err != nil {
		return 0, err
	}
	return len(text), nil
}

// Data writes what a user has stored: byte for byte, but at a terminal shows it.
func (o *Output) Data(b []byte) error {
	to := o.To
	if o.Terminal {
		to = o
	}
	_, err := to.Write(b)
	return err
}

// Columns is the terminal's number of columns, or 80 if unknown.
func (o *Output) Columns() int {
	if f, ok := o.To.(interface{ Fd() uintptr }); ok {
		if columns, _, err := term.GetSize(int(f.Fd())); err == nil && columns > 1 {
			return columns
		}
	}
	return 80
}

// SetWriteDeadline bounds the next write, if the stream can do so.
func (o *Output) SetWriteDeadline(t time.Time) error {
	if f, ok := o.To.(*os.File); ok {
		return f.SetWriteDeadline(t)
	}
	return os.ErrNoDeadline
}

// Tabbed joins cells with tabs.
func Tabbed(cells ...string) string {
	shown := make([]string, len(cells))
	for i, c := range cells {
		shown[i] = visible.Line(c)
	}
	return strings.Join(shown, "\t")
}

// Prose writes a line for people, and on a terminal breaks it at words.
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
