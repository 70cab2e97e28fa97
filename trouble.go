package leasehold

import (
	"context"
	"errors"
	"log/slog"
	"sync"

	"github.com/leasehold-go/leasehold/internal/bridge"
	"github.com/leasehold-go/leasehold/internal/decide"
	"github.com/leasehold-go/leasehold/internal/seek"
)

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
	if w.everReported && now.Mono-w.reported.Mono < seek.ReportEvery {
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
	if errors.As(err, &held) && held.Err == nil || errors.Is(err, bridge.ErrAgain) {
		return
	}
	kind := EventGaveUp
	if errors.Is(err, ErrDone) {
		kind = EventDone
	}
	c.emit(ctx, Event{Kind: kind, Key: key, Took: c.now().Mono - began.Mono, Requests: requests, Err: err})
}
