package leasehold

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/leasehold-go/leasehold/internal/decide"
)

// reportEvery is the time between two reports of the same trouble.
const reportEvery = time.Minute

// trouble decides when failed requests of a wait are reported: the first one, and
// then one each minute while requests go on failing. It is for one goroutine.
type trouble struct {
	since        decide.Instant // when they began to fail
	failing      bool
	reported     decide.Instant
	everReported bool
}

// passed ends the trouble: a request has been answered.
func (t *trouble) passed() { t.failing = false }

// due reports whether it is time for a report. Throttling has an event of its own
// for each request. It is reported once requests have failed for reportEvery.
func (t *trouble) due(now decide.Instant, throttled bool) bool {
	if !t.failing {
		t.failing, t.since = true, now
	}
	if throttled && now.Mono-t.since.Mono < reportEvery || t.everReported && now.Mono-t.reported.Mono < reportEvery {
		return false
	}
	t.everReported, t.reported = true, now
	return true
}

// report reports, if it is due, that a request for key has failed and is repeated.
func (t *trouble) report(ctx context.Context, c *Client, key Key, err error) {
	switch cause := decide.ClassifyTransaction(err).Cause.After(c.requests.Answered()); {
	case cause == decide.Refused, cause == decide.ConditionFailed: // an answer
		return
	case ctx.Err() != nil, !t.due(c.now(), cause == decide.Busy || cause == decide.Conflict):
		return
	}
	c.waitFails.warn(ctx, c, key, err)
	c.emit(ctx, Event{Kind: EventWaitError, Key: key, Err: opError("acquire", c.cfg.Table, key, err)})
}

// waitFails logs that requests of waits fail: one line a minute for all waits of a
// client, with the number of reports left out since the last line.
type waitFails struct {
	mu           sync.Mutex // guards what follows
	reported     decide.Instant
	everReported bool
	others       int
}

func (w *waitFails) warn(ctx context.Context, c *Client, key Key, err error) {
	w.mu.Lock()
	now := c.now()
	if w.everReported && now.Mono-w.reported.Mono < reportEvery {
		w.others++
		w.mu.Unlock()
		return
	}
	others := w.others
	w.everReported, w.reported, w.others = true, now, 0
	w.mu.Unlock()
	c.log.LogAttrs(ctx, slog.LevelWarn, "leasehold: waiting, and requests fail: they are repeated",
		slog.String("table", c.cfg.Table), slog.String("key", key.String()), slog.Int("others", others),
		slog.Int64("waiting", c.waiting.Load()), slog.Any("err", err))
}

// emitGaveUp emits the event of a call that ends without a grant. There is none if a
// holder was the answer with NoWait, or if a semaphore starts again.
func (c *Client) emitGaveUp(ctx context.Context, key Key, began decide.Instant, requests int, err error) {
	held := (*HeldError)(nil)
	if errors.As(err, &held) && held.Err == nil || errors.Is(err, errResized) {
		return
	}
	c.emit(ctx, Event{Kind: EventGaveUp, Key: key, Took: c.now().Mono - began.Mono, Requests: requests, Err: err})
}
