package aws

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/lab"
)

// pagePath is the path of the page whose tables of errors the tests check.
const pagePath = "../../../docs/internals/aws-errors.md"

var rewrite = flag.Bool("rewrite", false, "write the tables of docs/internals/aws-errors.md anew, to be read as a diff")

// column is a column of the second table in aws-errors.md. Each column stands for one kind of
// simulated failure.
type column string

const (
	answered column = "passes, and every request was answered"
	silent   column = "passes, and a request had no answer"
	refused  column = "does not pass"
)

func (x trouble) column() column {
	switch {
	case !x.passes:
		return refused
	case x.silent:
		return silent
	}
	return answered
}

// results contains the errors that the calls returned during simulated failures. It is safe
// for concurrent use.
type results struct {
	mu    sync.Mutex
	cells int
	by    map[string]map[column][]string // texts of results by operation and column, without duplicates
}

func (r *results) note(x trouble, op operation, err error) {
	var said string
	own := (*leasehold.CommitError)(nil)
	switch {
	case errors.Is(err, errNothing):
		said = "nothing is yielded"
	case errors.As(err, &own):
		said = "`*CommitError`"
	case errors.Is(err, leasehold.ErrTableNotFound):
		said = "`ErrTableNotFound`"
	case errors.Is(err, leasehold.ErrUnknownOutcome):
		said = "`ErrUnknownOutcome`"
	case errors.Is(err, context.DeadlineExceeded):
		said = "the end of ctx"
	default:
		said = "the SDK's error"
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.cells++
	if r.by == nil {
		r.by = map[string]map[column][]string{}
	}
	if r.by[op.name] == nil {
		r.by[op.name] = map[column][]string{}
	}
	cell := append(r.by[op.name][x.column()], said)
	if op.hasty && x.column() == answered { // a call that does not wait for answers may also return the two errors in the next line; the method check accepts both
		cell = append(cell, "`ErrUnknownOutcome`", "the end of ctx")
	}
	slices.Sort(cell)
	r.by[op.name][x.column()] = slices.Compact(cell)
}

// tables returns the two tables of aws-errors.md as Markdown.
func (r *results) tables() string {
	var b strings.Builder
	b.WriteString("| what is wrong | what comes | requests are | the error says |\n|---|---|---|---|\n")
	for _, x := range troubles {
		then := "not repeated"
		switch {
		case x.passes:
			then = "repeated"
		case x.denies:
			then = "repeated by a wait that was answered before"
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", x.name, x.comes(), then, x.advice)
	}
	fmt.Fprintf(&b, "\n| call | trouble that %s | trouble that %s | trouble that %s |\n|---|---|---|---|\n", answered, silent, refused)
	for _, op := range operations {
		fmt.Fprintf(&b, "| `%s` |", op.name)
		for _, c := range []column{answered, silent, refused} {
			fmt.Fprintf(&b, " %s |", strings.Join(r.by[op.name][c], ", "))
		}
		b.WriteString("\n")
	}
	return b.String()
}

// comes returns the text for the column "what comes" of aws-errors.md: the answer that a client
// receives to a write during the simulated failure x.
func (x trouble) comes() string {
	if x.vault != nil {
		return "an error of the credential provider"
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	res, err := x.answer((&lab.Request{Call: lab.Call{Op: "UpdateItem"}}).WithContext(ctx))
	switch {
	case errors.Is(err, context.Canceled):
		return "nothing"
	case err != nil:
		return err.Error()
	}
	body, err := io.ReadAll(res.Body)
	if err != nil {
		return err.Error()
	}
	var said struct {
		Type string `json:"__type"`
	}
	if err := json.Unmarshal(body, &said); err != nil || said.Type == "" {
		return fmt.Sprintf("%d, %s", res.StatusCode, res.Header.Get("Content-Type"))
	}
	_, code, _ := strings.Cut(said.Type, "#")
	return fmt.Sprintf("%d `%s`", res.StatusCode, code)
}

// compare fails the test if the tables differ from the tables in aws-errors.md. With the flag
// -rewrite, it writes the tables to aws-errors.md instead.
func (r *results) compare(t *testing.T) {
	const begin, end = "<!-- written by proof/robustness/aws: begin -->\n", "<!-- end -->\n"
	b := lab.Must(os.ReadFile(pagePath))(t)
	head, rest, ok := strings.Cut(string(b), begin)
	was, tail, ended := strings.Cut(rest, end)
	if !ok || !ended {
		t.Fatalf("%s has no place for the tables", pagePath)
	}
	now := "\n" + r.tables() + "\n"
	switch {
	case *rewrite:
		lab.OK(t, os.WriteFile(pagePath, []byte(head+begin+now+end+tail), 0o644))
	case was != now:
		t.Errorf("%s differs from the results: run the test with -rewrite, and read the diff. Results:\n%s", pagePath, now)
	}
}
