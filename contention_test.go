package leasehold_test

import (
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/leasehold-go/leasehold/internal/lab"
)

// away is a network over which a round trip takes 6 ms.
func away(r *lab.Request) (*http.Response, error) {
	const half = 3 * time.Millisecond
	time.Sleep(half)
	return lab.Late(half, (*lab.Request).Send)(r)
}

// What a section costs while others want its key, too, in the time of a bubble: it is
// the same on every machine. A tenth more is let pass, since chance has its part.
func TestASectionUnderContentionCostsNoMoreThanRecorded(t *testing.T) {
	const (
		hold   = 10 * time.Millisecond
		limit  = 22 * time.Millisecond // the hold, and two round trips
		window = 5 * time.Second
	)
	for _, c := range []struct {
		clients                 int
		requests, writes, reads float64 // recorded
	}{
		{4, 4.6, 2.6, 2.0},
		{16, 14.9, 4.8, 10.1},
	} {
		t.Run(fmt.Sprint(c.clients, " clients"), func(t *testing.T) {
			lab.InBubble(t, func(t *testing.T, w *lab.World) {
				var (
					began              = time.Now()
					wg                 sync.WaitGroup
					mu                 sync.Mutex // guards what follows
					sections, requests float64
					used               lab.Units
				)
				for range c.clients {
					client, wire := w.Client(lab.Config())
					wire.Meter = &lab.Meter{}
					wire.SetFault(away)
					wg.Go(func() {
						n := 0.0
						for ; time.Since(began) < window; n++ {
							l := w.Acquire(client, "job")
							time.Sleep(hold)
							w.Release(l)
						}
						mu.Lock()
						defer mu.Unlock()
						units := wire.Meter.Reset()
						sections, requests = sections+n, requests+float64(len(wire.Sent()))
						used.Write, used.Read = used.Write+units.Write, used.Read+units.Read
						_ = client.Close(t.Context())
					})
				}
				wg.Wait()
				for what, is := range map[string]struct{ got, most float64 }{
					"requests":    {requests / sections, c.requests},
					"write units": {used.Write / sections, c.writes},
					"read units":  {used.Read / sections, c.reads},
					"ms":          {time.Since(began).Seconds() * 1000 / sections, limit.Seconds() * 1000},
				} {
					if is.got > is.most*1.1 {
						t.Errorf("%.2f %s for each section, %.2f are recorded", is.got, what, is.most)
					}
				}
			})
		})
	}
}
