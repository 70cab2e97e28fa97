package histories

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"sync"
	"testing"

	"github.com/anishathalye/porcupine"
	"go.uber.org/goleak"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/lab"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// These operations must occur in the histories of each kind of lock.
var always = []string{"acquire", "end of trust", "release", "commit", "commit, unknown", "commit and release", "read", "write", "write, refused", "look"}

func TestMutexIsLinearizableInRandomHistories(t *testing.T) {
	forSeeds(t, 2, mutexes, lockModel, always...)
}

func TestSemaphoreIsLinearizableInRandomHistories(t *testing.T) {
	forSeeds(t, 4, semaphores, semaphoreModel(), always...)
}

// mutexes describes locks with a single holder.
var mutexes = sharing{key: "m", acquire: func(ctx context.Context, p *process, _ *worker, opts ...leasehold.AcquireOption) (*leasehold.Lock, asked, error) {
	lock, err := p.client.Acquire(ctx, p.how.key, opts...)
	return lock, asked{verb: acquire}, err
}}

// semaphores describes locks with several permits.
var semaphores = sharing{key: "s", permits: true, acquire: acquirePermit}

func acquirePermit(ctx context.Context, p *process, w *worker, opts ...leasehold.AcquireOption) (*leasehold.Lock, asked, error) {
	var keys []leasehold.Key
	first := w.IntN(permits)
	for i := range permits {
		keys = append(keys, leasehold.Key{Partition: fmt.Sprint(p.how.key, "/", (first+i)%permits)})
	}
	lock, err := p.client.AcquireAny(ctx, keys, opts...)
	if err != nil {
		return nil, asked{}, err
	}
	return lock, asked{verb: acquire, key: permitOf(lock)}, nil
}

// forSeeds runs random histories and checks them against the model. It runs the configured number
// of histories (LEASEHOLD_HISTORIES) divided by the parameter oneOf. If at least a thousand
// histories run, each operation in the list "wanted" must occur.
func forSeeds(t *testing.T, oneOf uint64, how sharing, model porcupine.Model, wanted ...string) {
	usual := uint64(20_000)
	if lab.Race {
		usual = 500 // the race detector makes a history five times as slow
	}
	first, count := uint64(1), mustCount(t, "LEASEHOLD_HISTORIES", usual)/oneOf
	if seed := mustCount(t, "LEASEHOLD_HISTORY", 0); seed > 0 {
		first, count, wanted = seed, 1, nil
	}
	var mu sync.Mutex
	tally := map[string]int{}
	workers := uint64(runtime.GOMAXPROCS(0))
	var wg sync.WaitGroup
	for i := range workers {
		wg.Go(func() {
			for seed := first + i; seed < first+count && !t.Failed(); seed += workers {
				ops := play(t, seed, how).operations()
				mu.Lock()
				for _, op := range ops {
					tally[kind(op.Input.(asked), op.Output.(told))]++
				}
				mu.Unlock()
				if p := problem(model, ops); p != "" {
					t.Errorf("seed %d: %s\nagain: LEASEHOLD_HISTORY=%d go test -run '^%s$' ./histories", seed, p, seed, t.Name())
				}
			}
		})
	}
	wg.Wait()
	t.Logf("%d histories, seeds %d to %d: %v", count, first, first+count-1, tally)
	for _, w := range wanted {
		if tally[w] == 0 && count >= 1000 && !t.Failed() {
			t.Errorf("no history contains %q", w)
		}
	}
}

func mustCount(t *testing.T, name string, otherwise uint64) uint64 {
	s := os.Getenv(name)
	if s == "" {
		return otherwise
	}
	n, err := strconv.ParseUint(s, 10, 64)
	if err != nil {
		t.Fatal(fmt.Errorf("%s: %w", name, err))
	}
	return n
}
