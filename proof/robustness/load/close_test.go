package load

import (
	"fmt"
	"net/http"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/leasehold-go/leasehold/internal/lab"
)

// inUse returns the memory that the heap and all stacks use.
func inUse() uint64 {
	runtime.GC()
	runtime.GC() // the first collection runs finalizers; the second frees the finalized objects
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc + m.StackInuse
}

// throttles returns a fault that throttles requests. If oneIn is zero, the fault throttles all
// requests. If oneIn is 20, for example, every 20th request succeeds.
func throttles(oneIn int64) lab.Fault {
	var n atomic.Int64
	return func(r *lab.Request) (*http.Response, error) {
		time.Sleep(5 * time.Millisecond)
		if oneIn > 0 && n.Add(1)%oneIn == 0 {
			return r.Send()
		}
		return lab.Refusal(http.StatusBadRequest, "ThrottlingException"), nil
	}
}

func TestCloseReturnsByDeadlineOnThrottledTable(t *testing.T) {
	n := count(t, "LEASEHOLD_LOCKS", 10_000, 20)
	const within = 5 * time.Second
	for kind, config := range lab.Leases() {
		lab.Each(t, map[string]int64{
			kind + ", all requests throttled":     0,
			kind + ", one request in 20 succeeds": 20,
		}, func(t *testing.T, w *lab.World, oneIn int64) {
			c, wire := w.Client(config)
			w.AcquireMany(c, "job", n)
			wire.SetFault(throttles(oneIn))
			ctx := w.Within(within)
			began := time.Now()
			err := c.Close(ctx)
			lab.WantTook(t, "Close took", began, 0, within)
			if oneIn == 0 || kind == "a lease each" {
				lab.WantFailed(t, "Close, which did not release all locks", err)
			}
			if text := fmt.Sprint(err); err != nil && (len(text) > 500 || strings.Contains(text, "\n") || !strings.Contains(text, "throttled: raise")) {
				t.Errorf("the error is %q", text)
			}
			lab.Want(t, "locks that the closed client holds", len(c.Held()), 0)
			wire.SetFault(nil)
			lab.Elapse(25 * time.Second) // wait longer than a lease
			w.WantSilence(wire, time.Minute)
		})
	}
}

// count returns the number in the given environment variable. If the variable is unset, count
// returns the default: "usual", or "usual" divided by "part" under the race detector.
func count(t *testing.T, variable string, usual, part int) int {
	t.Helper()
	given := os.Getenv(variable)
	if given == "" {
		if lab.Race {
			return usual / part
		}
		return usual
	}
	n, err := strconv.Atoi(given)
	if err != nil || n < 1 {
		t.Fatalf("%s=%s: it must be a number above 0", variable, given)
	}
	return n
}
