package ambiguity

import (
	"flag"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"github.com/leasehold-go/leasehold/internal/lab"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var rewrite = flag.Bool("rewrite", false, "write tables.md anew, to be read as a diff")

// firsts lists the fates of the first request. Each fate has a row in every table.
var firsts = append(slices.Clone(fates), silence)

// seconds returns the fates of the second request. Each fate has a column in every table. In a
// quick run (lab.IsQuick), seconds returns only the two fates that differ most.
func seconds() []fate {
	if lab.IsQuick() {
		return []fate{fates[0], silence}
	}
	return firsts
}

func TestOutcomesUnderFaultsMatchGoldenFiles(t *testing.T) {
	tables := make([]string, len(operations))
	next := make(chan int)
	var wg sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			for i := range next {
				t.Run(operations[i].name, func(t *testing.T) { tables[i] = tableOf(t, operations[i]) })
			}
		})
	}
	for i := range operations {
		next <- i
	}
	close(next)
	wg.Wait()
	if lab.IsQuick() || t.Failed() {
		return
	}
	compare(t, tables)
}

// compare compares the given tables with the tables in tables.md. It skips empty tables: the
// flag -run has left out their operations.
func compare(t *testing.T, tables []string) {
	t.Helper()
	const page, begins = "tables.md", "## The tables\n"
	byHand, written, ok := strings.Cut(string(lab.Must(os.ReadFile(page))(t)), begins)
	if !ok {
		t.Fatalf("%s has no line %q", page, begins)
	}
	if *rewrite {
		if slices.Contains(tables, "") {
			t.Fatal("-rewrite needs all tables: run it without -run")
		}
		now := byHand + begins + "\n" + strings.Join(tables, "\n")
		lab.OK(t, os.WriteFile(page, []byte(now), 0o600))
		return
	}
	had := strings.Split(written, "\n### ")[1:]
	lab.Want(t, "tables of tables.md", len(had), len(tables))
	for i, now := range tables {
		if had := "### " + had[i]; now != "" && strings.TrimSpace(now) != strings.TrimSpace(had) {
			t.Errorf("played:\n%s\nin tables.md:\n%s", now, had)
		}
	}
}

// tableOf runs a trial for each pair of fates of an operation, and returns the operation's table.
func tableOf(t *testing.T, op *operation) string {
	var found []outcome
	var rows strings.Builder
	for _, first := range firsts {
		fmt.Fprintf(&rows, "| %s |", first.short)
		for _, second := range seconds() {
			o, broken := play(t, op, first, second)
			t.Logf("%-10s %-10s %s | %s | %s", first.short, second.short, o.sees, o.record, o.later)
			if broken != "" {
				t.Errorf("%s, then %s: %s: %+v", first.short, second.short, broken, o)
			}
			i := slices.Index(found, o)
			if i < 0 {
				i = len(found)
				found = append(found, o)
			}
			fmt.Fprintf(&rows, " %c |", 'a'+rune(i))
		}
		rows.WriteByte('\n')
	}
	var b strings.Builder
	fmt.Fprintf(&b, "### %s\n\n%s\n\n| | the caller sees | the table shows | later |\n|---|---|---|---|\n", title(op.name), op.about)
	for i, o := range found {
		fmt.Fprintf(&b, "| %c | %s | %s | %s |\n", 'a'+rune(i), o.sees, o.record, o.later)
	}
	b.WriteString("\n| first ↓ second → |")
	for _, f := range seconds() {
		b.WriteString(" " + f.short + " |")
	}
	b.WriteString("\n|---|" + strings.Repeat("---|", len(seconds())) + "\n" + rows.String())
	return b.String()
}

func title(name string) string { return strings.ToUpper(name[:1]) + name[1:] }
