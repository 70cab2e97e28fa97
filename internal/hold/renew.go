package hold

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math"
	"sync"
	"time"

	"github.com/leasehold-go/leasehold/internal/attempts"
	"github.com/leasehold-go/leasehold/internal/core"
	"github.com/leasehold-go/leasehold/internal/decide"
	"github.com/leasehold-go/leasehold/internal/lease"
	"github.com/leasehold-go/leasehold/internal/protocol"
)

// Renew renews the lock now. It repeats the renewal until DynamoDB answers it, until ctx
// is done, or until the lock is no longer trusted.
func (l *Handle) Renew(ctx context.Context, ch lease.Changes) error {
	h := l.h
	if ctx.Err() != nil {
		return h.c.Errorf("renew", h.key, "%w", attempts.Cause(ctx))
	}
	return h.c.Outlive(ctx, "renew", h.key, h.lease, func() error { return l.renewUntil(ctx, ch) })
}

// renewUntil renews the lock with the changes ch, and returns the error for the caller of
// Renew.
func (l *Handle) renewUntil(ctx context.Context, ch lease.Changes) error {
	h := l.h
	unknown, err := h.lease.Renew(ctx, ch)
	f := attempts.FailureOf(err)
	switch {
	case err == nil:
		return nil
	case l.ended() != nil:
		return l.ended()
	case f == nil: // Renew sent no request
		return err
	case f.Cause == decide.Refused && unknown:
		return h.c.UnknownOutcome("renew", h.key, f.Err)
	case f.Cause == decide.Refused:
		return h.c.Errors.Failed("renew", h.key, f.Err)
	}
	err = attempts.Cause(ctx)
	if unknown {
		err = fmt.Errorf("%w: %w", attempts.ErrUnknownOutcome, err)
	}
	return h.c.Errors.Failed("renew", h.key, errors.Join(err, f.Err))
}

// Extended is called when the lease is extended. It does nothing, because no other lease depends on
// the lease of a lock.
func (h *Lock) Extended() {}

// Renewed emits the event of a renewal. If the record asks the holder to step down, Renewed
// first calls the functions that OnAsked has registered.
func (h *Lock) Renewed(r lease.Report) {
	if h.isAsked() {
		h.mu.Lock()
		asked := h.onAsked
		h.onAsked = nil
		h.mu.Unlock()
		for _, fn := range asked {
			fn()
		}
	}
	h.row.Renewed(r)
}

// isAsked reports whether the reply to a renewal has shown that another client has asked the holder
// to step down.
func (h *Lock) isAsked() bool { return h.lease.Record().Asked == h.grant }

// OnAsked registers fn, which must not block. It is called once, when the reply to a renewal shows
// that another client has asked the holder to step down. Later replies show this, too: a function
// that is registered late is called after the next renewal.
func (h *Lock) OnAsked(fn func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.onAsked = append(h.onAsked, fn)
}

// Renewal returns the write of attempt a, which renews the row's grant.
func (r *row) Renewal(a lease.Attempt, versions []string, ch protocol.Changes) *protocol.Write {
	return r.proto.Renew(r.named(versions), protocol.Renewal{Version: a.Version, Lease: a.Lease, Now: r.c.Wall(), Changes: ch})
}

// showsGrant returns a function for Operation.Shows. This function returns the attempt that wrote
// the record's version. It returns false if no attempt did, if the record is released, or if the
// attempt's lease can no longer be trusted.
func (r *row) showsGrant(timing lease.Timing) func(protocol.Item, []releaseAttempt) (releaseAttempt, bool) {
	return func(item protocol.Item, sent []releaseAttempt) (releaseAttempt, bool) {
		record, err := r.Decode(item)
		a, ok := attempts.Find(sent, record.Version)
		return a, ok && err == nil && !record.Released && a.Lives(timing, r.c.Now())
	}
}

// Stands reports whether an item shows that the grant is current.
func (r *row) Stands(item protocol.Item) bool {
	reason, _, _ := r.gone(item)
	return reason == ""
}

// Renewed emits the event of a renewal, and updates the log's summary of failures.
func (r *row) Renewed(report lease.Report) {
	r.c.failing.renewed(r)
	r.c.Report(r.ctx, core.Event{Kind: core.Renewed, Key: r.key, Token: r.token, Took: report.Took, Requests: report.Requests})
}

// throttled reports a request that DynamoDB throttled, or rejected because of a conflict
// with a transaction.
func (r *row) throttled(err error) { r.c.ReportThrottled(r.ctx, r.key, r.token, err) }

// Failed reports an attempt to renew that DynamoDB did not apply or did not answer.
func (r *row) Failed(report lease.Report) {
	r.c.failing.add(r, report.Err)
	if report.Throttled {
		r.throttled(report.Err)
	}
	r.c.Report(r.ctx, core.Event{Kind: core.RenewError, Key: r.key, Token: r.token, Took: report.Took, Remaining: report.Remaining,
		Requests: report.Requests, Err: r.c.Errors.Failed("renew", r.key, report.Err)})
}

// logEvery is the least time between two log lines about failing renewals.
const logEvery = 10 * time.Second

// failing logs summaries of a client's failed renewals, so that an outage causes only a few
// log lines, however many locks are held. The mutex is not locked while a line is written.
type failing struct {
	mu       sync.Mutex
	locks    map[*row]error // rows whose last renewal failed, each with its error
	attempts int            // number of failures since the last log line
	logged   time.Time      // time when the last log line was written
	// True from the first log line about failed renewals until the log line about the recovery, or
	// until the last row in locks has ended.
	inEpisode bool
}

// add counts a renewal that failed. It logs the first failure at once, and later failures in
// summaries.
func (f *failing) add(r *row, err error) {
	f.mu.Lock()
	// Do not add a row whose lease has ended. The method forget may have been called for it
	// already, and no later call would remove it.
	if !r.lease.IsOver() {
		f.locks[r] = err
	}
	f.attempts++
	if len(f.locks) == 0 || !f.logged.IsZero() && time.Since(f.logged) < logEvery {
		f.mu.Unlock()
		return
	}
	locks, attempts := maps.Clone(f.locks), f.attempts
	f.attempts, f.logged, f.inEpisode = 0, time.Now(), true
	f.mu.Unlock()

	worst, remaining := r, time.Duration(math.MaxInt64)
	now := r.c.Now()
	for r := range locks {
		if left := now.Remaining(r.lease.TrustedUntil()); left <= remaining {
			worst, remaining = r, left
		}
	}
	r.c.Log.LogAttrs(worst.ctx, slog.LevelWarn, "leasehold: renewals fail: the lock named has the least trust left",
		slog.String("table", r.c.Table), slog.String("key", worst.key.String()), slog.Int64("token", worst.token),
		slog.Duration("remaining", remaining), slog.Int("locks", len(locks)), slog.Int("attempts", attempts), slog.Any("err", locks[worst]))
}

// renewed records that a row was renewed. Once all renewals succeed again, it logs that they
// do.
func (f *failing) renewed(r *row) {
	f.mu.Lock()
	delete(f.locks, r)
	over := f.inEpisode && len(f.locks) == 0
	attempts := f.attempts
	if over {
		f.inEpisode, f.attempts = false, 0
	}
	f.mu.Unlock()
	if over {
		r.c.Log.LogAttrs(r.ctx, slog.LevelInfo, "leasehold: renewals succeed again",
			slog.String("table", r.c.Table), slog.Int("attempts", attempts))
	}
}

// forget removes r from the rows whose last renewal failed. It is called when the lock or session
// of r has ended.
func (f *failing) forget(r *row) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.locks, r)
	if len(f.locks) == 0 {
		f.inEpisode = false
	}
}
