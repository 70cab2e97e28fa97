package say

import (
	"bytes"
	"slices"
	"testing"
)

func TestAListIsClippedToTheScreen(t *testing.T) {
	lines := []string{"head", "KEY  OWNER", "a    me", "b    a very long owner", "c    me", "d    me"}
	for _, c := range []struct {
		columns, rows int
		want          []string
	}{
		{80, 24, lines},
		{80, 6, lines},
		{10, 4, []string{"head", "KEY  OWNER", "a    me", "and 3 mor…"}},
		{60, 5, []string{"head", "KEY  OWNER", "a    me", "b    a very long owner", "and 2 more: name a PREFIX to see fewer"}},
		{12, 6, []string{"head", "KEY  OWNER", "a    me", "b    a very…", "c    me", "d    me"}},
	} {
		if got := clip(lines, c.columns, c.rows); !slices.Equal(got, c.want) {
			t.Errorf("%d by %d: %q", c.columns, c.rows, got)
		}
	}
}

func TestNothingIsPaintedWhileTheShellHasItsTerminal(t *testing.T) {
	var terminal bytes.Buffer
	s := &Screen{On: &Output{To: &terminal, Terminal: true}}
	paints := func() bool {
		t.Helper()
		before := terminal.Len()
		if err := s.Paint([]string{"no locks are held"}); err != nil {
			t.Fatal(err)
		}
		return terminal.Len() > before
	}
	if err := s.Enter(); err != nil {
		t.Fatal(err)
	}
	if !paints() {
		t.Error("a screen that was entered is not painted")
	}
	s.Leave() // Ctrl-Z, while a listing is under way
	if paints() {
		t.Errorf("a listing was painted over the shell's screen: %q", terminal.String())
	}
	if err := s.Enter(); err != nil {
		t.Fatal(err)
	}
	if !paints() {
		t.Error("a screen that was entered again is not painted")
	}
}
