// Package bench measures a lock table: how long it takes to acquire and release a lock, to
// renew one, to hand one over among clients that contend and to take one over from a
// holder that died, and what each of them costs there. It knows no flags, and asks nobody:
// what it will do and cost at most (Offer), the caller says first.
//
//	offer.go      what a run will do, and cost at most
//	parts.go      the four parts that are measured
//	part.go       how long a part may take, and how far it is
//	operation.go  what was measured of one operation, and how it is printed
package bench

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/cli/failure"
	"github.com/leasehold-go/leasehold/internal/cli/requests"
	"github.com/leasehold-go/leasehold/internal/cli/say"
	"github.com/leasehold-go/leasehold/internal/cli/scratch"
	"github.com/leasehold-go/leasehold/internal/cli/store"
	"github.com/leasehold-go/leasehold/internal/cli/wording"
	"github.com/leasehold-go/leasehold/internal/lease"
)

// Prefix is what all keys that are written begin with.
const Prefix = "leasehold-bench/"

// cleanTime bounds the deletion of the keys at the end.
const cleanTime = 10 * time.Second

// Plan is what is measured, and at which prices.
type Plan struct {
	Duration              time.Duration // of each part
	Clients               int           // that contend for one key
	WritePrice, ReadPrice float64       // dollars for a million request units
}

// Bench is one run.
type Bench struct {
	Plan
	Say  *say.Messages
	Out  *say.Output // of results
	JSON bool

	store    *store.Store
	meter    *requests.Meter
	name     string // what all of its keys begin with
	keys     []leasehold.Key
	lease    time.Duration // the shortest
	takeover time.Duration // that a takeover takes at most, if DynamoDB answers soon
}

// New returns a run on a store, whose requests it counts from now on.
func New(s *store.Store, p Plan) *Bench {
	b := &Bench{Plan: p, store: s, name: scratch.Random(Prefix) + "/", lease: lease.Shortest(s.Proto.Skew())}
	b.takeover = b.lease + s.Proto.Skew() + s.Layout.Capabilities().LeaseStep + time.Second
	s.DB, b.meter = requests.Metered(s.DB)
	return b
}

// Run measures the parts, one after another, and deletes its keys, also when ctx ends.
func (b *Bench) Run(ctx context.Context) error {
	err := b.run(ctx)
	if left := b.clean(); left != nil {
		b.Say.Fail(left)
		err = errors.Join(err, failure.Exit(failure.CodeTrouble, nil))
	}
	if s := failure.Interrupted(context.Cause(ctx)); s != nil {
		return s
	}
	if err == nil {
		b.Say.Text("%s: $%g for a million write units, $%g for a million read units; storage apart", b.pricedAt(), b.WritePrice, b.ReadPrice)
	}
	return err
}

func (b *Bench) run(ctx context.Context) error {
	if b.Out.Terminal && !b.JSON {
		if err := b.Out.Show(heading); err != nil {
			return err
		}
	}
	for _, p := range []*part{
		{name: "acquire and release", limit: b.Duration, measure: b.acquireAndRelease},
		{name: "renewal", limit: b.Duration, measure: b.renewal},
		{name: fmt.Sprintf("hand-over among %d clients", b.Clients), limit: b.Duration, measure: b.handOver},
		{name: "takeover after a lease of " + wording.Duration(b.lease), limit: b.takeoverPart(), measure: b.takeovers},
	} {
		err := p.run(ctx, b)
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case err != nil:
			return failure.Answer(err)
		}
		for _, o := range p.operations {
			if err := b.print(o); err != nil {
				return err
			}
		}
	}
	return nil
}

// takeoverPart is the time of the last part, which is long enough for one takeover.
func (b *Bench) takeoverPart() time.Duration { return max(b.Duration, b.takeover) }

// key returns a key of this run, which clean deletes.
func (b *Bench) key(name string) leasehold.Key {
	key := scratch.Key(b.store, b.name+name, "bench")
	b.keys = append(b.keys, key)
	return key
}

// clean deletes the keys, also after a signal.
func (b *Bench) clean() error {
	ctx, cancel := context.WithTimeout(context.Background(), cleanTime)
	defer cancel()
	if err := scratch.Delete(ctx, b.store, b.keys...); err != nil {
		return fmt.Errorf("keys that begin with %s may be left in %s: delete them, or leave them to TTL: %s", b.name, b.store.Called(), failure.Text(err, b.store.Where()))
	}
	return nil
}
