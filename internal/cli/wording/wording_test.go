package wording

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/lab"
)

func TestSentenceAboutOneKeyUsesSingularVerb(t *testing.T) {
	for want, keys := range map[string][]leasehold.Key{
		"a is":           leasehold.Keys("a"),
		"a and b are":    leasehold.Keys("a", "b"),
		"a, b and c are": leasehold.Keys("a", "b", "c"),
	} {
		lab.Want(t, "keys", KeysAre(keys), want)
	}
}

func TestFillWrapsTextAtSpacesAndKeepsAllWords(t *testing.T) {
	for _, text := range []string{
		"", "one", "a  key with   spaces: " + strings.Repeat("word ", 60), strings.Repeat("x", 200) + " after",
		"the outcome is unknown: no answer in time: " + strings.Repeat("größer ", 30),
	} {
		for _, columns := range []int{20, 40, 80} {
			got := Fill("leasehold: ", text, columns)
			lines := strings.Split(strings.TrimSuffix(got, "\n"), "\n")
			for i, line := range lines {
				rest, ok := strings.CutPrefix(line, map[bool]string{true: "leasehold: ", false: strings.Repeat(" ", len("leasehold: "))}[i == 0])
				if !ok && text != "" {
					t.Errorf("line %d is not indented: %q", i, line)
				}
				if utf8.RuneCountInString(line) > columns && strings.Contains(strings.TrimSpace(rest), " ") {
					t.Errorf("%d columns, want at most %d: %q", utf8.RuneCountInString(line), columns, line)
				}
				lines[i] = rest
			}
			lab.Want(t, "words", strings.Join(strings.Fields(strings.Join(lines, " ")), " "), strings.Join(strings.Fields(text), " "))
		}
	}
}

func TestSuggestedCommandStaysOnOneLine(t *testing.T) {
	const command = "leasehold break --token 1764230400000042 --reason 'it hangs: twice' --yes import/7"
	got := Fill("leasehold: ", "import/7 is held by host/4711/k3f9: break asks at a terminal, and there is none: to break this grant type "+command, 80)
	lab.WantParts(t, "the text", got, command+"\n")
	got = Fill("", "Try: leasehold run hello -- sh -c 'echo $LEASEHOLD_TOKEN; sleep 30', in two terminals, or in as many as you like.", 80)
	lab.WantParts(t, "the text", got, "leasehold run hello -- sh -c 'echo $LEASEHOLD_TOKEN; sleep 30',")
	lab.Want(t, "lines", strings.Count(got, "\n"), 2)
}
