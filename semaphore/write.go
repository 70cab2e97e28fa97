package semaphore

import (
	"context"
	"errors"
	"slices"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/attempts"
	"github.com/leasehold-go/leasehold/internal/protocol"
)

// write stores n in a row.
type write struct {
	*row
	op    string
	n     int
	done  func(now protocol.Permits) bool // nothing more has to be written
	wrote func(attempt, protocol.Permits) bool
	sent  attempts.Sequence[attempt]
}

// attempt is one write of a row.
type attempt struct{ row protocol.Permits }

// ID is the version that the attempt writes.
func (a attempt) ID() string { return a.row.Version }

// finish runs do. It returns before do is done if ctx ends or the client is closed; with
// manual, it waits for do up to the release grace after that.
func (w *write) finish(ctx context.Context, manual bool, do func(context.Context) (protocol.Permits, bool, error)) (p protocol.Permits, ours bool, err error) {
	if ctx.Err() != nil {
		return p, false, w.failed(w.op, context.Cause(ctx))
	}
	ctx, leave, ok := w.in.Enter(ctx)
	if !ok {
		return p, false, w.closed(w.op)
	}
	defer leave()
	var stored protocol.Permits
	var wrote bool
	var failed error
	done, unknown := attempts.Outlive(ctx, w.c.Detach, w, func() { stored, wrote, failed = do(ctx) })
	if unknown == nil {
		return stored, wrote, failed
	}
	if manual {
		w.c.AwaitGrace(done)
	}
	switch {
	case w.op == "resize":
		err = w.unknown(w.op, unknown)
	case errors.Is(unknown, leasehold.ErrClosed):
		err = w.closed(w.op)
	default:
		err = w.failed(w.op, unknown)
	}
	return p, false, err
}

// Answered reports whether no attempt is without an answer. Before the first the row is
// read, which ends with the call.
func (w *write) Answered() bool { return len(w.sent.Unanswered()) == 0 }

// LastErr is why the last attempt that has ended was not applied.
func (w *write) LastErr() error { return w.sent.LastErr() }

// store replaces the row, which shows now, until nothing more has to be written. ours:
// what is stored was written by an attempt of this call.
func (w *write) store(ctx context.Context, now protocol.Permits) (stored protocol.Permits, ours bool, err error) {
	op := attempts.Operation[attempt]{
		Key:  w.at,
		Next: func() (attempt, *protocol.Write) { return w.next(now) },
		Shows: func(item protocol.Item, sent []attempt) (attempt, bool) {
			p, err := w.decode(item)
			i := slices.IndexFunc(sent, func(a attempt) bool { return err == nil && w.wrote(a, p) })
			if i < 0 {
				return attempt{}, false
			}
			return sent[i], true
		},
	}
	err = w.repeat(ctx, w.op, func() error {
		r := w.sent.Try(context.WithoutCancel(ctx), w.c.Requests, op)
		shown, err := r.Attempt.row, error(nil)
		if r.Outcome == attempts.Rejected || r.Earlier {
			shown, err = w.decode(r.Item)
		}
		switch {
		case err != nil:
			return err
		case r.Outcome == attempts.Applied:
			stored, ours = shown, true
			return nil
		case r.Outcome == attempts.Rejected && w.done(shown):
			stored = shown
			return nil
		case r.Outcome == attempts.Rejected:
			now = shown // earlier attempts were replaced, or will never be applied
		}
		return r.Failure()
	})
	if op := (*leasehold.OpError)(nil); w.op == "resize" && len(w.sent.Unanswered()) > 0 && errors.As(err, &op) {
		err = w.unknown(w.op, op.Err)
	}
	return stored, ours, err
}

// next returns the next attempt, which replaces the row that shows now.
func (w *write) next(now protocol.Permits) (attempt, *protocol.Write) {
	p := protocol.Permits{N: w.n, Most: max(w.n, now.Most), ID: now.ID, Version: protocol.NewVersion()}
	if now.Version == "" {
		p.ID = p.Version
		return attempt{p}, w.rows.Create(w.at, w.c.Owner, p)
	}
	return attempt{p}, w.rows.Replace(w.at, w.c.Owner, now.Version, p)
}
