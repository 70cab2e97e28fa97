package say

import (
	"bytes"
	"testing"
)

func TestTerminalReceivesNoEscapeSequencesFromData(t *testing.T) {
	const evil = "\x1b[2J\u009b2J\u202e\xff\r"
	for _, c := range []struct {
		out  Output
		want string
	}{
		{Output{}, `\u001b[2J\u009b2J\u202e\xff\u000d`},
		{Output{Terminal: true}, "\r\x1b[K" + `\u001b[2J\u009b2J\u202e\xff\u000d`},
		{Output{Terminal: true, Coloured: true}, "\r\x1b[K\x1b[31m" + `\u001b[2J\u009b2J\u202e\xff\u000d` + "\x1b[0m"},
	} {
		var got bytes.Buffer
		c.out.To = &got
		if err := c.out.Show(append([]any{overLine}, Red.Of(evil)...)...); err != nil || got.String() != c.want {
			t.Errorf("%+v: %q, %v", c.out, got.String(), err)
		}
	}
}

func TestDataIsRawInPipeAndEscapedAtTerminal(t *testing.T) {
	data := []byte("\x1b[2J\xff\u202e\n")
	for terminal, want := range map[bool]string{false: string(data), true: `\u001b[2J\xff\u202e` + "\n"} {
		var got bytes.Buffer
		if err := (&Output{To: &got, Terminal: terminal}).Data(data); err != nil || got.String() != want {
			t.Errorf("terminal %v: %q, %v", terminal, got.String(), err)
		}
	}
}
