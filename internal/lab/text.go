package lab

import (
	"os/exec"
	"regexp"
	"strings"
	"testing"
)

// mostShown is the greatest number of characters of a text that a failure message shows.
const mostShown = "%.4000s"

// WantParts fails the test unless text contains each of parts. The parameter "what" names the text.
func WantParts[S ~string | ~[]byte](t testing.TB, what string, text S, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(string(text), part) {
			t.Errorf("%s: %q is missing in "+mostShown, what, part, string(text))
		}
	}
}

// WantNoPart fails the test if text contains one of parts. The parameter "what" names the text.
func WantNoPart[S ~string | ~[]byte](t testing.TB, what string, text S, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if strings.Contains(string(text), part) {
			t.Errorf("%s: %q is in "+mostShown, what, part, string(text))
		}
	}
}

// WantMatch fails the test unless text matches the regular expression. The parameter "what" names
// the text.
func WantMatch[S ~string | ~[]byte](t testing.TB, what string, text S, pattern string) {
	t.Helper()
	if !regexp.MustCompile(pattern).MatchString(string(text)) {
		t.Errorf("%s: "+mostShown+"\ndoes not match %s", what, string(text), pattern)
	}
}

// Output runs a command, and returns what the command has written to stdout and stderr. It ends
// the test if the command fails.
func Output(t testing.TB, cmd *exec.Cmd) string {
	t.Helper()
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%q: %v\n%s", cmd.Args, err, out)
	}
	return string(out)
}
