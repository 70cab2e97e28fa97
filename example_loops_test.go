package leasehold_test

import (
	"context"
	"errors"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/leasehold-go/leasehold/internal/lab"
)

// A try each two seconds for ten minutes, and the SDK sends one that fails twice more: how
// soon is up to chance.
const atMost = 3 * 300

// Examples are copied: what goes wrong for good in one may not become a busy loop.
func TestTheLoopOfTheWorkersDoesNotSpin(t *testing.T) {
	for name, tc := range map[string]struct {
		table string
		fault lab.Fault
		work  error
		works bool // again, once the fault is over
	}{
		"no table":        {"none", nil, nil, false},
		"access denied":   {"locks", lab.Answer(func() *http.Response { return lab.Refusal(400, "AccessDeniedException") }), nil, true},
		"an outage":       {"locks", lab.Answer(func() *http.Response { return lab.Refusal(500, "InternalServerError") }), nil, true},
		"no answer":       {"locks", lab.Cut, nil, true},
		"work that fails": {"locks", nil, errors.New("no paper"), true},
	} {
		t.Run(name, func(t *testing.T) {
			lab.InBubble(t, func(t *testing.T, w *lab.World) {
				cfg := lab.Config()
				cfg.Table = tc.table
				c, wire := w.Client(cfg)
				ctx, stop := context.WithCancel(t.Context())
				var sent atomic.Int32
				wire.SetFault(func(r *lab.Request) (*http.Response, error) {
					if sent.Add(1) > atMost {
						stop() // without a pause no time would pass here
					}
					if tc.fault != nil {
						return tc.fault(r)
					}
					return r.Send()
				})
				calls, done := 0, make(chan struct{})
				go func() {
					defer close(done)
					serve(ctx, c, "ann", func(ctx context.Context, _ string) error {
						calls++
						if tc.work == nil {
							<-ctx.Done()
						}
						return tc.work
					})
				}()
				lab.Elapse(10 * time.Minute)
				if n := sent.Load(); n == 0 || n > atMost {
					t.Errorf("%d requests in ten minutes", n)
				}
				wire.SetFault(nil)
				lab.Elapse(time.Minute)
				stop()
				<-done
				if works := calls > 0; works != tc.works {
					t.Errorf("worked %d times once it was over", calls)
				}
				_ = c.Close(context.Background())
			})
		})
	}
}
