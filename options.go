package leasehold

import (
	"bytes"
	"maps"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/leasehold-go/leasehold/internal/acquire"
	"github.com/leasehold-go/leasehold/internal/attribute"
	"github.com/leasehold-go/leasehold/internal/hold"
	"github.com/leasehold-go/leasehold/internal/lease"
	"github.com/leasehold-go/leasehold/internal/protocol"
)

// AcquireOption is an option of every call that acquires, and of Do.
type AcquireOption interface{ toAcquire(*request) }

// RenewOption is an option of Renew and Resume, and of calls that acquire.
type RenewOption interface {
	AcquireOption
	toRenew(*lease.Changes)
}

// ReleaseOption is an option of Release and CommitAndRelease.
type ReleaseOption interface{ toRelease(*hold.Terms) }

// KeyOption is an option of calls that acquire, and of Get and Watch.
type KeyOption interface {
	AcquireOption
	toGet(*Key)
}

// RecordOption changes the record in the write of a grant, renewal or release.
type RecordOption interface {
	RenewOption
	ReleaseOption
}

// request is one call that acquires, with its options.
type request struct {
	acquire.Want
	reentrant   bool
	lease       time.Duration // set by WithLease; zero if not given
	warnings    []warning
	deleteGiven bool           // DeleteOnRelease is given, and has set Delete
	label       *string        // set by Once; nil if not given
	period      *time.Duration // set by Every; nil if not given
}

// warning is a function, set by WithExpiryWarning, to call before the lock expires.
type warning struct {
	left time.Duration
	fn   func(*Lock)
}

type acquireFunc func(*request)

func (f acquireFunc) toAcquire(r *request) { f(r) }

// IfExists acquires the key only if it has a record, held or released. Otherwise the error
// is ErrNotFound.
func IfExists() AcquireOption { return acquireFunc(func(r *request) { r.IfExists = true }) }

// NoWait returns a *HeldError instead of waiting for a live holder. Failed requests are
// still retried, for about ten seconds at most.
//
// NoWait does wait for a holder that appears dead: its record is at least a lease old, by
// wall clocks. NoWait takes over if the holder does not renew within one lease of this
// client's first read, by the monotonic clock. A record without a timestamp, such as
// another library's, counts as live. AcquireAll does not wait if any holder appears live.
// Use ctx to limit waits.
func NoWait() AcquireOption { return acquireFunc(func(r *request) { r.NoWait = true }) }

// NoWaitEvenIfDead is like NoWait, but never waits for a lease to pass. It takes over only with
// MaxSkew, or if earlier calls of this client observed the holder for a whole lease. A process
// that makes one call needs MaxSkew.
func NoWaitEvenIfDead() AcquireOption {
	return acquireFunc(func(r *request) { r.NoWait, r.EvenIfDead = true, true })
}

// Reentrant shares the grant if ctx belongs to a lock of the key, instead of returning ErrDeadlock.
// The call returns another handle on the grant; the last handle releases it. Nothing is sent, so a
// different lease, release policy, data or attributes are an error.
func Reentrant() AcquireOption { return acquireFunc(func(r *request) { r.reentrant = true }) }

// WithInitialData stores b as the record's data if the record has no data.
func WithInitialData(b []byte) AcquireOption {
	return acquireFunc(func(r *request) { r.Changes.InitialData = append([]byte{}, b...) })
}

// WithExpiryWarning calls fn, on a new goroutine, when the given time (less after a hand-over) is
// left until Lock.TrustedUntil, or when the lock is lost before. It calls fn again only after a
// renewal. The option may be repeated.
func WithExpiryWarning(left time.Duration, fn func(*Lock)) AcquireOption {
	return acquireFunc(func(r *request) { r.warnings = append(r.warnings, warning{left, fn}) })
}

// WithoutRenewal disables background renewals, for a process that is frozen between calls,
// as in AWS Lambda: call Renew before Lock.TrustedUntil.
func WithoutRenewal() AcquireOption { return acquireFunc(func(r *request) { r.Manual = true }) }

type sortKey string

func (s sortKey) toAcquire(r *request) { r.Key.Sort = string(s) }
func (s sortKey) toGet(k *Key)         { k.Sort = string(s) }

// WithSortKey sets the sort key of a lock, in a table that has sort keys.
func WithSortKey(sort string) KeyOption { return sortKey(sort) }

type leaseOption time.Duration

func (d leaseOption) toAcquire(r *request) {
	r.lease = time.Duration(d)
	r.Timing = r.Timing.Scaled(r.lease)
}
func (d leaseOption) toRenew(ch *lease.Changes) { ch.Lease = time.Duration(d) }

// WithLease overrides Config.Lease; d is at least 1 s. RenewEvery and Margin keep their ratio to
// the lease. A Renew with a shorter lease makes Lock.TrustedUntil earlier even if it fails. The next
// renewal that succeeds makes it later again.
func WithLease(d time.Duration) RenewOption { return leaseOption(d) }

type recordOption func(*protocol.Changes)

func (f recordOption) toAcquire(r *request)      { f(&r.Changes) }
func (f recordOption) toRenew(ch *lease.Changes) { f(&ch.Record) }
func (f recordOption) toRelease(t *hold.Terms)   { f(&t.Changes) }

// WithAttributes sets top-level attributes of the record. A nil value removes an attribute.
// Other attributes stay, whatever client wrote them. Names that the layout uses are refused.
func WithAttributes(a map[string]types.AttributeValue) RecordOption {
	return recordOption(func(c *protocol.Changes) {
		if c.Attributes == nil {
			c.Attributes = protocol.Item{}
		}
		maps.Copy(c.Attributes, attribute.Clone(a))
	})
}

// WithData replaces the record's data; nil removes it. Without this option the data stays,
// whatever client wrote it. A release that deletes the record refuses WithData and
// WithAttributes.
func WithData(b []byte) RecordOption {
	return recordOption(func(c *protocol.Changes) { c.SetData, c.Data = true, bytes.Clone(b) })
}

// DeleteOnRelease is an AcquireOption and a ReleaseOption that overrides
// Config.DeleteOnRelease; false keeps the record. Given to a call that acquires, it also
// applies when Do or Close releases the lock.
type DeleteOnRelease bool

func (yes DeleteOnRelease) toAcquire(r *request)    { r.deleteGiven, r.Delete = true, bool(yes) }
func (yes DeleteOnRelease) toRelease(t *hold.Terms) { t.Delete = bool(yes) }

// ListOptions selects the records of List; the zero value selects all.
type ListOptions struct {
	Prefix    string // only keys with this prefix; List still reads the whole table
	Partition string // only records with this partition key; List then reads no others; an error if Prefix is set, too
	After     Key    // only records after this key; to continue an earlier listing, pass its last key
}

// BreakOptions are the options of Break.
type BreakOptions struct {
	Reason      string // stored in the record, for the holder's LostError; at most 1000 bytes
	IfUnrenewed bool   // break only if the holder has not renewed since the record was read; for a holder that was found dead
}

// Once acquires the key, unless the key's record marks work with this label as done. Then the
// error is a *DoneError, even if another client holds the key. A label has at most 256 bytes:
// a commit, a date or the hash of a file.
//
// Do marks the work as done if its function returns nil. So do CommitAndRelease, and Release with
// MarkDone. The record keeps the mark until work with another label is done. If the function fails,
// or the process dies or loses the lock before the mark is stored, the next call does the work
// again. While the mark is stored, no call repeats CommitAndRelease's writes.
//
// Once sends no extra request. It needs layout Native and a call for one key; otherwise the error
// is an *UnsupportedError: use a key per label. If handles share a grant (Reentrant), only the last
// handle's release can store the mark: an earlier Do fails if no remaining handle is from Once or
// Every.
func Once(label string) AcquireOption { return acquireFunc(func(r *request) { r.label = &label }) }

// Every is like Once. The label is the period of the call, by this machine's clock. The error is a
// *DoneError if the work of this period, or of a later one, is done. Periods of at least 1 s are
// counted from 1970 in UTC. A wrong clock shifts the periods, but a clock that is behind repeats no
// work.
func Every(period time.Duration) AcquireOption {
	return acquireFunc(func(r *request) { r.period = &period })
}

type markDone struct{}

func (markDone) toRelease(t *hold.Terms) { t.Done = true }

// MarkDone marks the work of Once or Every as done; Do and CommitAndRelease mark it without
// this option. Release returns nil only if the mark is stored. It retries, regardless of
// ctx, until the lease has expired or Close has given up. It returns an error if the key
// was already freed without the mark.
func MarkDone() ReleaseOption { return markDone{} }
