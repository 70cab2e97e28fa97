package inspect

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/attempts"
	"github.com/leasehold-go/leasehold/internal/cli/failure"
	"github.com/leasehold-go/leasehold/internal/cli/process"
	"github.com/leasehold-go/leasehold/internal/cli/requests"
	"github.com/leasehold-go/leasehold/internal/cli/say"
	"github.com/leasehold-go/leasehold/internal/cli/store"
	"github.com/leasehold-go/leasehold/internal/cli/wording"
	"github.com/leasehold-go/leasehold/internal/holders"
	"github.com/leasehold-go/leasehold/internal/visible"
)

// change is what became of a grant between two listings.
type change struct {
	record leasehold.Record
	state  string // held, released or deleted
}

const deleted = "deleted" // the record is gone: by a release, a break or TTL

// holdings are the records of a listing by their key. A read/write lock has one for
// each holder.
type holdings map[leasehold.Key][]leasehold.Record

func holdingsOf(records []leasehold.Record) holdings {
	h := holdings{}
	for _, r := range records {
		h[r.Key] = append(h[r.Key], r)
	}
	return h
}

// has reports whether a record of the same grant is in the same state.
func (h holdings) has(r leasehold.Record) bool {
	return slices.ContainsFunc(h[r.Key], func(other leasehold.Record) bool {
		return holders.GrantOf(other) == holders.GrantOf(r) && other.Released == r.Released
	})
}

// changesTo returns what is different in now, in order of key. A grant that another has
// replaced is not told of: the other one is.
func (h holdings) changesTo(now holdings) []change {
	keys := maps.Clone(now)
	maps.Copy(keys, h)
	var all []change
	for _, key := range slices.SortedFunc(maps.Keys(keys), holders.CompareKeys) {
		for _, r := range now[key] {
			if !h.has(r) {
				all = append(all, change{r, say.State(r)})
			}
		}
		shared := len(h[key]) > 1 || len(now[key]) > 1
		for _, r := range h[key] {
			switch {
			case len(now[key]) == 0:
				all = append(all, change{r, deleted})
			case shared && !r.Released && !now.has(r):
				all = append(all, change{r, "released"})
			}
		}
	}
	return all
}

// listWatch is ls --watch.
type listWatch struct {
	*command
	table  *store.Table
	flags  listFlags
	out    say.Listing
	screen *say.Screen // nil: no terminal
	before holdings
	said   map[string]bool // of damaged records, in a pipe
}

// watchList lists again and again until a signal ends it. On a terminal it keeps a
// screen of its own; elsewhere it writes what has changed.
func (c *command) watchList(cmd *cobra.Command, f listFlags) error {
	s, err := c.Open(cmd, store.Opening{})
	if err != nil {
		return err
	}
	defer s.Close()
	s.DB, s.Meter = requests.Metered(s.DB)
	t, err := s.WithLocks(leasehold.Config{})
	if err != nil {
		return err
	}
	signals := process.CatchSignals()
	defer signals.Release()
	w := &listWatch{command: c, table: t, flags: f, out: c.Listing(t), said: map[string]bool{}}
	if w.out.Terminal {
		w.out.States = f.Released
		w.screen = &say.Screen{On: c.Stdout}
		if err := w.screen.Enter(); err != nil {
			return err
		}
		defer w.screen.Leave()
		signals.BeforeStop, signals.AfterStop = w.screen.Leave, func() { _ = w.screen.Enter() }
	} else {
		w.out.States, w.flags.Released = true, true // a release is a change too
	}
	ctx, cancel := signals.Bind(cmd.Context())
	defer cancel()
	return failure.Answer(w.run(ctx))
}

func (w *listWatch) run(ctx context.Context) error {
	for {
		before := w.table.Meter.Used().Reads
		records, damaged, err := holders.List(ctx, w.table.Locks, w.flags.Listing)
		after := w.table.Meter.Used().Reads
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case err != nil && !holders.MayPass(err):
			return err
		case err != nil && w.out.Terminal: // it may pass
			err = w.paint([]string{failure.Text(err, w.table.Where())}, nil, nil)
		case err != nil:
			w.Say.Note("%s", failure.Plain(failure.Text(err, w.table.Where())))
			err = nil
		case w.out.Terminal:
			head := []string{w.sampling(after - before)}
			if len(records) == 0 {
				head = append(head, "no locks are held") // a line of its own: the one above may be clipped
			}
			err = w.paint(head, records, damaged)
		default:
			err = w.write(records, damaged, after-before)
		}
		if err != nil {
			return err
		}
		if !attempts.Wait(ctx, w.flags.every) {
			return context.Cause(ctx)
		}
	}
}

// sampling says how often the table is read, and what that costs.
func (w *listWatch) sampling(units float64) string {
	text := fmt.Sprintf("%s in %s, every %s", visible.Name(w.table.Table), w.table.Location, wording.Duration(w.flags.every))
	if w.table.File == "" {
		text += fmt.Sprintf(", %.1f read units a second", units/w.flags.every.Seconds())
	}
	if w.out.Terminal {
		text += ", " + w.Now().Local().Format(time.TimeOnly)
	}
	return text
}

// write writes the changes since the last listing, and the first one as a whole.
func (w *listWatch) write(records []leasehold.Record, damaged []error, units float64) error {
	for _, err := range damaged {
		if !w.said[err.Error()] {
			w.said[err.Error()] = true
			w.Say.Fail(err)
		}
	}
	now := holdingsOf(records)
	first := w.before == nil
	if first {
		w.Say.Text("watching %s: what comes and goes in between is not seen", w.sampling(units))
	}
	at := w.Now()
	for _, c := range w.before.changesTo(now) {
		if first && c.record.Released {
			continue
		}
		if err := w.out.WriteChange(w.Stdout, c.record, c.state, at); err != nil {
			return err
		}
	}
	w.before = now
	return nil
}

// paint writes the screen: head, the records, and the damaged ones.
func (w *listWatch) paint(head []string, records []leasehold.Record, damaged []error) error {
	var text strings.Builder
	w.out.Columns = w.Stdout.Columns()
	if err := w.out.Write(&text, say.Records(records), w.Now()); err != nil {
		return err
	}
	lines := head
	if text.Len() > 0 {
		lines = append(lines, strings.Split(strings.TrimSuffix(text.String(), "\n"), "\n")...)
	}
	for _, err := range damaged {
		lines = append(lines, failure.Plain(failure.Text(err, w.table.Table)))
	}
	return w.screen.Paint(lines)
}
