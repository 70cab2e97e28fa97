package leasehold

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/leasehold-go/leasehold/internal/decide"
)

// sayAgain is the time between two words on one and the same trouble.
const sayAgain = time.Minute

// trouble is what is said of a wait whose requests fail: the first time, and
// then once a minute for as long as it lasts. It is for one goroutine.
type trouble struct {
	since decide.Instant // when they began to fail
	fails bool
	said  decide.Instant
	spoke bool
}

// passed ends the trouble: a request was answered.
func (t *trouble) passed() { t.fails = false }

// due reports whether it is time to say so. Throttling has an event of its own
// for each request: it is trouble only once it has kept the wait up for long.
func (t *trouble) due(now decide.Instant, throttled bool) bool {
	if !t.fails {
		t.fails, t.since = true, now
	}
	if throttled && now.Mono-t.since.Mono < sayAgain || t.spoke && now.Mono-t.said.Mono < sayAgain {
		return false
	}
	t.spoke, t.said = true, now
	return true
}

// tell says, if it is due, that a request for key has failed and is repeated.
func (t *trouble) tell(ctx context.Context, c *Client, key Key, err error) {
	switch cause := decide.ClassifyTransaction(err).Cause.After(c.requests.Answered()); {
	case cause == decide.Refused, cause == decide.ConditionFailed: // an answer
		return
	case ctx.Err() != nil, !t.due(c.now(), cause == decide.Busy || cause == decide.Conflict):
		return
	}
	c.waitFails.warn(ctx, c, key, err)
	c.emit(ctx, Event{Kind: EventWaitError, Key: key, Err: opError("acquire", c.cfg.Table, key, err)})
}

// waitFails says in the log that waits are in trouble: one line a minute for all
// of a client's, with the number of those that came to be in it meanwhile.
type waitFails struct {
	mu     sync.Mutex // guards what follows
	said   decide.Instant
	spoke  bool
	others int
}

func (w *waitFails) warn(ctx context.Context, c *Client, key Key, err error) {
	w.mu.Lock()
	now := c.now()
	if w.spoke && now.Mono-w.said.Mono < sayAgain {
		w.others++
		w.mu.Unlock()
		return
	}
	others := w.others
	w.spoke, w.said, w.others = true, now, 0
	w.mu.Unlock()
	c.log.LogAttrs(ctx, slog.LevelWarn, "leasehold: waiting, and requests fail: they are repeated",
		slog.String("table", c.cfg.Table), slog.String("key", key.String()), slog.Int("others", others),
		slog.Int64("waiting", c.waiting.Load()), slog.Any("err", err))
}

// gaveUp tells of a call that ends without a grant. A try that met a holder has
// its answer, and a semaphore that begins anew goes on.
func (c *Client) gaveUp(ctx context.Context, key Key, began decide.Instant, requests int, err error) {
	held := (*HeldError)(nil)
	if errors.As(err, &held) && held.Err == nil || errors.Is(err, errResized) {
		return
	}
	c.emit(ctx, Event{Kind: EventGaveUp, Key: key, Took: c.now().Mono - began.Mono, Requests: requests, Err: err})
}
