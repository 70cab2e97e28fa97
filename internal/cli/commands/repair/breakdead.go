package repair

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/cli/failure"
	"github.com/leasehold-go/leasehold/internal/cli/say"
	"github.com/leasehold-go/leasehold/internal/cli/store"
	"github.com/leasehold-go/leasehold/internal/cli/wording"
	"github.com/leasehold-go/leasehold/internal/holders"
	"github.com/leasehold-go/leasehold/internal/visible"
)

// breaksAtOnce is how many grants are broken at the same time.
const breaksAtOnce = 16

// breakDead breaks the grants of all dead holders of keys that begin with prefix: those
// that it has listed, and that have not renewed since. A shared lease is a holder too,
// under the key of its row: somebody has to end those that nobody waits for.
func (c *command) breakDead(ctx context.Context, t *store.Table, prefix string, f breakFlags) error {
	scope := holders.Scope{Prefix: prefix}
	records, bad, err := holders.List(ctx, t.Locks, holders.Listing{Scope: scope})
	c.Say.Fail(bad...)
	if err != nil {
		return err
	}
	by := t.Observer(f.checkFor)
	listed := t.Meter.Used()
	by.Reader.MayList(scope, listed.Requests, listed.Reads)
	sessions, more, err := by.Reader.Sessions(ctx, prefix)
	if err != nil {
		return err
	}
	c.Say.Fail(more...)
	records, damaged := append(records, sessions...), len(bad)+len(more) > 0
	under := ""
	if prefix != "" {
		under = " of keys that begin with " + visible.Name(prefix)
	}
	found, err := c.findDead(ctx, t, by, records, !f.yes)
	reported := errors.Is(err, leasehold.ErrRecord)
	damaged = damaged || reported
	switch {
	case err != nil && !reported:
		return err
	case len(found) == 0 && damaged:
		return failure.Exit(failure.CodeTrouble, nil)
	case len(found) == 0:
		return failure.Exit(failure.CodeNo, fmt.Errorf("no dead holders%s: nothing to break", under))
	}
	if !f.yes {
		if err := c.Confirm(ctx, askOf(t, found)+under+"? [y/N] ", "nothing was broken"); err != nil {
			return err
		}
	}
	code := 0
	if damaged {
		code = failure.CodeTrouble
	}
	for some := range slices.Chunk(found, breaksAtOnce) {
		for i, err := range breakAll(ctx, by, some, f) {
			if ctx.Err() != nil && err != nil && !errors.Is(err, leasehold.ErrUnknownOutcome) {
				continue // nothing became of it
			}
			if err := c.tellBroken(t, some[i].Record, err); err != nil {
				return err
			}
			switch {
			case err == nil, errors.Is(err, leasehold.ErrHolderUntold):
			case failure.NotFound(err), failure.Changed(err):
				code = max(code, failure.CodeNo)
			default:
				code = failure.CodeTrouble
			}
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
	}
	if code != 0 {
		return failure.Exit(code, nil)
	}
	return nil
}

// askOf asks whether to break what was found.
func askOf(t *store.Table, found []holders.Observation) string {
	shared := 0
	for _, o := range found {
		if t.IsSession(o.Record.Key) {
			shared++
		}
	}
	grants, leases := len(found)-shared, wording.Count(shared, "dead shared lease", "dead shared leases")
	if grants == 0 {
		return "End " + leases
	}
	ask := fmt.Sprintf("Break the %s of %s", wording.Plural(grants, "grant", "grants"), wording.Count(grants, "dead holder", "dead holders"))
	if shared > 0 {
		ask += " and end " + leases
	}
	return ask
}

// findDead observes the holders and returns the dead ones. Each is shown, if they are to
// be, as soon as it is known.
func (c *command) findDead(ctx context.Context, t *store.Table, by holders.Observer, records []leasehold.Record, show bool) (found []holders.Observation, err error) {
	out := c.Listing(t)
	out.JSON, out.Terminal, out.Checked = false, true, true
	out.Columns = c.Stderr.Columns()
	to := out.Rows(c.Stderr, say.Records(records), c.Now())
	unclear := 0
	err = c.Say.Check(ctx, by, false, records, func(o holders.Observation) error {
		switch o.State {
		case holders.Unknown:
			unclear++
		case holders.Dead:
			found = append(found, o)
			if show {
				return to.Write(say.Record{Record: o.Record, Holder: holders.Dead}, c.Now())
			}
		}
		return nil
	})
	if unclear > 0 && (err == nil || errors.Is(err, leasehold.ErrRecord)) {
		c.Say.Note("%s not known to be dead yet: left alone; observe for longer with --for", wording.Count(unclear, "holder is", "holders are"))
	}
	return found, err
}

// breakAll breaks grants at the same time, and returns the errors in their order. None
// is broken whose holder has renewed since.
func breakAll(ctx context.Context, by holders.Observer, found []holders.Observation, f breakFlags) []error {
	errs := make([]error, len(found))
	opts := append(f.options(), leasehold.IfUnrenewed())
	var wg sync.WaitGroup
	for i, o := range found {
		wg.Go(func() {
			if errs[i] = by.StillDead(ctx, o); errs[i] == nil {
				errs[i] = by.Locks.Break(ctx, o.Record, opts...)
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
	record  say.Record
}

func (b brokenJSON) MarshalJSON() ([]byte, error) {
	return say.Joined(struct {
		Message string `json:"message,omitempty"`
		Outcome string `json:"outcome"`
	}{b.message, b.outcome}, b.record)
}

// tellBroken says what became of one grant.
func (c *command) tellBroken(t *store.Table, r leasehold.Record, err error) error {
	if c.JSON {
		b := brokenJSON{outcome: "broken", record: say.Record{Table: t.Table, Record: r, Holder: holders.Dead}}
		if err != nil {
			b.message = failure.Text(err, t.Where())
		}
		if err != nil && !errors.Is(err, leasehold.ErrHolderUntold) {
			b.outcome = failure.Kind(err)
		}
		return json.NewEncoder(c.Stdout).Encode(b)
	}
	if err != nil {
		c.Say.Fail(err)
		if !errors.Is(err, leasehold.ErrHolderUntold) { // broken all the same
			return nil
		}
	}
	if t.IsSession(r.Key) {
		_, err = fmt.Fprintf(c.Stdout, "ended the shared lease %s of %s\n", wording.Key(r.Key), wording.Owner(r.Owner))
	} else {
		_, err = fmt.Fprintln(c.Stdout, brokeText(r))
	}
	return err
}

// brokeText says that a grant was broken.
func brokeText(r leasehold.Record) string {
	var b strings.Builder
	fmt.Fprintf(&b, "broke the grant of %s to %s", wording.Key(r.Key), wording.Owner(r.Owner))
	if r.Token != 0 {
		fmt.Fprintf(&b, " (token %d)", r.Token)
	}
	return b.String()
}
