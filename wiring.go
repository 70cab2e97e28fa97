package leasehold

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/leasehold-go/leasehold/internal/acquire"
	"github.com/leasehold-go/leasehold/internal/attempts"
	"github.com/leasehold-go/leasehold/internal/bridge"
	"github.com/leasehold-go/leasehold/internal/core"
	"github.com/leasehold-go/leasehold/internal/decide"
	"github.com/leasehold-go/leasehold/internal/durations"
	"github.com/leasehold-go/leasehold/internal/hold"
	"github.com/leasehold-go/leasehold/internal/machine"
	"github.com/leasehold-go/leasehold/internal/protocol"
	"github.com/leasehold-go/leasehold/internal/records"
	"github.com/leasehold-go/leasehold/internal/visible"
)

// newEnv returns the environment that the internal packages of a client share.
func newEnv(c *Client, db DB, proto protocol.Protocol, on machine.Machine) *core.Env {
	cfg, caps := &c.cfg, c.cfg.Layout.Capabilities()
	env := &core.Env{
		Machine: on, Running: core.NewRunning(),
		Table: cfg.Table, Proto: proto, Caps: caps, Name: cfg.Owner, Owner: protocol.NewOwner(cfg.Owner), Log: cfg.Logger,
		Requests: &attempts.Sender{DB: db, Table: cfg.Table, Keys: proto, Chance: on.Chance, Log: cfg.Logger, RegionNews: c.regionNews},
		Lease:    cfg.Lease, PollMin: min(pollMin, cfg.PollMax), PollMax: cfg.PollMax,
		ReleaseGrace: cfg.ReleaseGrace, Retention: cfg.Retention, DeletesByDefault: cfg.DeleteOnRelease || !caps.KeepOnRelease,
		Errors: userErrors{c}, Report: c.report, Kept: connectionsCheck(db, cfg.Logger),
	}
	env.Native, _ = proto.(protocol.Native)
	return env
}

// report turns an event of the internal packages into an event and log lines for users.
func (c *Client) report(ctx context.Context, in core.Event) {
	e := Event{
		Kind: EventKind(in.Kind), Key: in.Key, Token: in.Token, Position: in.Position, Took: in.Took, Held: in.Held,
		Remaining: in.Remaining, Requests: in.Requests, Holder: recordIn(in.Holder), Err: in.Err,
	}
	if in.Kind == core.WaitError {
		c.warnOfWait(ctx, in.Key, in.Err)
		// Errors of the two public types OpError and RecordError are not wrapped again.
		if op, damaged := (*OpError)(nil), (*RecordError)(nil); !errors.As(in.Err, &op) && !errors.As(in.Err, &damaged) {
			e.Err = c.env.Errors.Failed("acquire", in.Key, in.Err)
		}
	}
	c.emit(ctx, e)
}

// emit logs an event and passes it to OnEvent. The caller must not hold a mutex.
func (c *Client) emit(ctx context.Context, e Event) {
	if c.env.Log.Enabled(ctx, slog.LevelDebug) { // checked first, as the arguments are expensive to compute
		c.env.Log.LogAttrs(ctx, slog.LevelDebug, "leasehold: "+string(e.Kind), slog.String("key", e.Key.String()),
			slog.Int64("token", e.Token), slog.Any("err", e.Err))
	}
	if c.cfg.OnEvent != nil {
		e.Time = c.env.Wall()
		c.cfg.OnEvent(ctx, e)
	}
}

// lineAMinute lets a log line be written once a minute, however many requests have a reason to write
// it. It is safe for concurrent use.
type lineAMinute struct{ at atomic.Int64 } // when the last line was written, in monotonic time; 0 before the first line

// isDue reports whether a line may be written at the given time. If so, it counts the line as
// written.
func (l *lineAMinute) isDue(now decide.Instant) bool {
	last := l.at.Load()
	return (last == 0 || durations.Less(now.Mono, time.Duration(last)) >= acquire.ReportEvery) && l.at.CompareAndSwap(last, int64(max(now.Mono, 1)))
}

// warnOfWait logs a failed request of a waiting call. For all waiting calls of a client together,
// it logs at most one line a minute. The line contains the number of failures that were not
// logged since the last line.
func (c *Client) warnOfWait(ctx context.Context, key Key, err error) {
	if !c.waitLine.isDue(c.env.Now()) {
		c.unlogged.Add(1)
		return
	}
	c.env.Log.LogAttrs(ctx, slog.LevelWarn, "leasehold: waiting, and requests fail: they are repeated",
		slog.String("table", c.cfg.Table), slog.String("key", key.String()), slog.Int64("others", c.unlogged.Swap(0)),
		slog.Int64("waiting", c.waiting.Load()), slog.Any("err", err))
}

// regionNews reports a change of the Region that requests go to, as an event and in the log. If
// now.Stays is set, requests never leave the home Region, and regionNews only logs that. It works
// in the background, so that no request waits.
func (c *Client) regionNews(ctx context.Context, now attempts.RegionState) {
	log := c.env.Log.With("region", now.Region, "table", c.cfg.Table)
	c.env.Detach(func() {
		switch {
		case now.Stays != "":
			log.WarnContext(ctx, "leasehold: no failover to another Region", "why", now.Stays)
			return
		case now.Left == nil:
			log.InfoContext(ctx, "leasehold: requests go to the home Region again")
		case c.moved.isDue(c.env.Now()):
			log.WarnContext(ctx, "leasehold: requests go to another Region", "err", now.Left)
		}
		c.emit(ctx, Event{Kind: EventRegion, Region: now.Region, Err: now.Left})
	})
}

// userErrors makes errors of the public types on behalf of the internal packages.
type userErrors struct{ c *Client }

func (e userErrors) Failed(op string, key protocol.Key, err error) error {
	var none *types.ResourceNotFoundException
	if errors.As(err, &none) {
		err = fmt.Errorf("%w: %w", ErrTableNotFound, err)
	}
	return &OpError{Op: op, Table: e.c.cfg.Table, Key: key, Err: err}
}

func (e userErrors) Unreadable(key protocol.Key, item protocol.Item, err error) error {
	bad := &RecordError{Table: e.c.cfg.Table, Key: key, Item: item, Attribute: "item", Problem: err.Error()}
	if errors.Is(err, protocol.ErrLastToken) {
		bad.Attribute, bad.otherKind = "fencingToken", lastToken
		return bad
	}
	if d := (*protocol.DecodeError)(nil); errors.As(err, &d) {
		bad.Attribute, bad.Problem = d.Attribute, d.Problem
	}
	if r, ok := records.LockBut(e.c.env.Proto, item, bad.Attribute); ok {
		lock := "a free lock of layout " + e.c.cfg.Layout.Name()
		if !r.Released {
			lock = fmt.Sprintf("a lock of layout %s, held by %s", e.c.cfg.Layout.Name(), holderName(recordOf(r)))
		}
		bad.advice = fmt.Sprintf("without it this is %s: rename the attribute %s, or use the leasehold that wrote it",
			lock, visible.Word(bad.Attribute))
	}
	return bad
}

func (e userErrors) Unsupported(feature string) error { return e.c.cfg.unsupported(feature) }

func (e userErrors) Missing(key protocol.Key) error {
	return fmt.Errorf("%w: %v in table %s", ErrNotFound, key, e.c.cfg.Table)
}

func (e userErrors) Held(key protocol.Key, holder protocol.Record, why error) error {
	return &HeldError{Table: e.c.cfg.Table, Key: key, Holder: recordOf(holder), Err: why}
}

func (e userErrors) Done(key protocol.Key, done protocol.Done) error {
	return &DoneError{Table: e.c.cfg.Table, Key: key, Done: Done(done)}
}

func (e userErrors) Lost(l core.Loss) error {
	return &LostError{
		Table: e.c.cfg.Table, Key: l.Key, Token: l.Token, Reason: LostReason(l.Reason), At: l.At, By: recordIn(l.By), Err: l.Err,
	}
}

func (e userErrors) Uncommitted(key protocol.Key, reasons []types.CancellationReason, err error) error {
	return &CommitError{Table: e.c.cfg.Table, Key: key, Reasons: reasons, Err: err}
}

func (e userErrors) Changed(now protocol.Record) error {
	return &ChangedError{Table: e.c.cfg.Table, Now: recordOf(now)}
}

func init() {
	bridge.Holds = func(c any) *hold.Holds { return c.(*Client).holds }
	bridge.Grant = func(c, lock any) *hold.Lock {
		if l := lock.(*Lock); l != nil && l.c == c.(*Client) {
			return l.h.Lock()
		}
		return nil
	}
	bridge.Record = func(r protocol.Record) any { return recordOf(r) }
}
