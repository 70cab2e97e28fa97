//go:build unix

package cli_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/leasehold-go/leasehold/internal/lab"
)

// entersAndLeaves is a CMD that counts the CMDs that run now, itself included, and appends
// the number to the file counts.
const entersAndLeaves = `echo $$ >in/$$; ls in | wc -l >>counts; sleep 0.05; rm in/$$`

func TestSixProcessesShareTwoPermitsOnAnyTable(t *testing.T) {
	t.Parallel()
	dir, env := tableEnv(t)
	lab.OK(t, os.Mkdir(filepath.Join(dir, "in"), 0o700))
	const processes, rounds = 6, 4
	for range rounds {
		var all []*process
		for i := range processes {
			all = append(all, start(t, dir, env, "run", "-p", "2", fmt.Sprintf("--json=%v", i%2 == 1), "gpu", "--", "sh", "-c", entersAndLeaves))
		}
		for i, p := range all {
			p.ends(0)
			saysOnceThatItWaits(t, p.stderr.String(), i%2 == 1)
		}
	}
	b := lab.Must(os.ReadFile(filepath.Join(dir, "counts")))(t)
	counts := strings.Fields(string(b))
	if len(counts) != processes*rounds {
		t.Errorf("%d were inside, want %d", len(counts), processes*rounds)
	}
	for _, n := range counts {
		if n != "1" && n != "2" {
			t.Errorf("%s inside at once", n)
		}
	}
}

// saysOnceThatItWaits fails the test if the process reported its wait more than once. If
// the process reported a wait, it must also have reported how the wait ended.
func saysOnceThatItWaits(t *testing.T, stderr string, asJSON bool) {
	t.Helper()
	waits, summary := `(?m)^leasehold: waiting: all 2 permits of gpu are held, by `, `(?m)^leasehold: granted gpu/\d after \d+s( and \d+ holders)?, token \d+$`
	if asJSON {
		waits, summary = `"event":"waiting".*"holdersSeen":[2-9]`, `"event":"granted".*"holdersSeen":[2-9]`
	}
	switch said := len(regexp.MustCompile(waits).FindAllString(stderr, -1)); {
	case said > 1:
		t.Errorf("it said %d times that it waits: %s", said, stderr)
	case said == 1 && !regexp.MustCompile(summary).MatchString(stderr):
		t.Errorf("it did not say how the wait ended: %s", stderr)
	}
}
