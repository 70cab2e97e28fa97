package say

import (
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/term"

	"github.com/leasehold-go/leasehold/internal/cli/wording"
	"github.com/leasehold-go/leasehold/internal/visible"
)

// Output is a standard stream of this process. All output of leasehold itself passes
// through it, text and JSON alike, so that text from other users is shown and cannot act on
// the terminal. Only CMD writes to the stream directly.
type Output struct {
	To       io.Writer
	Terminal bool
	Coloured bool
}

// To returns the output to a stream. It has colours if they are wanted and the stream is a
// terminal.
func To(stream io.Writer, colours bool) *Output {
	terminal := IsTerminal(stream)
	return &Output{To: stream, Terminal: terminal, Coloured: terminal && colours}
}

// sequence is one of leasehold's own terminal sequences. It is omitted unless the output is
// a terminal.
type sequence string

const overLine sequence = "\r\x1b[K"

// Colour is a sequence that NO_COLOR switches off.
type Colour string

// Of returns text in a colour, for Show.
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

// Show writes texts, sequences and colours in one write.
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

// Write shows text. It takes whole texts: a character cut in two is shown as its bytes.
func (o *Output) Write(text []byte) (int, error) {
	if err := o.Show(string(text)); err != nil {
		return 0, err
	}
	return len(text), nil
}

// Data writes a user's data, byte for byte in a pipe, shown as text at a terminal.
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
