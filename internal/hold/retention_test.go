package hold_test

import (
	"fmt"
	"net/http"
	"strconv"
	"testing"
	"time"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/lab"
)

// collect deletes what is due as DynamoDB's TTL does.
func collect(w *lab.World) {
	for _, item := range w.Scan() {
		due, err := strconv.ParseInt(lab.Number(item, "expiresAt"), 10, 64)
		if err == nil && time.Unix(due, 0).Before(time.Now()) {
			w.Delete(lab.Text(item, "key"))
		}
	}
}

func TestADeadSessionsRowOutlivesEveryRequestThatMayBeLateWhateverTheRetention(t *testing.T) {
	for _, retention := range []time.Duration{time.Second, 0, 365 * 24 * time.Hour, leasehold.Forever} {
		for name, end := range map[string]func(w *lab.World, c *leasehold.Client, wire *lab.Wire){
			"closed": func(w *lab.World, c *leasehold.Client, _ *lab.Wire) {
				if err := c.Close(w.T.Context()); err != nil {
					w.T.Error(err)
				}
			},
			"marked by a waiter": func(w *lab.World, _ *leasehold.Client, wire *lab.Wire) {
				wire.SetFault(lab.Cut)
				cfg := lab.Config()
				cfg.Retention = retention
				waiter, _ := w.Client(cfg)
				w.Release(w.Acquire(waiter, "job"))
			},
		} {
			t.Run(fmt.Sprint(retention, ", ", name), func(t *testing.T) {
				lab.InBubble(t, func(t *testing.T, w *lab.World) {
					cfg := lab.SharedConfig()
					cfg.Retention = retention
					c, wire := w.Client(cfg)
					var again func() (*http.Response, error)
					wire.SetFault(lab.Once(lab.Call.Grants, func(r *lab.Request) (*http.Response, error) {
						again = r.Send
						return r.Send()
					}))
					w.Acquire(c, "job")
					row := w.Sessions()[0]
					end(w, c, wire)
					lab.Elapse(24 * time.Hour)
					collect(w)
					_, _ = again()
					if lab.Text(w.Item(row), "dead") != "1" {
						t.Error("a session came back from the dead")
					}
					lab.Elapse(7 * 24 * time.Hour)
					collect(w)
					if w.Item(row) != nil {
						t.Error("nothing has collected the dead session's row")
					}
				})
			})
		}
	}
}
