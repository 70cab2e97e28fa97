package cli

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/leasehold-go/leasehold/internal/lab"
)

// hostileNames contains keys with every kind of character that a shell does not read literally.
var hostileNames = []string{
	"t/`touch x`", "t/$(touch x)", "t/(touch x)", "-rf", "~root", "a b", "a\tb", "a\nb", "a;b", "a&b", "a|b", "a<b", "a>b", "a'b", `a"b`, `a\b`,
	"#a", "!a", "a{b", "a}b", "a*b", "a?b", "a[b", "a]b", "a^b", "a%b", "a@b", "=a", "a=b", "a,b", "a~b", ":a", "a$b", "a\x1bb", "a\u202eb", "ä", "",
}

func TestCompletionOmitsNamesWithSpecialCharacters(t *testing.T) {
	plain := []string{"t/a", "a-b", "a.b", "a_b", "a:b", "0", "/a", ".a", "_a", "key="}
	f := offering(cobra.FixedCompletions(append(plain, hostileNames...), cobra.ShellCompDirectiveNoFileComp))
	offered, _ := f(nil, nil, "")
	lab.Want(t, "offered words", strings.Join(offered, " "), strings.Join(plain, " "))
}

func TestCompletionOffersNoHostileKeyFromTable(t *testing.T) {
	dir := t.TempDir()
	vars := map[string]string{"HOME": dir, "LEASEHOLD_FILE": filepath.Join(dir, "locks.db"), "AWS_EC2_METADATA_DISABLED": "true"}
	for _, key := range append([]string{"plain/1", "plain/2"}, hostileNames...) {
		if key == "" {
			continue
		}
		vars["LEASEHOLD_OWNER"] = strings.Trim(key, "\n\t\x1b") + "-owner"
		if _, said, code := typed(t, vars, "acquire", "-q", "-l", "1h", "--", key); code != 0 {
			t.Fatalf("%q: %s", key, said)
		}
	}
	asked := 0
	ask := func(words ...string) {
		out, _, _ := typed(t, vars, append([]string{"__complete"}, words...)...)
		for _, line := range strings.Split(strings.TrimSpace(out), "\n") {
			word, description, described := strings.Cut(line, "\t")
			if !plainWord.MatchString(word) && !strings.HasPrefix(word, ":") || described && !strings.Contains(strings.Join(words, " "), "help") && strings.Contains(description, "touch") {
				t.Errorf("%q offers %q", words, line)
			}
			if word == "plain/1" {
				asked++
			}
		}
	}
	everyCommand(tree(), func(cmd *cobra.Command) {
		path := strings.Fields(cmd.CommandPath())[1:]
		ask(append(path, "")...)
		cmd.Flags().VisitAll(func(flag *pflag.Flag) {
			if flag.NoOptDefVal == "" {
				ask(append(path, "--"+flag.Name, "")...)
			}
		})
	})
	if asked < 7 {
		t.Errorf("plain keys were offered %d times", asked)
	}
}

func TestCompletionScriptNeverEvaluatesCommandLineWithBacktick(t *testing.T) {
	for shell, evaluates := range map[string]string{
		"bash": "out=$(eval ", "zsh": "out=$(eval ", "fish": "(eval $requestComp", "powershell": "Invoke-Expression",
	} {
		var script bytes.Buffer
		lab.OK(t, Completion(tree(), shell, &script))
		before, after, _ := strings.Cut(script.String(), evaluates)
		lines := strings.Split(before, "\n")
		guard := lines[max(0, len(lines)-2)]
		lab.WantParts(t, shell+": the line before the evaluation", guard, "return", "`")
		lab.WantNoPart(t, shell+": the lines after the first evaluation", after, evaluates)
	}
}

// Cobra's own script for fish removes the quotes from all words before the last word, and then
// evaluates the words. The script of leasehold must quote them again.
func TestFishCompletionQuotesWordsBeforeCursor(t *testing.T) {
	var script bytes.Buffer
	lab.OK(t, Completion(tree(), "fish", &script))
	words, _, _ := strings.Cut(script.String(), "set -l requestComp")
	lab.WantParts(t, "the words of the line", words, "set -l args (string escape -- (commandline")
}
