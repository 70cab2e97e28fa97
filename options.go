package leasehold

import (
	"maps"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/leasehold-go/leasehold/internal/attempts"
	"github.com/leasehold-go/leasehold/internal/breaking"
	"github.com/leasehold-go/leasehold/internal/hold"
	"github.com/leasehold-go/leasehold/internal/protocol"
	"github.com/leasehold-go/leasehold/internal/seek"
)

// AcquireOption is for every call that acquires, and for Do.
type AcquireOption interface{ toAcquire(*request) }

// RenewOption is for Renew and Resume.
type RenewOption interface{ toRenew(*hold.Renewal) }

// ReleaseOption is for Release and CommitAndRelease.
type ReleaseOption interface{ toRelease(*hold.Terms) }

// GetOption is for Get and Watch.
type GetOption interface{ toGet(*Key) }

// KeyOption completes a key. It is for acquiring, Get and Watch.
type KeyOption interface {
	AcquireOption
	GetOption
}

// LeaseOption is for acquiring, Renew and Resume.
type LeaseOption interface {
	AcquireOption
	RenewOption
}

// RecordOption changes data or attributes of the record, in the same write as the
// grant, the renewal or the release that it is given to.
type RecordOption interface {
	AcquireOption
	RenewOption
	ReleaseOption
}

// ReleasePolicy says whether a release keeps the record or deletes it. Given to a
// call that acquires, it applies to Do and Close as well.
type ReleasePolicy interface {
	AcquireOption
	ReleaseOption
}

// request is what a caller of Acquire asks for.
type request struct {
	seek.Want
	reentrant bool
	lease     time.Duration // that an option names; 0: none does
	policy    policy        // that an option names
	warnings  []warning
	label     *string        // of Once
	period    *time.Duration // of Every
}

func (r *request) key() Key { return Key(r.Key) }

// policy is what becomes of the record at its release.
type policy int

const (
	byConfig policy = iota
	keepRecord
	deleteRecord
)

func (p policy) toAcquire(r *request)    { r.policy = p }
func (p policy) toRelease(t *hold.Terms) { t.Delete = p == deleteRecord }

// warning is a function to call before expiry, from WithExpiryWarning.
type warning struct {
	left time.Duration
	fn   func(*Lock)
}

type acquireFunc func(*request)

func (f acquireFunc) toAcquire(r *request) { f(r) }

// IfExists acquires the key only if it has a record, held or released. If it has
// none, the error is ErrNotFound.
func IfExists() AcquireOption { return acquireFunc(func(r *request) { r.IfExists = true }) }

// NoWait returns a *HeldError instead of waiting for the holder. Requests that
// fail are still retried, for about ten seconds at most.
func NoWait() AcquireOption { return acquireFunc(func(r *request) { r.NoWait = true }) }

// NoWaitUnlessDead is NoWait for calls that are rare, as under cron or in AWS Lambda,
// where a dead holder may never be watched for long enough: it waits for nobody who
// lives. A holder looks dead if its record was written a lease ago or longer, by the
// wall clocks. Then it is watched, by the monotonic clock as any holder, for what is
// left of that lease, and taken over; the *HeldError comes as soon as it has renewed,
// or somebody else has the key. So a wrong clock costs a wait or a try, never a lock.
// Of several keys, and of permits, it waits only where no living holder would refuse it
// all the same; over 100 keys may each take a lease. A holder of another library's, whose
// version tells no time, counts as alive.
func NoWaitUnlessDead() AcquireOption {
	return acquireFunc(func(r *request) { r.NoWait, r.Watch = true, true })
}

// Reentrant shares the grant if ctx belongs to a lock of the same key. Without it
// the error would be ErrDeadlock. The Lock returned is another handle on that
// grant, which is released with its last handle. Each handle has its own expiry
// warnings. Nothing is sent, so asking for another lease, release policy, data or
// attributes than those of the grant is an error.
func Reentrant() AcquireOption { return acquireFunc(func(r *request) { r.reentrant = true }) }

// WithInitialData stores data if the record has none.
func WithInitialData(b []byte) AcquireOption {
	return acquireFunc(func(r *request) { r.Changes.InitialData = append([]byte{}, b...) })
}

// WithExpiryWarning calls fn when less than left remains until trust ends
// (Lock.TrustedUntil), as when renewals fail. It calls fn once, and is ready again
// after a renewal that succeeds. If the lock is lost before fn was called, as by
// Break, fn is called too; if it is released, fn is not called. fn runs on a
// goroutine of its own. left is 0 or more. More than one warning may be given.
func WithExpiryWarning(left time.Duration, fn func(*Lock)) AcquireOption {
	return acquireFunc(func(r *request) { r.warnings = append(r.warnings, warning{left, fn}) })
}

// WithoutRenewal renews nothing in the background. It is for a process that is
// frozen between calls, as in AWS Lambda: call Renew yourself, before
// Lock.TrustedUntil.
func WithoutRenewal() AcquireOption { return acquireFunc(func(r *request) { r.Manual = true }) }

type sortKey string

func (s sortKey) toAcquire(r *request) { r.Key.Sort = string(s) }
func (s sortKey) toGet(k *Key)         { k.Sort = string(s) }

// WithSortKey gives the sort key, in a table that has one.
func WithSortKey(sort string) KeyOption { return sortKey(sort) }

type leaseOption time.Duration

func (d leaseOption) toAcquire(r *request) {
	r.lease = time.Duration(d)
	r.Timing = r.Timing.Scaled(r.lease)
}
func (d leaseOption) toRenew(r *hold.Renewal) { r.Lease = time.Duration(d) }

// WithLease overrides Config.Lease. RenewEvery and Margin keep their ratio to it.
// At least 1 s. A Renew with a shorter lease shortens the trust in the lock as soon
// as it is sent, even if it is refused, until another Renew succeeds.
func WithLease(d time.Duration) LeaseOption { return leaseOption(d) }

type recordOption func(*protocol.Changes)

func (f recordOption) toAcquire(r *request)    { f(&r.Changes) }
func (f recordOption) toRenew(r *hold.Renewal) { f(&r.Changes) }
func (f recordOption) toRelease(t *hold.Terms) { f(&t.Changes) }

// WithAttributes sets top-level attributes of the record. A nil value removes the
// attribute. Those not named stay, whoever wrote them. A name that the layout
// itself uses is an error, before anything is sent.
func WithAttributes(a map[string]types.AttributeValue) RecordOption {
	return recordOption(func(c *protocol.Changes) {
		if c.Attributes == nil {
			c.Attributes = protocol.Item{}
		}
		maps.Copy(c.Attributes, cloneAttributes(a))
	})
}

// WithData replaces the record's data; nil removes it. Without this option the data
// stays, whoever wrote it. A release that deletes the record refuses it, and
// WithAttributes too, before anything is sent.
func WithData(b []byte) RecordOption {
	return recordOption(func(c *protocol.Changes) {
		c.SetData, c.Data = true, nil
		if b != nil {
			c.Data = append([]byte{}, b...)
		}
	})
}

// DeleteOnRelease has the release delete the record.
func DeleteOnRelease() ReleasePolicy { return deleteRecord }

// KeepOnRelease has the release keep the record, marked released.
func KeepOnRelease() ReleasePolicy { return keepRecord }

// ListOption is for List.
type ListOption interface{ toList(*listing) }

// listing is what a caller of List asks for.
type listing struct {
	attempts.Listing
	partitioned bool // Partition is given, if only as ""
	after       *Key
}

type listFunc func(*listing)

func (f listFunc) toList(l *listing) { f(l) }

// ListAfter starts after k: give it the key of the last record of an earlier
// listing, to go on from there.
func ListAfter(k Key) ListOption { return listFunc(func(l *listing) { l.after = &k }) }

// ListPartition lists the records of one partition key. It is a query, which reads
// only those records. It cannot be combined with ListPrefix.
func ListPartition(key string) ListOption {
	return listFunc(func(l *listing) { l.Partition, l.partitioned = key, true })
}

// ListPrefix lists the keys that begin with p. It is a scan: it reads the whole
// table, and costs as much.
func ListPrefix(p string) ListOption { return listFunc(func(l *listing) { l.Prefix = p }) }

// BreakOption is for Break.
type BreakOption interface{ toBreak(*breaking.Request) }

type breakFunc func(*breaking.Request)

func (f breakFunc) toBreak(b *breaking.Request) { f(b) }

// WithReason says why the grant is broken, in at most 1000 bytes: the record keeps it,
// and the holder is told. An *UnsupportedError in layouts whose free keys have no
// record.
func WithReason(text string) BreakOption {
	return breakFunc(func(b *breaking.Request) { b.Reason = text })
}

// IfUnrenewed breaks only if the holder has not renewed since the record was read.
// It is for a holder that was found dead. If it has renewed, the error is a
// *ChangedError.
func IfUnrenewed() BreakOption { return breakFunc(func(b *breaking.Request) { b.Unrenewed = true }) }
