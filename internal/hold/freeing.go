package hold

import (
	"log/slog"
	"slices"
	"time"

	"github.com/leasehold-go/leasehold/internal/acquire"
	"github.com/leasehold-go/leasehold/internal/attempts"
	"github.com/leasehold-go/leasehold/internal/core"
	"github.com/leasehold-go/leasehold/internal/decide"
	"github.com/leasehold-go/leasehold/internal/durations"
	"github.com/leasehold-go/leasehold/internal/protocol"
)

// releaseAttempt is one write that frees a key, resumes a grant, or begins or ends a
// session. It is sent once, and its version is never used again.
type releaseAttempt struct {
	acquire.GrantAttempt
	handsOver bool // the write hands the key to the next waiting goroutine of this client
	toHead    bool // the write hands the key to another client, the head of the record's queue. That client may already trust its new grant, so no later write may replace the grant
}

func (c *Holds) newAttempt(lease time.Duration) releaseAttempt {
	return releaseAttempt{GrantAttempt: c.keys.Attempt(lease, nil)}
}

// freeing frees the key of one lock. All releases of the lock share one freeing, because each must
// know which earlier writes may still be applied. Only one release uses the freeing at a time.
type freeing struct {
	h             *Lock
	hold          protocol.Hold   // the grant to free: the lock's own grant or, if left is handedOn, the grant that was handed to a goroutine; contains no versions of attempts in tried
	record        protocol.Record // the record after the last write that is known to have been applied
	mayHaveStored bool            // a write after the last applied one has no answer, and may have stored data or attributes
	sentInLease   bool            // the first write was sent before the lease had expired
	reportsDone   bool            // the caller of a release asked for the done mark, so all later releases store it, too
	marked        bool            // a release has stored the done mark, or a record has shown it
	tried         attempts.Sequence[releaseAttempt]
	left          left

	retry  *time.Timer // timer that repeats a failed release; nil before the first failure
	pauses attempts.Pauses
	// Time when this client stops repeating the release, because the lease of the grant has expired
	// by then. Under a session each release sets this time again, because the session's lease is
	// renewed.
	until decide.Instant
	sent  int // number of requests since the last event of a release

	r *release // release that may send requests now; guarded by h.mu
}

// left describes what may have happened to the lock's own grant in the record. If several of the
// values below apply, the last of them counts.
type left int

// Values of left. The value for a grant never decreases.
const (
	notFreed   left = iota // initial value: no release has failed, and no commit has an unknown outcome
	takeable               // a release has failed, so another client may have acquired the key since
	maybeFreed             // a commit of unknown outcome may have freed the key, and may have stored the done mark
	handedOn               // a hand-over to a goroutine that had left was applied: the grant to free is now the grant of that goroutine
)

// freeing returns the lock's freeing, for use by this release. It clears sentInLease if the trust
// expired before any write that could free the key. Another client may then take the key over, so a
// record without the grant would not prove a release.
func (r *release) freeing() *freeing {
	h := r.h
	h.lease.Look()
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.freeing == nil {
		h.freeing = &freeing{h: h, hold: h.asHeld(), record: h.Record(), mayHaveStored: h.lease.MayHaveStored(), sentInLease: h.givenUp}
		h.freeing.pauses.Most = h.longestPause()
	}
	f, now := h.freeing, h.c.Now()
	if f.r != r {
		if h.session != nil || f.r == nil {
			f.until = now.Add(h.lease.Root().Longest())
		}
		f.r = r
	}
	f.sentInLease = f.sentInLease && (f.tried.Silent() || !now.Past(h.lease.TrustedUntil()))
	return f
}

// free hands the key to the head of the record's queue, or else to the next waiting goroutine. If
// neither is possible, it releases the key. If the lock was lost or its lease had expired before
// the first write, free sends one conditional release, because the record may still show the grant.
func (r *release) free() {
	f := r.freeing()
	f.reportsDone = f.reportsDone || r.terms.Done
	// A hand-over can neither delete the record nor store the done mark. A holder that was asked to
	// step down hands the key to no goroutine of its client.
	if f.sentInLease && !r.terms.Delete && !f.reportsDone && (f.handToHead() || r.terms.Changes.None() && !r.h.isAsked() && f.handOver()) {
		return
	}
	f.end(f.errorOf(f.run(attempts.Operation[releaseAttempt]{
		Next: f.next,
		Shows: func(item protocol.Item, sent []releaseAttempt) (releaseAttempt, bool) {
			f.marked = f.marked || f.hasMark(item)
			return sent[len(sent)-1], f.isFreed(item, sent)
		},
	})))
}

// next returns a new attempt to release the key, and its write.
func (f *freeing) next() (releaseAttempt, *protocol.Write) {
	a := f.h.c.newAttempt(f.h.want.Timing.Lease)
	if f.r.terms.Delete {
		return a, f.h.proto.Delete(f.named())
	}
	changes, done := f.r.terms.Changes, f.done()
	return a, f.h.proto.Release(f.named(), protocol.Release{
		Version: a.Version, Changes: changes,
		Expires: f.h.c.Expires(f.mayHaveStored || changes.LeaveData(f.record), done != nil || f.record.Done != nil),
		Done:    done,
	})
}

// done returns the done mark that the release stores, or nil if it stores none. It returns nil
// after a loss: a caller that has learned of the loss must not find later that the work counts as
// done.
func (f *freeing) done() *protocol.Done {
	if !f.h.givenUp || !f.reportsDone && !f.r.terms.Done {
		return nil
	}
	once := f.h.want.Once
	return &protocol.Done{Once: once.Label, Period: once.Period, Owner: f.hold.Owner, At: f.h.c.Wall(), Token: f.h.token}
}

// named returns the grant for the condition of the next write, with all versions that the record
// may have. An unanswered hand-over to a goroutine adds that goroutine's grant. Hand-overs to other
// clients are omitted: no later write may overwrite their grants.
func (f *freeing) named() protocol.Hold {
	hold := f.hold
	tried := slices.DeleteFunc(f.tried.Unanswered(), func(a releaseAttempt) bool { return a.toHead })
	hold.Versions = append(slices.Clip(hold.Versions), attempts.Versions(tried)...)
	for _, a := range tried {
		if a.handsOver {
			hold.Grants, hold.Token = append(slices.Clip(hold.Grants), a.Version), 0
		}
	}
	return hold
}

// run sends the attempts of op until one is answered or no time is left. It sends only one
// attempt if the lock was lost, or if a timer repeats the release of a lock without a session.
func (f *freeing) run(op attempts.Operation[releaseAttempt]) attempts.Result[releaseAttempt] {
	h := f.h
	op.BeforeSend = func() (func(), error) {
		leave, ok := f.r.enter()
		if !ok {
			return nil, attempts.Cause(f.r.limit)
		}
		f.sent++
		return leave, nil
	}
	if f.r.terms.Done {
		op.Pauses.Most, op.RetryDenied = h.longestPause(), true
	}
	r, reads := h.send(f.r.ctx, f.r.limit, &f.hold.Versions, &f.tried, op, !f.sentInLease || f.r.again, f.until)
	f.sent += reads
	return r
}

// longestPause returns the longest pause between the attempts of a release that may be repeated for
// the whole lease. The pause grows with the lease, because a condition can name only a limited
// number of earlier attempts.
func (h *Lock) longestPause() time.Duration { return max(time.Second, h.lease.Root().Duration()/15) }

// end ends the current release with err. The next goroutine in the local queue may then acquire the
// key. If the holder was asked to step down, this goroutine first lets waiters of other clients
// acquire the key.
func (f *freeing) end(err error) {
	f.marked = f.marked || err == nil && f.done() != nil
	f.report(err, f.repeat(err))
	switch h, local := f.h, f.h.c.keys.Local; {
	case h.isAsked():
		local.PassAfter(h.key, h, decide.LetOthers(h.c.PollMax))
	case f.hasQueue():
		local.PassQueued(h.key, h)
	default:
		h.passTurn()
	}
	f.r.end(err)
}

// repeat starts a timer that repeats a failed release, if the record may still show the grant. It
// reports whether it has started the timer. Without the timer, other clients would wait until the
// lease expires. A session's lease would not expire, because this client renews it.
func (f *freeing) repeat(err error) bool {
	h, c := f.h, f.h.c
	if f.retry != nil {
		f.retry.Stop()
	}
	repeats := !freed(err) && f.isOfUse()
	c.repeats(h, repeats)
	if freed(err) {
		return false
	}
	f.left = max(f.left, takeable)
	c.keys.InDoubt.Add(h.key, f.named().Versions, c.Now().Mono, h.lease.Root().Duration())
	if !repeats {
		return false
	}
	// Repeat a release under a session rarely. The repetitions continue for as long as the session
	// is renewed, and a refused release would mostly be refused again.
	if h.session != nil {
		f.pauses.Least = min(max(durations.Times(f.pauses.Least, 2), c.timing.Lease), touchEvery)
	}
	root, next := h.lease.Root(), &release{h: h, terms: f.r.terms, again: h.session == nil}
	if f.r.refused { // perhaps because of the data or attributes: without them, the release can still free the key
		next.terms.Changes = protocol.Changes{}
	}
	f.retry = time.AfterFunc(c.Requests.NextPause(&f.pauses), func() {
		switch {
		case h.session != nil && root.Ended() != nil:
			c.repeats(h, false) // the end of the session has freed the key
		case c.Closed.Err() == nil: // Close waits for other calls, perhaps for long
			c.Detach(func() { _ = c.release(EndedContext(), []*release{next}) }) // the error is reported as an event
		}
	})
	return true
}

// isOfUse reports whether repeating a failed release could free the key before the lease expires.
// It also returns false if a lock without a session was lost, or its lease had expired, before the
// first write (sentInLease is false).
func (f *freeing) isOfUse() bool {
	if f.h.session != nil {
		return !f.h.lease.Root().IsOver()
	}
	return f.sentInLease && !f.r.refused && !f.h.c.Now().Past(f.until)
}

// report logs the error of a failed release, and emits the release's event with the number of
// requests since the last event. It does nothing if a timer has begun this release, and a timer
// will repeat it (only for a lock without a session).
func (f *freeing) report(err error, repeated bool) {
	h := f.h
	if f.r.again && repeated {
		return
	}
	if err != nil {
		way := "the lease frees the key"
		switch {
		case isUnmarked(err):
			way = "the key is free, but the work may be done again"
		case repeated && h.session != nil:
			way = "it is repeated while the shared lease is renewed"
		case repeated:
			way = "it is repeated until the lease has ended"
		}
		h.c.Log.LogAttrs(h.ctx, slog.LevelWarn, "leasehold: release failed: "+way,
			slog.String("table", h.c.Table), slog.String("key", h.key.String()), slog.Int64("token", h.token), slog.Any("err", err))
	}
	h.c.Report(h.ctx, core.Event{Kind: core.Released, Key: h.key, Token: h.token, Took: h.c.Now().Mono - f.r.started.Mono,
		Held: h.held(), Requests: f.sent, Err: err})
	f.sent = 0
}
