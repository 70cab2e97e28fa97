package semaphore

import (
	"context"
	"errors"
	"fmt"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/attempts"
	"github.com/leasehold-go/leasehold/internal/decide"
	"github.com/leasehold-go/leasehold/internal/protocol"
	"github.com/leasehold-go/leasehold/internal/seek"
)

// row is the row of a semaphore. It stores how many permits there are.
type row struct {
	in   inside
	c    *seek.Client
	rows protocol.PermitRows
	at   protocol.Key
}

// decode decodes a row. A nil item means that there is none.
func (r *row) decode(item protocol.Item) (protocol.Permits, error) {
	if item == nil {
		return protocol.Permits{}, nil
	}
	p, err := r.rows.Decode(item)
	if err != nil {
		return p, r.c.Observer.Damaged(r.at, item, err)
	}
	return p, nil
}

// read reads the row until it is answered, refused or ctx ends. If there is no row
// yet, it returns the zero Permits.
func (r *row) read(ctx context.Context, op string) (protocol.Permits, error) {
	ctx, leave, ok := r.in.Enter(ctx)
	if !ok {
		return protocol.Permits{}, r.closed(op)
	}
	defer leave()
	return r.readUntil(ctx, op)
}

// readUntil is read, but goes on while the client closes.
func (r *row) readUntil(ctx context.Context, op string) (protocol.Permits, error) {
	var item protocol.Item
	err := r.repeat(ctx, op, func() (err error) {
		item, err = r.c.Requests.Read(ctx, r.at)
		return err
	})
	if err != nil {
		return protocol.Permits{}, err
	}
	return r.decode(item)
}

// repeat repeats a request until it succeeds, is refused or ctx ends.
func (r *row) repeat(ctx context.Context, op string, request func() error) error {
	var t seek.Trouble
	err := r.c.Requests.Repeat(ctx, request, func(f *attempts.Failure) error {
		t.Report(ctx, r.c, r.at, f.Err)
		if f.Cause == decide.Busy {
			r.c.Listener.Throttled(ctx, r.at, 1, f.Err)
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
		return r.failed(op, f.Err)
	case errors.Is(cause, leasehold.ErrClosed):
		return r.closed(op)
	}
	return r.failed(op, errors.Join(cause, f.Err))
}

func (r *row) failed(op string, err error) error { return r.in.Failed(op, leasehold.Key(r.at), err) }

func (r *row) closed(op string) error { return r.in.AfterClose(op, leasehold.Key(r.at)) }

// unknown is the error of a write that gives up, and may have been applied or be yet.
func (r *row) unknown(op string, err error) error {
	return r.failed(op, fmt.Errorf("%w: %w", leasehold.ErrUnknownOutcome, err))
}

// create stores n unless a number is stored already, and returns what is stored then.
// created: this call has stored it, though another may have changed it since. When ctx
// ends, a request may still be in flight; with manual it is waited for, within the
// release grace.
func (r *row) create(ctx context.Context, n int, manual bool) (p protocol.Permits, created bool, err error) {
	w := &write{row: r, op: "acquire", n: n,
		done:  func(now protocol.Permits) bool { return now.Version != "" },
		wrote: func(a attempt, now protocol.Permits) bool { return a.ID() == now.ID },
	}
	return w.finish(ctx, manual, func(ctx context.Context) (protocol.Permits, bool, error) {
		return w.store(ctx, protocol.Permits{})
	})
}

// resize stores n, whatever was stored before. wrote: n was not stored already when it
// looked. ErrUnknownOutcome if ctx ended without an answer.
func (r *row) resize(ctx context.Context, n int) (p protocol.Permits, wrote bool, err error) {
	w := &write{row: r, op: "resize", n: n,
		done:  func(now protocol.Permits) bool { return now.N == n },
		wrote: func(a attempt, now protocol.Permits) bool { return a.ID() == now.Version },
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
