package cli

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/lease"
	"github.com/leasehold-go/leasehold/internal/protocol"
	"github.com/leasehold-go/leasehold/table"
)

// leastTries is how many tries to renew a lease should leave time for. The default
// lease leaves it for four after the first.
const leastTries = 4

func (d *doctor) lockConfig() leasehold.Config {
	return leasehold.Config{Lease: d.flags.lease}
}

// timingOf is the timing of a lease with the defaults of leasehold.Config.
func timingOf(length, skew time.Duration) lease.Timing {
	t := lease.Timing{Lease: length, Margin: length / 10, Skew: skew}
	t.Every = min(length/4, t.Trust()/3)
	return t
}

// checkLock acquires a lock, renews it as often as is measured, releases it and
// deletes its record. If the caller may not write, it measures reads.
func (d *doctor) checkLock(ctx context.Context) {
	if why := d.noLock(); why != "" {
		d.say(finding{Check: "lock", State: notKnown, What: "not tried: " + why})
		d.measure(ctx, "reads", d.read)
		return
	}
	d.progress("acquiring a lock")
	key := d.key()
	locks, err := d.store.locks(d.lockConfig())
	if err != nil {
		d.trouble("lock", err.Error())
		return
	}
	defer closeLocks(locks)
	// The record must go whatever happens, Ctrl-C and a lost reply included.
	defer func() {
		within, cancel := context.WithTimeout(context.WithoutCancel(ctx), doctorClean)
		defer cancel()
		err := d.ask(within, func(ctx context.Context) error { return d.store.deleteTestKeys(ctx, key) })
		if err != nil {
			d.say(finding{
				Check: cleanUp, State: warning, What: fmt.Sprintf("the record of %s may be left: %s", printable(key.String()), reason(err)),
				Do: "it locks nothing else; delete it, or leave it to TTL",
			})
		}
	}()
	within, cancel := context.WithTimeout(ctx, doctorClean)
	defer cancel()
	lock, err := acquireTestKey(within, locks, key, leasehold.WithoutRenewal())
	if err != nil {
		d.say(finding{Check: "lock", State: fatal, What: "not acquired: " + d.store.errorText(err)})
		d.measure(ctx, "reads", d.read)
		return
	}
	measured := d.time(ctx, func(ctx context.Context) error { return lock.Renew(ctx) })
	released := lock.Release(ctx)
	switch err := errors.Join(measured.err, released); {
	case ctx.Err() != nil:
	case err != nil:
		d.say(finding{Check: "lock", State: fatal, What: "acquired, but then: " + d.store.errorText(err)})
	default:
		d.say(finding{
			Check: "lock", State: fine, What: fmt.Sprintf("acquired %s, renewed it and released it", printable(key.String())),
			Values: map[string]any{"key": key.Partition, "token": lock.Token()},
		})
	}
	d.sayRoundTrip("renewals", measured.took)
}

// doctorClean bounds the acquiring of the lock, and the deletion of its record.
const doctorClean = 10 * time.Second

// noLock says why no lock can be tried. Empty: it can.
func (d *doctor) noLock() string {
	if table.Access(d.flags.access) == table.Read {
		return "with access read nothing is written"
	}
	for _, action := range []string{"dynamodb:GetItem", "dynamodb:UpdateItem"} {
		if slices.Contains(d.cannot, action) {
			return action + " is not possible"
		}
	}
	if slices.Contains(d.cannot, "dynamodb:DeleteItem") {
		return "its record could not be deleted again"
	}
	return ""
}

func (d *doctor) read(ctx context.Context) error {
	item, err := d.proto.Key(protocol.Key(d.key()))
	if err != nil {
		return err
	}
	_, err = d.store.db.GetItem(ctx, &dynamodb.GetItemInput{TableName: aws.String(d.store.table), Key: item, ConsistentRead: aws.Bool(true)})
	return err
}

// measurement is the time of each request that was answered.
type measurement struct {
	took []time.Duration // sorted
	err  error           // that ended it early
}

// time sends requests one after another, for some seconds at most.
func (d *doctor) time(ctx context.Context, send func(context.Context) error) measurement {
	d.probe.time(true)
	defer d.probe.time(false)
	var err error
	for n, began := 0, time.Now(); err == nil && n < measureCount && time.Since(began) < measureTime; n++ {
		if n%10 == 0 {
			d.progress(fmt.Sprintf("measuring: %d of %d requests", n, measureCount))
		}
		err = send(ctx)
	}
	took := d.probe.seen().took
	slices.Sort(took)
	return measurement{took, err}
}

// measure says the round trip of requests.
func (d *doctor) measure(ctx context.Context, what string, send func(context.Context) error) {
	m := d.time(ctx, func(ctx context.Context) error {
		return d.ask(ctx, send)
	})
	if m.err != nil && ctx.Err() == nil && !isDenied(m.err) {
		d.trouble("round trip", reason(m.err))
		return
	}
	d.sayRoundTrip(what, m.took)
}

// sayRoundTrip compares the round trip with the lease: how often a renewal can be
// tried between the time it is due and the end of trust.
func (d *doctor) sayRoundTrip(what string, took []time.Duration) {
	if len(took) == 0 {
		return
	}
	timing := timingOf(d.flags.lease, d.proto.Skew())
	p50, p99 := percentile(took, 0.5), percentile(took, 0.99)
	n := tries(timing, p99)
	f := finding{
		Check: "round trip", State: fine,
		What: fmt.Sprintf("p50 %s, p99 %s of %d %s; a lease of %s is renewed every %s and trusted for %s: time for %s tries",
			roundTripText(p50), roundTripText(p99), len(took), what, shortDuration(timing.Lease), shortDuration(timing.Every), shortDuration(timing.Trust()), count(n)),
		Values: map[string]any{
			"p50Ms": float64(p50.Microseconds()) / 1000, "p99Ms": float64(p99.Microseconds()) / 1000, "requests": len(took),
			"leaseMs": timing.Lease.Milliseconds(), "renewEveryMs": timing.Every.Milliseconds(), "trustMs": timing.Trust().Milliseconds(), "tries": n,
		},
	}
	if isSlow(timing, p99) {
		f.State = warning
		if n < 2 {
			f.State = fatal
		}
		f.Do = fmt.Sprintf("use a lease of at least %s (-l, or Config.Lease), or a table that is nearer", shortDuration(leaseFor(p99, timing.Skew)))
	}
	d.say(f)
}

// tries is how many requests of that time, one after another, fit between the time
// a renewal is due and the end of trust.
func tries(t lease.Timing, took time.Duration) int {
	return int(min((t.Trust()-t.Every)/max(took, time.Microsecond), math.MaxInt32))
}

// isSlow reports whether requests of that time leave too few tries, or take a good part
// of the time between two renewals: then each wait for a grant is long as well, and one
// reply that is slower than that is given up.
func isSlow(t lease.Timing, took time.Duration) bool {
	return tries(t, took) < leastTries || took > t.Every/4
}

// leaseFor is the shortest lease, in whole seconds, for which requests of that time are
// not slow.
func leaseFor(took, skew time.Duration) time.Duration {
	length := max(time.Second, skew+time.Second)
	for isSlow(timingOf(length, skew), took) {
		length += time.Second
	}
	return length
}

// roundTripText formats a round trip: 0.41ms, 3.2ms, 152ms.
func roundTripText(d time.Duration) string {
	ms := float64(d) / float64(time.Millisecond)
	switch {
	case ms < 1:
		return fmt.Sprintf("%.2fms", ms)
	case ms < 100:
		return fmt.Sprintf("%.1fms", ms)
	}
	return fmt.Sprintf("%.0fms", ms)
}

// count formats a number of tries: beyond some it does not matter.
func count(n int) string {
	if n > 100 {
		return "more than 100"
	}
	return fmt.Sprint(n)
}
