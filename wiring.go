package leasehold

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/leasehold-go/leasehold/internal/attempts"
	"github.com/leasehold-go/leasehold/internal/bridge"
	"github.com/leasehold-go/leasehold/internal/decide"
	"github.com/leasehold-go/leasehold/internal/durations"
	"github.com/leasehold-go/leasehold/internal/hold"
	"github.com/leasehold-go/leasehold/internal/protocol"
	"github.com/leasehold-go/leasehold/internal/seek"
)

// newHolds returns what the client holds: nothing yet. Close releases so many locks at once.
func newHolds(c *Client, releases int) *hold.Client {
	holds := &hold.Client{
		Table: c.cfg.Table, Requests: c.requests, Proto: c.proto, Timing: c.timing, Owner: c.cfg.Owner,
		Log: c.log, Now: c.now, Wall: c.wall, PollMax: c.cfg.PollMax,
		ReleaseGrace: c.cfg.ReleaseGrace, Retention: c.cfg.Retention, Concurrency: releases,
		DeletesByDefault: c.cfg.deletesByDefault(), Errors: userErrors{c}, Listener: holdListener{c},
		Grew: func(held int) { c.connections.check(held, c.log) },
	}
	holds.Begin(c.cfg.SharedLease)
	return holds
}

// holdListener turns changes of held locks into events.
type holdListener struct{ c *Client }

func (l holdListener) Renewed(ctx context.Context, e hold.Event) { l.emit(ctx, EventRenewed, e) }
func (l holdListener) RenewFailed(ctx context.Context, e hold.Event) {
	l.emit(ctx, EventRenewError, e)
}
func (l holdListener) Lost(ctx context.Context, e hold.Event)     { l.emit(ctx, EventLost, e) }
func (l holdListener) Released(ctx context.Context, e hold.Event) { l.emit(ctx, EventReleased, e) }
func (l holdListener) Committed(ctx context.Context, e hold.Event) {
	l.emit(ctx, EventCommitted, e)
}
func (l holdListener) Throttled(ctx context.Context, e hold.Event) {
	l.emit(ctx, EventThrottled, e)
}

func (l holdListener) emit(ctx context.Context, kind EventKind, e hold.Event) {
	l.c.emit(ctx, Event{
		Kind: kind, Key: e.Key, Token: e.Token, Took: e.Took, Held: e.Held, Remaining: e.Remaining,
		Requests: e.Requests, Err: e.Err,
	})
}

// newSeek returns what seeks keys for the client.
func newSeek(c *Client) *seek.Client {
	_, marks := c.proto.(protocol.Native)
	least := min(pollMin, c.cfg.PollMax)
	s := &seek.Client{
		Requests: c.requests, Proto: c.proto, Owner: c.owner, Observer: c.observer,
		Now: c.now, Wall: c.wall, Chance: c.requests.Chance, Lease: c.cfg.Lease,
		PollMin: least, PollMax: c.cfg.PollMax, Local: seek.NewLocalQueues(least, c.cfg.PollMax),
		Expires: func() time.Time { return c.holds.Expires(true, marks) }, Detach: c.holds.Detach, AwaitGrace: c.holds.AwaitGrace, GiveBack: c.holds.GiveBack,
		Closing: c.holds.Closing(), Errors: userErrors{c}, Listener: seekListener{c}, Holds: c.holds.Holds, Sessions: c.holds.Sessions(),
	}
	s.Queue, _ = c.proto.(protocol.Native)
	return s
}

// seekListener turns the progress of acquisitions into events, and lines of the log.
type seekListener struct{ c *Client }

func (l seekListener) Waiting(ctx context.Context, key protocol.Key, holder *protocol.Record, place int, undo func()) {
	r := recordOf(*holder)
	e := Event{Kind: EventWaiting, Key: key, Holder: &r, Position: place}
	if undo == nil {
		l.c.emit(ctx, e)
	} else {
		l.c.emitOr(ctx, e, undo)
	}
}

func (l seekListener) Throttled(ctx context.Context, key protocol.Key, requests int, err error) {
	l.c.emit(ctx, Event{Kind: EventThrottled, Key: key, Requests: requests, Err: err})
}

func (l seekListener) Failing(ctx context.Context, key protocol.Key, err error) {
	l.c.waitFails.warn(ctx, l.c, key, err)
	// One that watches has said so already.
	if op, damaged := (*OpError)(nil), (*RecordError)(nil); !errors.As(err, &op) && !errors.As(err, &damaged) {
		err = opError("acquire", l.c.cfg.Table, key, err)
	}
	l.c.emit(ctx, Event{Kind: EventWaitError, Key: key, Err: err})
}

// lineAMinute limits lines of the log that would repeat by the request. It is safe for
// concurrent use.
type lineAMinute struct{ at atomic.Int64 } // of the last line, in monotonic time; 0 before the first

// isDue reports whether a line is due at now, and takes it for written if it is.
func (l *lineAMinute) isDue(now decide.Instant) bool {
	last := l.at.Load()
	return (last == 0 || durations.Less(now.Mono, time.Duration(last)) >= seek.ReportEvery) && l.at.CompareAndSwap(last, int64(max(now.Mono, 1)))
}

// waitFails logs that requests of waits fail: one line a minute for all waits of a
// client, with the number of reports left out since the last line.
type waitFails struct {
	line   lineAMinute
	others atomic.Int64
}

func (w *waitFails) warn(ctx context.Context, c *Client, key Key, err error) {
	if !w.line.isDue(c.now()) {
		w.others.Add(1)
		return
	}
	c.log.LogAttrs(ctx, slog.LevelWarn, "leasehold: waiting, and requests fail: they are repeated",
		slog.String("table", c.cfg.Table), slog.String("key", key.String()), slog.Int64("others", w.others.Swap(0)),
		slog.Int64("waiting", c.waiting.Load()), slog.Any("err", err))
}

// regionListener turns what a DB of several Regions says into events, and lines of the log.
type regionListener struct{ c *Client }

func (l regionListener) Moved(ctx context.Context, now attempts.RegionState) {
	l.c.holds.Detach(func() { // the request that noticed does not wait
		attrs := []slog.Attr{slog.String("region", now.Region), slog.String("table", l.c.cfg.Table)}
		if now.Left == nil {
			l.c.log.LogAttrs(ctx, slog.LevelInfo, "leasehold: requests go to the home Region again", attrs...)
		} else if l.c.moved.isDue(l.c.now()) {
			l.c.log.LogAttrs(ctx, slog.LevelWarn, "leasehold: requests go to another Region", append(attrs, slog.Any("err", now.Left))...)
		}
		l.c.emit(ctx, Event{Kind: EventRegion, Region: now.Region, Err: now.Left})
	})
}

func (l regionListener) Stays(ctx context.Context, now attempts.RegionState) {
	l.c.log.LogAttrs(ctx, slog.LevelWarn, "leasehold: no failover to another Region",
		slog.String("region", now.Region), slog.String("table", l.c.cfg.Table), slog.String("why", now.Stays))
}

// emitGaveUp emits the event of a call that ends without a grant. It emits none if NoWait
// returned a holder.
func (c *Client) emitGaveUp(ctx context.Context, key Key, began decide.Instant, requests int, err error) {
	held := (*HeldError)(nil)
	if errors.As(err, &held) && held.Err == nil {
		return
	}
	kind := EventGaveUp
	if errors.Is(err, ErrDone) {
		kind = EventDone
	}
	c.emit(ctx, Event{Kind: kind, Key: key, Took: c.now().Mono - began.Mono, Requests: requests, Err: err})
}

// userErrors makes the public errors, whose types users know, for the internal packages.
type userErrors struct{ c *Client }

func (e userErrors) Failed(op string, key protocol.Key, err error) error {
	return opError(op, e.c.cfg.Table, key, err)
}

func (e userErrors) Unreadable(key protocol.Key, item protocol.Item, err error) error {
	return e.c.recordError(key, item, err)
}

func (e userErrors) Missing(key protocol.Key) error {
	return fmt.Errorf("%w: %v in table %s", ErrNotFound, key, e.c.cfg.Table)
}

func (e userErrors) Held(key protocol.Key, holder protocol.Record, why error) error {
	return &HeldError{Table: e.c.cfg.Table, Key: key, Holder: recordOf(holder).clone(), Err: why}
}

func (e userErrors) Ended(key protocol.Key, why error) error {
	return e.c.errorf("acquire", key, "%w", why)
}

func (e userErrors) Done(key protocol.Key, done protocol.Done) error {
	return &DoneError{Table: e.c.cfg.Table, Key: key, Done: Done(done)}
}

func (e userErrors) Lost(l hold.Loss) error {
	lost := &LostError{Table: e.c.cfg.Table, Key: l.Key, Token: l.Token, Reason: LostReason(l.Reason), At: l.At, Err: l.Err}
	if l.By != nil {
		by := recordOf(*l.By)
		lost.By = &by
	}
	return lost
}

func (e userErrors) Loss(err error) (hold.Loss, bool) {
	lost := (*LostError)(nil)
	if !errors.As(err, &lost) {
		return hold.Loss{}, false
	}
	return hold.Loss{Reason: hold.Reason(lost.Reason), Err: lost.Err}, true
}

func (e userErrors) Uncommitted(key protocol.Key, reasons []types.CancellationReason, err error) error {
	return &CommitError{Table: e.c.cfg.Table, Key: key, Reasons: reasons, Err: err}
}

func (e userErrors) Changed(now protocol.Record) error {
	return &ChangedError{Table: e.c.cfg.Table, Now: recordOf(now)}
}

func init() {
	bridge.Inside = func(c any) any { return inside{c.(*Client)} }
	bridge.Record = func(r protocol.Record) any { return recordOf(r) }
}

// inside is the interface of a client that package election uses beside its public methods.
// It is described there.
type inside struct{ c *Client }

func (in inside) Seeking() *seek.Client { return in.c.seek }

func (in inside) Answered() AcquireOption {
	return acquireFunc(func(r *request) { r.Answered = true })
}

func (in inside) Enter(ctx context.Context) (until context.Context, leave func(), ok bool) {
	if !in.c.holds.Enter() {
		return nil, nil, false
	}
	until, stop := in.c.holds.UntilClosing(ctx)
	return until, func() { stop(); in.c.holds.Leave() }, true
}

// OnAsked registers fn to be called if the holder of l is asked to step down. It returns
// false if l is not a lock of key of this client.
func (in inside) OnAsked(l *Lock, key string, fn func()) (ok bool) {
	if l == nil || l.c != in.c || l.Key() != in.c.proto.Complete(protocol.Key{Partition: key}) {
		return false
	}
	l.h.Lock().OnAsked(fn)
	return true
}

func (in inside) Unsupported(feature string) error { return in.c.cfg.unsupported(feature) }

func (in inside) AfterClose(op string, key Key) error { return in.c.afterClose(op, key) }

func (in inside) Failed(op string, key Key, err error) error {
	return opError(op, in.c.cfg.Table, key, err)
}
