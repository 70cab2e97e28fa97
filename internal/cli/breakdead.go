package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/leasehold-go/leasehold"
)

// breaksAtOnce is how many grants are broken at the same time.
const breaksAtOnce = 16

// breakDead breaks the grants of all dead holders of keys that begin with prefix: those
// that it has listed, and that have not renewed since.
func (a *app) breakDead(ctx context.Context, s *store, locks *leasehold.Client, reads *meter, prefix string, f breakFlags) error {
	records, damaged, err := a.records(ctx, locks, listFlags{prefix: prefix})
	if err != nil {
		return cause(ctx, err)
	}
	by, err := newObserver(s, locks)
	if err != nil {
		return err
	}
	by.limit = f.checkFor
	by.reader.mayList(scope{prefix: prefix}, reads)
	var found []observation
	unclear := 0
	for _, o := range a.observeWithProgress(ctx, by, records, countOf(len(records), "holder", "holders")) {
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case errors.Is(o.err, leasehold.ErrBadRecord):
			a.say.fail(o.err)
			damaged = true
		case o.err != nil:
			return o.err
		case o.liveness == dead:
			found = append(found, o)
		case o.liveness == unknown:
			unclear++
		}
	}
	if unclear > 0 {
		a.say.note("%s not known to be dead yet: left alone; observe for longer with --for", countOf(unclear, "holder is", "holders are"))
	}
	under := ""
	if prefix != "" {
		under = " of keys that begin with " + printable(prefix)
	}
	if len(found) == 0 {
		if damaged {
			return exit(codeTrouble, nil)
		}
		return exit(codeNo, fmt.Errorf("no dead holders%s: nothing to break", under))
	}
	if !f.yes {
		out := a.newListing(s, locks)
		out.json, out.terminal, out.checked = false, true, true
		out.colour = a.get("NO_COLOR") == ""
		rows := make([]row, len(found))
		for i, o := range found {
			rows[i] = row{record: o.record, liveness: dead}
		}
		if err := out.write(a.Stderr, rows, a.Now()); err != nil {
			return err
		}
		question := fmt.Sprintf("Break the %s of %s%s? [y/N] ", plural(len(found), "grant", "grants"), countOf(len(found), "dead holder", "dead holders"), under)
		if err := a.confirm(ctx, question, "nothing was broken"); err != nil {
			return err
		}
	}
	code := 0
	if damaged {
		code = codeTrouble
	}
	for some := range slices.Chunk(found, breaksAtOnce) {
		for i, err := range breakAll(ctx, by, some, f) {
			if ctx.Err() != nil && err != nil {
				return context.Cause(ctx)
			}
			if err := a.tellBroken(s, some[i].record, err); err != nil {
				return err
			}
			switch {
			case err == nil:
			case isNotThere(err), hasChanged(err):
				code = max(code, codeNo)
			default:
				code = codeTrouble
			}
		}
	}
	if code != 0 {
		return exit(code, nil)
	}
	return nil
}

// breakAll breaks grants at the same time, and returns the errors in their order. None
// is broken whose holder has renewed since.
func breakAll(ctx context.Context, by observer, found []observation, f breakFlags) []error {
	errs := make([]error, len(found))
	opts := append(f.options(), leasehold.IfUnrenewed())
	var wg sync.WaitGroup
	for i, o := range found {
		wg.Go(func() {
			if errs[i] = by.stillDead(ctx, o); errs[i] == nil {
				errs[i] = by.locks.Break(ctx, o.record, opts...)
			}
		})
	}
	wg.Wait()
	return errs
}

// brokenJSON is what became of one grant of several that were to be broken.
type brokenJSON struct {
	outcome string // broken, or the kind of error
	message string
	record  recordJSON
}

func (b brokenJSON) MarshalJSON() ([]byte, error) {
	return joinedJSON(struct {
		Message string `json:"message,omitempty"`
		Outcome string `json:"outcome"`
	}{b.message, b.outcome}, b.record)
}

// tellBroken says what became of one grant.
func (a *app) tellBroken(s *store, r leasehold.Record, err error) error {
	if a.flags.json {
		b := brokenJSON{outcome: "broken", record: recordJSON{Table: s.table, Record: r, Holder: dead}}
		if err != nil {
			b.outcome, b.message = kindOf(err), s.errorText(err)
		}
		return json.NewEncoder(a.Stdout).Encode(b)
	}
	if err != nil {
		a.say.fail(err)
		return nil
	}
	_, err = fmt.Fprintln(a.Stdout, brokeText(r))
	return err
}

// brokeText says that a grant was broken.
func brokeText(r leasehold.Record) string {
	var b strings.Builder
	fmt.Fprintf(&b, "broke the grant of %s to %s", printable(r.Key.String()), shortOwner(r.Owner))
	if r.Token != 0 {
		fmt.Fprintf(&b, " (token %d)", r.Token)
	}
	return b.String()
}

func plural(n int, one, many string) string {
	if n == 1 {
		return one
	}
	return many
}

func countOf(n int, one, many string) string { return fmt.Sprintf("%d %s", n, plural(n, one, many)) }
