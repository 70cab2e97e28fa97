package say

import (
	"fmt"
	"sync"
	"unicode/utf8"

	"github.com/leasehold-go/leasehold/internal/visible"
)

// Screen is the terminal's alternate screen: what was on the terminal comes back when
// it is left, and nothing of it gets into the scrollback.
// While it is left, the terminal is the shell's, and nothing is painted.
type Screen struct {
	On *Output

	mu      sync.Mutex // held while the terminal is written to: who leaves waits for the painting
	entered bool
}

// Enter shows the screen.
func (s *Screen) Enter() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.entered = true
	return s.On.Show(enterScreen)
}

// Leave gives back what was on the terminal.
func (s *Screen) Leave() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.entered = false
	_ = s.On.Show(leaveScreen)
}

// Paint writes lines over the screen, as many and as much of each as fits.
func (s *Screen) Paint(lines []string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.entered {
		return nil
	}
	columns, rows := s.On.size()
	parts := []any{home}
	for i, line := range clip(lines, columns, rows) {
		if i > 0 {
			parts = append(parts, restOfLine, "\n")
		}
		parts = append(parts, line)
	}
	return s.On.Show(append(parts, restOfLine, restOfScreen)...)
}

// clip returns what fits of lines. The last one says how many do not.
func clip(lines []string, columns, rows int) []string {
	var out []string
	for i, line := range lines {
		line = visible.Line(line)
		if i == rows-1 && len(lines) > rows {
			line = fmt.Sprintf("and %d more: name a PREFIX to see fewer", len(lines)-i)
		}
		if utf8.RuneCountInString(line) > columns {
			line = string([]rune(line)[:columns-1]) + "…"
		}
		if out = append(out, line); len(out) == rows {
			break
		}
	}
	return out
}
