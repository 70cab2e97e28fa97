package leasehold

import (
	"context"

	"github.com/leasehold-go/leasehold/internal/bridge"
	"github.com/leasehold-go/leasehold/internal/decide"
	"github.com/leasehold-go/leasehold/internal/protocol"
	"github.com/leasehold-go/leasehold/internal/seek"
)

func init() {
	bridge.Inside = func(c any) any { return inside{c.(*Client)} }
	bridge.Record = func(r protocol.Record) any { return recordOf(r) }
}

// inside is what packages semaphore, rwlock and election have of a client beside its public
// methods. Their interfaces say what is what.
type inside struct{ c *Client }

func (in inside) Seeking() *seek.Client { return in.c.seek }

func (in inside) Asked(key Key, opts []AcquireOption) (want seek.Want, reentrant bool, err error) {
	r := request{Want: seek.Want{Timing: in.c.timing}}
	if err := noneNil(in.c, "acquire", key, opts); err != nil {
		return r.Want, false, err
	}
	for _, o := range opts {
		o.toAcquire(&r)
	}
	if r.label != nil || r.period != nil {
		return r.Want, false, in.Unsupported("Once or Every of a semaphore: acquire a lock with it")
	}
	return r.Want, r.reentrant, nil
}

func (in inside) CheckRequest(key Key, opts []AcquireOption) error {
	_, err := in.c.newRequests([]Key{key}, opts)
	return err
}

func (in inside) Share(ctx context.Context, keys []Key, opts []AcquireOption) (*Lock, error) {
	for _, key := range keys {
		h := in.c.holds.Of(ctx, protocol.Key(key))
		if h == nil || h.Want().Mode != protocol.ModePlain {
			continue
		}
		wants, err := in.c.newRequests([]Key{key}, opts)
		if err == nil {
			err = wants[0].refuses(in.c, h)
		}
		if err != nil {
			return nil, err
		}
		return in.c.share(ctx, h, wants[0])
	}
	return nil, nil
}

func (in inside) AcquireSide(ctx context.Context, key string, mode protocol.Mode, opts []AcquireOption) (*Lock, error) {
	rw, ok := in.c.proto.(protocol.ReadWriting)
	if !ok {
		return nil, in.Unsupported("read/write locks")
	}
	want := &request{Want: seek.Want{Key: protocol.Key{Partition: key}, Timing: in.c.timing, Mode: mode}}
	if err := in.c.completeRequest(want, opts); err != nil {
		return nil, err
	}
	want.Side = rw.ReadWrite(mode, want.NoWait)
	return in.c.acquireOne(ctx, want)
}

func (in inside) Do(ctx context.Context, key Key, acquire func() (*Lock, error), fn func(context.Context, *Lock) error) error {
	if fn == nil {
		return &notRunError{in.c.errorf("do", key, "the function is nil")}
	}
	lock, err := acquire()
	if err != nil {
		return &notRunError{err}
	}
	return lock.Do(ctx, fn)
}

func (in inside) GaveUp(ctx context.Context, key Key, began decide.Instant, err error) {
	in.c.emitGaveUp(ctx, key, began, 0, err)
}

func (in inside) Enter(ctx context.Context) (until context.Context, leave func(), ok bool) {
	if !in.c.holds.Enter() {
		return nil, nil, false
	}
	until, stop := in.c.holds.UntilClosing(ctx)
	return until, func() { stop(); in.c.holds.Leave() }, true
}

func (in inside) RetryRead(ctx context.Context, op string, key Key, read func(context.Context) error) error {
	return in.c.retryRead(ctx, op, key, read)
}

func (in inside) OnAsked(l *Lock, fn func()) { l.h.Lock().OnAsked(fn) }

func (in inside) CheckPrefix(key Key) error { return in.c.checkPrefix(key) }

func (in inside) Unsupported(feature string) error { return in.c.cfg.unsupported(feature) }

func (in inside) AfterClose(op string, key Key) error { return in.c.afterClose(op, key) }

func (in inside) Failed(op string, key Key, err error) error {
	return opError(op, in.c.cfg.Table, key, err)
}
