package holders

import (
	"context"
	"time"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/attempts"
	"github.com/leasehold-go/leasehold/internal/bridge"
	"github.com/leasehold-go/leasehold/internal/durations"
	"github.com/leasehold-go/leasehold/internal/liveness"
	"github.com/leasehold-go/leasehold/internal/protocol"
	"github.com/leasehold-go/leasehold/layout"
)

// State is the state of a holder: live, dead or unknown. It is "" if the holder was not
// observed.
type State string

// States of a holder.
const (
	Live    State = "live"
	Dead    State = "dead"
	Unknown State = "unknown" // the observation ended before the holder was known to be live or dead
)

// Observation is the result of observing the holder of a record. If the record no longer has
// that holder, State is "" and Record is the record as last read.
type Observation struct {
	Record leasehold.Record
	State  State
	Beat   liveness.Beat // the renewals that were observed; State is derived from Beat
	Shared bool          // whether Beat describes renewals of the holder's session; the record itself is not renewed
	Gone   bool          // whether the record was deleted during the observation
	Err    error         // error of this record's item, or error that ended the observation of all records

	ended bool // whether the session has ended, so that its client will not renew it again
}

// Observer finds out which holders are live or dead, by the rule that waiters use.
type Observer struct {
	Locks     *leasehold.Client
	Reader    Reader
	Limit     time.Duration // time limit of the observation; zero means no limit
	FreeReads bool          // whether read units cost nothing, as in a local store

	rule liveness.Rule
}

// New returns an Observer of a table. proto decodes the table's records. locks is a client of
// the same table.
func New(db leasehold.DB, table string, proto protocol.Protocol, caps layout.Capabilities, locks *leasehold.Client) Observer {
	return Observer{Locks: locks, Reader: NewReader(db, table, proto), rule: liveness.RuleOf(proto, caps)}
}

// Observe reads all the records repeatedly. It returns when every holder is known to be live or
// dead, when o.Limit has passed, or when the observation cannot continue.
func (o Observer) Observe(ctx context.Context, records []leasehold.Record) []Observation {
	out := make([]Observation, len(records))
	o.Watch(ctx, records, func(Plan) {}, func(i int, found Observation) { out[i] = found })
	return out
}

// Watch is like Observe, but calls "settled" for each record as soon as the state of its holder is
// known. If holders are undecided after the first successful read, it calls "planned" once. If
// holders are still undecided at the end, it reports their state as unknown (see the method "end").
func (o Observer) Watch(ctx context.Context, records []leasehold.Record, planned func(Plan), settled func(i int, found Observation)) {
	w := watch{Observer: o, began: time.Now()}
	for i, r := range records {
		if r.Released {
			settled(i, Observation{Record: r})
			continue
		}
		w.open = append(w.open, &subject{index: i, found: Observation{Record: r}})
	}
	if o.Limit > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, o.Limit, errObservedEnough)
		defer cancel()
	}
	told := false
	for len(w.open) > 0 {
		at, due := w.next(w.open)
		if !attempts.Wait(ctx, durations.Less(at, time.Since(w.began))) {
			w.end(context.Cause(ctx), settled)
			return
		}
		switch err := w.read(ctx, due, settled); {
		case ctx.Err() != nil:
			w.end(context.Cause(ctx), settled)
			return
		case err != nil && !w.mayPass(err):
			w.end(err, settled)
			return
		case err != nil:
			w.later(due)
		default:
			w.failed = nil
			if !told && len(w.open) > 0 {
				told = true
				planned(w.plan())
			}
		}
	}
}

// StillDead reads the session of a holder that was found dead. It returns a *ChangedError if
// the holder has renewed the session since. The lock's own record does not show that renewal.
func (o Observer) StillDead(ctx context.Context, found Observation) error {
	if !found.Shared || found.ended {
		return nil
	}
	row, err := o.Reader.session(ctx, found.Record.Session)
	if err == nil && !row.Released && row.Version != found.Beat.Version {
		err = &leasehold.ChangedError{Now: found.Record}
	}
	return err
}

// RecordOf converts a record of package protocol to a leasehold.Record.
func RecordOf(r protocol.Record) leasehold.Record { return bridge.Record(r).(leasehold.Record) }
