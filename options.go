package leasehold

import (
	"maps"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/leasehold-go/leasehold/internal/attempts"
	"github.com/leasehold-go/leasehold/internal/attribute"
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

func (r *request) key() Key { return r.Key }

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

// NoWait returns a *HeldError at once instead of waiting for a live holder. Requests
// that fail are still retried, for about ten seconds at most.
//
// A holder appears dead if its record was written a lease ago or longer, by the wall
// clocks. NoWait observes such a holder for what is left of that lease, by the monotonic
// clock as Acquire does, and takes its key over. It returns the *HeldError as soon as the
// holder has renewed, or another client has acquired the key. So a wrong clock costs a
// wait or a refusal, never a lock. Bound the wait by the context, or use
// NoWaitEvenIfDead.
//
// Of several keys NoWait observes dead holders only if no live holder
// would refuse the call anyway. A holder whose version contains no time, as another
// library's, counts as live.
func NoWait() AcquireOption { return acquireFunc(func(r *request) { r.NoWait = true }) }

// NoWaitEvenIfDead is NoWait that is also refused at once by a holder that appears dead.
// It takes over a dead holder only if this client has already observed the record for a
// lease, over several calls. So a process that calls once, as under cron, never acquires
// the key of a holder that died.
func NoWaitEvenIfDead() AcquireOption {
	return acquireFunc(func(r *request) { r.NoWait, r.EvenIfDead = true, true })
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
		maps.Copy(c.Attributes, attribute.Clone(a))
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

// Once acquires the key unless label names what was done last under it. Then the error is
// a *DoneError: at once, whoever holds the key, or behind another goroutine of this client
// when that one releases. A label is a commit, a date or the hash of a file, of at most 256
// bytes.
//
// It is done when the lock is released with MarkDone, by a Do whose function returned
// nil, or by CommitAndRelease. The record keeps the label then, until another is done,
// and no TTL deletes it, whatever Config.Retention. If the function fails, or its process
// dies, the next call does it: whoever waits, or comes. What CommitAndRelease writes is
// written exactly once, until another label is done. All else is done once or more: again,
// if a holder died after its work and before its release, lost the lock between the two, or
// could not store the mark before its lease ended. Release and Do repeat the write for so
// long, and return nil only if the record says that it is done. If handles share a grant (Reentrant), the last of
// those that were acquired for the work says whether it is done; Do of the others returns
// nil. That one must be the last handle of all, or its Do is an error.
//
// Nothing more is sent for it. Layout Native has it, for plain locks of one key; elsewhere
// the error is an *UnsupportedError: there give each label a key of its own. A waiter is
// handed the key by no other goroutine. A lock that was detached is resumed without it:
// MarkDone is an error then.
func Once(label string) AcquireOption { return acquireFunc(func(r *request) { r.label = &label }) }

// Every acquires the key unless the work of this period, or of a later one, was done under
// it: as Once, with the period as the label. The period is the one in which the call was
// made, by this machine's clock: one that is wrong moves the edge of the period, and one
// that is behind repeats nothing. Periods are counted from 1970 in UTC: 24 hours are a day
// in UTC. At least 1 s.
func Every(period time.Duration) AcquireOption {
	return acquireFunc(func(r *request) { r.period = &period })
}

type markDone struct{}

func (markDone) toRelease(t *hold.Terms) { t.Done = true }

// MarkDone has the release store that the work is done for which the lock was acquired
// with Once or Every. Do and CommitAndRelease do so by themselves. The release is repeated
// until the lease has ended, and returns nil only if that is stored: it is an error too if the key had been freed before without it,
// by Close or another release.
func MarkDone() ReleaseOption { return markDone{} }
