package checks

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/cli/scratch"
	"github.com/leasehold-go/leasehold/internal/cli/store"
	"github.com/leasehold-go/leasehold/internal/protocol"
	"github.com/leasehold-go/leasehold/table"
)

// Target is the table that is checked, and for whom.
type Target struct {
	*store.Store // its DB does not try again by itself: see New
	Access       table.Access
	Lease        time.Duration

	key    leasehold.Key // to write to
	item   protocol.Item // its key in the table
	probe  *probe
	denied []string // actions that are denied, or were refused
}

// New returns the target with a key to try things on that begins so. It watches the
// requests of the store and their connections, and shows each that is throttled.
func New(s *store.Store, access table.Access, lease time.Duration, key string) (*Target, error) {
	t := &Target{Store: s, Access: access, Lease: lease, key: scratch.Key(s, scratch.Random(key), "doctor"), probe: &probe{}}
	var err error
	t.item, err = s.Proto.Key(protocol.Key(t.key))
	s.DB = t.probe.watch(s.DB)
	return t, err
}

// isLocal reports whether nobody denies, throttles or bills anything.
func (t *Target) isLocal() bool { return t.File != "" }

// onThisMachine reports whether the server is.
func (t *Target) onThisMachine() bool {
	return store.IsLoopback(aws.ToString(t.DB.Options().BaseEndpoint))
}

// Settings are the checks of the table and of what the caller may do. They change nothing.
func (t *Target) Settings() []Check {
	list := []Check{{"describing the table", t.settings}}
	if t.isLocal() {
		return list
	}
	for _, p := range t.permissions() {
		list = append(list, Check{"trying " + p.action, func(ctx context.Context) []Finding { return t.try(ctx, p) }})
	}
	return list
}

// Locking are the checks of what happens to a lock there.
func (t *Target) Locking(locks *leasehold.Client) []Check {
	list := []Check{{"acquiring a lock, and renewing it", func(ctx context.Context) []Finding { return t.lock(ctx, locks) }}}
	if t.isLocal() {
		return list
	}
	return append(list, Check{"looking at the network", t.network})
}

// never is a condition that does not hold: a write with it changes nothing.
const never = "attribute_exists(#k) AND attribute_not_exists(#k)"

func (t *Target) names() map[string]string {
	return map[string]string{"#k": t.Proto.Schema().Partition}
}

func (t *Target) get(ctx context.Context) error {
	_, err := t.DB.GetItem(ctx, &dynamodb.GetItemInput{TableName: aws.String(t.Table), Key: t.item, ConsistentRead: aws.Bool(true)})
	return err
}

// cleanTime bounds the acquiring of the lock, and the deletion of its record.
const cleanTime = 10 * time.Second

// lock acquires a lock, renews it as often as is measured, releases it and deletes its
// record. If the caller may not write, it measures reads.
func (t *Target) lock(ctx context.Context, locks *leasehold.Client) (found []Finding) {
	if why := t.mayNotLock(); why != "" {
		return t.reads(ctx, Finding{Check: "lock", State: Unknown, What: "not tried: " + why})
	}
	// The record must go whatever happens, Ctrl-C and a lost reply included.
	defer func() {
		within, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanTime)
		defer cancel()
		if err := patiently(within, func(ctx context.Context) error { return scratch.Delete(ctx, t.Store, t.key) }); err != nil {
			found = append(found, Finding{
				Check: cleanUp, State: Warning, What: fmt.Sprintf("the record of %s may be left", t.key),
				Do: "it locks nothing else; delete it, or leave it to TTL", Err: err,
			})
		}
	}()
	within, cancel := context.WithTimeout(ctx, cleanTime)
	defer cancel()
	lock, err := scratch.Acquire(within, locks, t.key, leasehold.WithoutRenewal())
	if err != nil {
		return t.reads(ctx, Finding{Check: "lock", State: Fatal, What: "not acquired", Err: err})
	}
	took, err := t.probe.timed(func() error { return lock.Renew(ctx) })
	err = errors.Join(err, lock.Release(ctx))
	f := Finding{
		Check: "lock", State: OK, What: fmt.Sprintf("acquired %s, renewed it and released it", t.key),
		Values: map[string]any{"key": t.key.Partition, "token": lock.Token()},
	}
	if err != nil {
		f = Finding{Check: "lock", State: Fatal, What: "acquired, but then", Err: err}
	}
	return append([]Finding{f}, roundTrip(t.Lease, t.Proto.Skew(), "renewals", took)...)
}

// mayNotLock says why no lock can be tried. Empty: it can.
func (t *Target) mayNotLock() string {
	if t.Access == table.Read {
		return "with access read nothing is written"
	}
	for _, action := range []string{"dynamodb:GetItem", "dynamodb:UpdateItem"} {
		if slices.Contains(t.denied, action) {
			return action + " is not possible"
		}
	}
	if slices.Contains(t.denied, "dynamodb:DeleteItem") {
		return "its record could not be deleted again"
	}
	return ""
}

// reads says first, and the round trip of reads.
func (t *Target) reads(ctx context.Context, first Finding) []Finding {
	took, err := t.probe.timed(func() error { return patiently(ctx, t.get) })
	if err != nil && ctx.Err() == nil && !slices.Contains(t.denied, "dynamodb:GetItem") {
		return []Finding{first, failed("round trip", err)}
	}
	return append([]Finding{first}, roundTrip(t.Lease, t.Proto.Skew(), "reads", took)...)
}
