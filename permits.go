package leasehold

import (
	"context"
	"errors"
	"slices"

	"github.com/leasehold-go/leasehold/internal/attempts"
	"github.com/leasehold-go/leasehold/internal/decide"
	"github.com/leasehold-go/leasehold/internal/observed"
	"github.com/leasehold-go/leasehold/internal/protocol"
	"github.com/leasehold-go/leasehold/internal/seek"
	"github.com/leasehold-go/leasehold/layout"
)

// permitRow is the row of a semaphore. It stores how many permits there are.
type permitRow struct {
	c    *Client
	rows protocol.PermitRows
	at   Key
}

// permitRows returns the protocol of semaphores' rows; nil: the layout has none.
func (c *Client) permitRows() protocol.PermitRows { return protocol.PermitRowsOf(c.proto) }

// isPermits reports whether an item is the row of a semaphore.
func (c *Client) isPermits(item protocol.Item) bool {
	rows := c.permitRows()
	if rows == nil {
		return false
	}
	_, err := rows.Decode(item)
	return err == nil
}

// decode decodes a row. A nil item means that there is none.
func (r *permitRow) decode(item protocol.Item) (protocol.Permits, error) {
	if item == nil {
		return protocol.Permits{}, nil
	}
	p, err := r.rows.Decode(item)
	if err != nil {
		return p, r.c.recordError(r.at, item, err)
	}
	return p, nil
}

// read reads the row until it is answered, refused or ctx ends. If there is no row
// yet, it returns the zero Permits.
func (r *permitRow) read(ctx context.Context, op string) (protocol.Permits, error) {
	if !r.c.enter() {
		return protocol.Permits{}, r.c.afterClose(op, r.at)
	}
	defer r.c.leave()
	ctx, stop := r.c.untilClosing(ctx)
	defer stop()
	return r.readUntil(ctx, op)
}

// readUntil is read, but goes on while the client closes.
func (r *permitRow) readUntil(ctx context.Context, op string) (protocol.Permits, error) {
	var item protocol.Item
	err := r.repeat(ctx, op, func() (err error) {
		item, err = r.c.requests.Read(ctx, protocol.Key(r.at))
		return err
	})
	if err != nil {
		return protocol.Permits{}, err
	}
	return r.decode(item)
}

// repeat repeats a request until it succeeds, is refused or ctx ends.
func (r *permitRow) repeat(ctx context.Context, op string, request func() error) error {
	var t seek.Trouble
	err := r.c.requests.Repeat(ctx, request, func(f *attempts.Failure) error {
		t.Report(ctx, r.c.seek, protocol.Key(r.at), f.Err)
		if f.Cause == decide.Busy {
			r.c.throttled(ctx, r.at, 0)(f.Err)
		}
		return nil
	})
	f := attempts.FailureOf(err)
	if f == nil {
		return err
	}
	cause := context.Cause(ctx)
	switch {
	case f.Cause == decide.Refused || cause == nil:
		return opError(op, r.c.cfg.Table, r.at, f.Err)
	case errors.Is(cause, ErrClosed):
		return r.c.afterClose(op, r.at)
	}
	return opError(op, r.c.cfg.Table, r.at, errors.Join(cause, f.Err))
}

// create stores n unless a number is stored already, and returns what is stored then.
// created: this call has stored it, though another may have changed it since. When ctx
// ends, a request may still be in flight; with manual it is waited for, within the
// release grace.
func (r *permitRow) create(ctx context.Context, n int, manual bool) (p protocol.Permits, created bool, err error) {
	w := &permitWrite{permitRow: r, op: "acquire", n: n,
		done:  func(now protocol.Permits) bool { return now.Version != "" },
		wrote: func(a permitAttempt, now protocol.Permits) bool { return a.ID() == now.ID },
	}
	return w.finish(ctx, manual, func(ctx context.Context) (protocol.Permits, bool, error) {
		return w.store(ctx, protocol.Permits{})
	})
}

// resize stores n, whatever was stored before. wrote: n was not stored already when it
// looked. ErrUnknownOutcome if ctx ended without an answer.
func (r *permitRow) resize(ctx context.Context, n int) (p protocol.Permits, wrote bool, err error) {
	w := &permitWrite{permitRow: r, op: "resize", n: n,
		done:  func(now protocol.Permits) bool { return now.N == n },
		wrote: func(a permitAttempt, now protocol.Permits) bool { return a.ID() == now.Version },
	}
	return w.finish(ctx, false, func(ctx context.Context) (protocol.Permits, bool, error) {
		now, err := r.readUntil(ctx, w.op)
		if err != nil || w.done(now) {
			return now, false, err
		}
		now, _, err = w.store(ctx, now)
		return now, true, err
	})
}

// permitWrite stores n in a row.
type permitWrite struct {
	*permitRow
	op    string
	n     int
	done  func(now protocol.Permits) bool // nothing more has to be written
	wrote func(permitAttempt, protocol.Permits) bool
	sent  attempts.Sequence[permitAttempt]
}

// permitAttempt is one write of a row.
type permitAttempt struct{ row protocol.Permits }

// ID is the version that the attempt writes.
func (a permitAttempt) ID() string { return a.row.Version }

// finish runs write. It returns before write is done if ctx ends or the client is
// closed; with manual, it waits for write up to the release grace after that.
func (w *permitWrite) finish(ctx context.Context, manual bool, write func(context.Context) (protocol.Permits, bool, error)) (p protocol.Permits, ours bool, err error) {
	c := w.c
	if ctx.Err() != nil {
		return p, false, opError(w.op, c.cfg.Table, w.at, context.Cause(ctx))
	}
	if !c.enter() {
		return p, false, c.afterClose(w.op, w.at)
	}
	defer c.leave()
	ctx, stop := c.untilClosing(ctx)
	defer stop()
	var stored protocol.Permits
	var wrote bool
	var failed error
	done, unknown := c.outlive(ctx, w, func() { stored, wrote, failed = write(ctx) })
	if unknown == nil {
		return stored, wrote, failed
	}
	if manual {
		c.awaitGrace(done)
	}
	switch {
	case w.op == "resize":
		err = c.unknownOutcome(w.op, w.at, unknown)
	case errors.Is(unknown, ErrClosed):
		err = c.afterClose(w.op, w.at)
	default:
		err = opError(w.op, c.cfg.Table, w.at, unknown)
	}
	return p, false, err
}

// Answered reports whether no attempt is without an answer. Before the first the row is
// read, which ends with the call.
func (w *permitWrite) Answered() bool { return len(w.sent.Unanswered()) == 0 }

// LastErr is why the last attempt that has ended was not applied.
func (w *permitWrite) LastErr() error { return w.sent.LastErr() }

// store replaces the row, which shows now, until nothing more has to be written. ours:
// what is stored was written by an attempt of this call.
func (w *permitWrite) store(ctx context.Context, now protocol.Permits) (stored protocol.Permits, ours bool, err error) {
	op := attempts.Operation[permitAttempt]{
		Key:  protocol.Key(w.at),
		Next: func() (permitAttempt, *protocol.Write) { return w.next(now) },
		Shows: func(item protocol.Item, sent []permitAttempt) (permitAttempt, bool) {
			p, err := w.decode(item)
			i := slices.IndexFunc(sent, func(a permitAttempt) bool { return err == nil && w.wrote(a, p) })
			if i < 0 {
				return permitAttempt{}, false
			}
			return sent[i], true
		},
	}
	err = w.repeat(ctx, w.op, func() error {
		r := w.sent.Try(context.WithoutCancel(ctx), w.c.requests, op)
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
	if op := (*OpError)(nil); w.op == "resize" && len(w.sent.Unanswered()) > 0 && errors.As(err, &op) {
		err = w.c.unknownOutcome(w.op, w.at, op.Err)
	}
	return stored, ours, err
}

// next returns the next attempt, which replaces the row that shows now.
func (w *permitWrite) next(now protocol.Permits) (permitAttempt, *protocol.Write) {
	p := protocol.Permits{N: w.n, Most: max(w.n, now.Most), ID: now.ID, Version: protocol.NewVersion()}
	if now.Version == "" {
		p.ID = p.Version
		return permitAttempt{p}, w.rows.Create(protocol.Key(w.at), w.c.owner, p)
	}
	return permitAttempt{p}, w.rows.Replace(protocol.Key(w.at), w.c.owner, now.Version, p)
}

// heldPermits returns the records of those keys that are held. For a record that cannot
// be read there is an error, beside the other records.
func (c *Client) heldPermits(ctx context.Context, keys []Key) ([]Record, error) {
	read := func(keys []Key) (items map[Key]protocol.Item, err error) {
		err = c.retryRead(ctx, "holders", keys[0], func(ctx context.Context) error {
			found, _, err := c.readAll(ctx, keys)
			items = found
			return err
		})
		return items, err
	}
	items, err := read(keys)
	if err != nil {
		return nil, err
	}
	var held []Record
	var damaged []error
	for _, key := range keys {
		if items[key] == nil {
			continue
		}
		r, err := c.decode(key, items[key])
		switch {
		case err != nil:
			damaged = append(damaged, err)
		case !r.Released && !c.isExpired(r):
			held = append(held, r)
		}
	}
	held, err = c.withoutDeadSessions(held, read)
	return held, errors.Join(append(damaged, err)...)
}

// isExpired reports whether the record itself says that its holder is dead.
func (c *Client) isExpired(r Record) bool {
	wall, now := c.wall(), c.now()
	return c.caps.Expiry == layout.WallClock && c.observer.DeadAt(r.protocol(), observed.Version{}, now, wall) <= now.Mono
}

// withoutDeadSessions leaves out the records that a session has freed.
func (c *Client) withoutDeadSessions(held []Record, read func([]Key) (map[Key]protocol.Item, error)) ([]Record, error) {
	proto, ok := c.proto.(protocol.Sharing)
	if !ok {
		return held, nil
	}
	var rows []Key
	for _, r := range held {
		if row := Key(proto.SessionKey(r.Session)); r.Session != "" && !slices.Contains(rows, row) {
			rows = append(rows, row)
		}
	}
	if len(rows) == 0 {
		return held, nil
	}
	items, err := read(rows)
	if err != nil {
		return held, err
	}
	return slices.DeleteFunc(held, func(r Record) bool {
		if r.Session == "" {
			return false
		}
		row, err := proto.Session().Decode(items[Key(proto.SessionKey(r.Session))])
		return err == nil && row.Released
	}), nil
}
