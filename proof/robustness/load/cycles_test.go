//go:build linux

package load

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/lab"
)

// The acquire-release cycles run in blocks, and the test compares the resource usage of the
// blocks. The client remembers an attempt without an answer for 15 minutes and a lease. So the
// client's memory grows at first, and the comparison omits the first blocks; "warming" is their number.
const (
	blocks  = 20
	warming = 5
)

// cycle describes one kind of acquire-release cycle and how often it runs.
type cycle struct {
	config func() leasehold.Config
	share  int       // LEASEHOLD_CYCLES divided by share is the number of cycles
	fault  lab.Fault // fault of the client's simulated network
	held   bool      // another client holds the key during all cycles
	do     func(ctx context.Context, c *leasehold.Client, key string) error
}

// granted acquires a free key and releases it.
func granted(ctx context.Context, c *leasehold.Client, key string) error {
	lock, err := c.Acquire(ctx, key)
	if err != nil {
		return err
	}
	return lock.Release(ctx)
}

// inVain returns a function that calls Acquire, with the time limit "within", for a key that cannot
// be acquired. The function returns nil if Acquire's error matches both context.DeadlineExceeded
// and the error "because".
func inVain(because error, within time.Duration) func(ctx context.Context, c *leasehold.Client, key string) error {
	return func(ctx context.Context, c *leasehold.Client, key string) error {
		ctx, cancel := context.WithTimeout(ctx, within)
		defer cancel()
		if _, err := c.Acquire(ctx, key); !errors.Is(err, because) || !errors.Is(err, context.DeadlineExceeded) {
			return fmt.Errorf("error %w", err)
		}
		return nil
	}
}

var cycles = map[string]cycle{
	"granted":                                     {config: lab.Config, share: 1, do: granted},
	"granted, shared lease":                       {config: lab.SharedConfig, share: 4, do: granted},
	"timeout while the key is held":               {config: lab.Config, share: 1, held: true, do: inVain(leasehold.ErrHeld, 50*time.Millisecond)},
	"timeout while the key is held, shared lease": {config: lab.SharedConfig, share: 4, held: true, do: inVain(leasehold.ErrHeld, 50*time.Millisecond)},
	"timeout without an answer":                   {config: lab.Config, share: 5, fault: lab.Cut, do: inVain(context.DeadlineExceeded, time.Second)},
}

func TestAcquireReleaseCyclesDoNotLeakMemory(t *testing.T) {
	all := count(t, "LEASEHOLD_CYCLES", 100_000, 50)
	lab.Each(t, cycles, func(t *testing.T, w *lab.World, kind cycle) { kind.run(t, w, all/kind.share) })
}

func (kind cycle) run(t *testing.T, w *lab.World, n int) {
	const keys = 100
	holder, _ := w.Client(lab.Config())
	c, wire := w.Client(kind.config())
	for i := range keys { // create the records of all keys before the measurement
		w.Release(w.Acquire(c, key(i)))
	}
	if kind.held {
		w.Acquire(holder, "held")
	}
	each := n / blocks
	var took []time.Duration
	var early footprint
	for block := range blocks {
		if block == warming {
			early = settled(wire)
		}
		wire.SetFault(kind.fault)
		began := spent()
		for i := range each {
			k := key(i % keys)
			if kind.held {
				k = "held"
			}
			if err := kind.do(t.Context(), c, k); err != nil {
				t.Fatalf("cycle %d: %v", block*each+i, err)
			}
			if i%100 == 0 {
				wire.Sent() // makes the simulated network forget its record of the requests
			}
		}
		took = append(took, (spent()-began)/time.Duration(each))
		wire.SetFault(nil)
	}
	late := settled(wire)
	if late.goroutines > early.goroutines+5 { // tolerates five goroutines more, because a few timers may run at this moment
		t.Errorf("%d goroutines, %d before", late.goroutines, early.goroutines)
	}
	if grown := int64(late.memory) - int64(early.memory); grown > 1<<20 {
		t.Errorf("%d bytes of memory more after %d cycles", grown, each*(blocks-warming))
	}
	first, last := median(took[warming:2*warming]), median(took[blocks-warming:])
	if last > 2*first && each >= 1000 {
		t.Errorf("a cycle took %v in the first blocks, %v in the last: %v", first, last, took)
	}
	t.Logf("%d cycles: %d goroutines before and %d after, %d bytes of memory more, the last cycles took %.2f of the time of the first",
		each*blocks, early.goroutines, late.goroutines, int64(late.memory)-int64(early.memory), float64(last)/float64(first))
	for _, c := range []*leasehold.Client{c, holder} {
		lab.OK(t, c.Close(t.Context()))
	}
}

func key(i int) string { return fmt.Sprint("job/", i) }

// footprint contains the resources that an idle process uses.
type footprint struct {
	goroutines int
	memory     uint64
}

// settled waits until all abandoned requests have ended. It returns the footprint of the process.
func settled(wire *lab.Wire) footprint {
	lab.Elapse(20 * time.Minute)
	wire.Sent()
	synctest.Wait()
	return footprint{runtime.NumGoroutine(), inUse()}
}

// spent returns the processor time that this process has used. Neither the virtual time of package
// synctest nor other processes affect this processor time.
func spent() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err) // Getrusage cannot fail with these arguments
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func median(of []time.Duration) time.Duration {
	sorted := slices.Sorted(slices.Values(of))
	return sorted[len(sorted)/2]
}
