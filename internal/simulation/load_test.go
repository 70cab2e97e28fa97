package simulation

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/lab"
)

// One client holds hundreds of locks. For a while the table is in trouble: it limits the
// writes per second, answers no request, or does not answer requests for some of the
// keys. A lock must not be lost if the requests for it are answered often enough. During
// the trouble the table must get only few more requests than before. Two renewal periods
// after the trouble, the renewals must be spread out again.
func TestSimulationOfLoad(t *testing.T) { forSeeds(t, loadSeeds, simulateLoad) }

const (
	loadSeeds  = 3 // each seed has another kind of trouble
	loadLocks  = 300
	loadLease  = 12 * time.Second
	loadPeriod = loadLease / 4
	// The trouble begins after two renewal periods. The test compares the requests during
	// the trouble with those in the period before it.
	loadTrouble = 2 * loadPeriod
	loadMended  = loadTrouble + 30*time.Second
	loadSpread  = loadMended + 2*loadPeriod
	loadEnd     = loadSpread + 2*loadPeriod
)

// load is the state of one run of the simulation of load.
type load struct {
	seed   uint64
	began  time.Time
	kind   string
	stall  time.Duration
	perSec int // writes per second that the table accepts during the trouble
	hung   func(key string) bool

	mu    sync.Mutex
	tally *tally
	due   map[string]*operation // renewals and grants that have not yet succeeded, by the operation and the keys of their requests
	asked map[string]int
	taken map[int]int // number of writes that the table accepted in each second
	sent  []time.Duration
}

func simulateLoad(t *testing.T, seed uint64, _ world) {
	synctest.Test(t, func(t *testing.T) {
		w := lab.New(t)
		rng := drawn(seed, "load")
		l := &load{
			seed: seed, began: time.Now(), tally: newTally(), due: map[string]*operation{}, asked: map[string]int{}, taken: map[int]int{},
			kind:  []string{"throttled", "standing still", "hung for some keys"}[seed%3],
			stall: time.Second + upTo(rng, time.Second),
			// A lock stays trusted if one renewal succeeds in each period of trust. perSec
			// is large enough for one renewal of each lock in that period.
			perSec: loadLocks/10 + 25 + rng.IntN(30),
			hung:   func(key string) bool { return drawn(seed, "hung", key).IntN(3) == 0 },
		}
		cfg := lab.Config()
		cfg.Lease, cfg.Margin, cfg.RenewEvery = loadLease, loadLease/10, loadPeriod
		c, wire := w.Client(cfg, lab.Chance(func() float64 { return drawn(seed, "chance", time.Now()).Float64() }))
		wire.SetFault(l.fault)

		locks := make([]*leasehold.Lock, loadLocks)
		var wg sync.WaitGroup
		for i := range locks {
			r := newWorker(seed, i)
			wg.Go(func() {
				time.Sleep(upTo(r, loadPeriod))
				locks[i] = w.Acquire(c, fmt.Sprint("job-", i))
			})
		}
		wg.Wait()
		time.Sleep(time.Until(l.began.Add(loadEnd)))
		problem := l.problem(locks)
		l.tally.enter(door(t), seed, problem != "")
		if problem != "" {
			if os.Getenv("LEASEHOLD_SEED") != "" {
				t.Log(l.perWindow(0, loadEnd, time.Second))
			}
			t.Errorf("seed %d, a table that is %s: %s\nagain: %s", seed, l.kind, problem, again(seed, door(t), nil))
		}
		wire.SetFault(nil)
		_ = c.Close(context.Background())
	})
}

// fault answers one request as the table would: it may meet the trouble of the
// run.
func (l *load) fault(r *lab.Request) (*http.Response, error) {
	sent := newRequest(nil, r.Call)
	key, at := sent.asks(), time.Since(l.began)
	l.mu.Lock()
	n := l.asked[key]
	l.asked[key]++
	l.sent = append(l.sent, at)
	over := false
	if sent.manner != reads {
		second := int(at / time.Second)
		over = l.taken[second] >= l.perSec
		if !over {
			l.taken[second]++
		}
	}
	l.mu.Unlock()
	rng := drawn(l.seed, key, n)
	met, then, wait := none, (*lab.Request).Send, time.Duration(0)
	if at >= loadTrouble && at < loadMended {
		switch {
		case l.kind == "throttled" && over:
			met, then = throttledOnce, lab.Answer(func() *http.Response { return lab.Refusal(400, "ThrottlingException") })
		case l.kind == "hung for some keys" && l.hung(r.Keys()[0]):
			met, then = requestLost, lab.Cut
		case l.kind == "standing still" && at < loadTrouble+l.stall:
			met, wait = replyLate, loadTrouble+l.stall-at
		}
	}
	l.counts(sent, met)
	return lab.Late(wait+time.Millisecond+upTo(rng, 10*time.Millisecond), then)(r)
}

// counts adds a request and the fault that it met to the tally.
func (l *load) counts(r *request, f fault) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.tally.alone(l.due, r, f)
	if f != none {
		l.tally.Faults[f]++
	}
}

// problem describes the first promise that the run did not keep. It returns ""
// if all promises were kept.
func (l *load) problem(locks []*leasehold.Lock) string {
	lost, hanging, first := 0, 0, error(nil)
	for _, lock := range locks {
		if l.kind == "hung for some keys" && l.hung(lock.Key().Partition) {
			hanging++
			continue
		}
		if err := lock.Err(); err != nil {
			lost++
			first = err
		}
	}
	if lost > 0 {
		return fmt.Sprintf("%d of %d locks were lost: %v", lost, len(locks), first)
	}
	before := len(l.between(loadTrouble-loadPeriod, loadTrouble))
	most := before * 3 / 2
	if hanging > 0 {
		// If its requests are answered, a lock sends one request in each period. If they
		// are not, the lock sends more requests in the last period of its trust. On
		// average these are 3.7 requests if the pauses between them grow, and 5.3 if the
		// pauses do not grow.
		most = len(locks) - hanging + hanging*9/2
	}
	for from := loadTrouble; from < loadMended; from += loadPeriod {
		if n := len(l.between(from, from+loadPeriod)); n > most {
			return fmt.Sprintf("%d requests in the %v from %v, more than %d; before it %d", n, loadPeriod, from, most, before)
		}
	}
	const window = loadPeriod / 30
	if most := slices.Max(l.perWindow(loadSpread, loadEnd, window)); most > loadLocks/6 {
		return fmt.Sprintf("%d of %d locks were renewed within %v, two periods after the trouble", most, loadLocks, window)
	}
	return ""
}

func (l *load) between(from, to time.Duration) []time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	var sent []time.Duration
	for _, at := range l.sent {
		if at >= from && at < to {
			sent = append(sent, at)
		}
	}
	return sent
}

// perWindow returns the number of requests in each window of time between from
// and to.
func (l *load) perWindow(from, to, window time.Duration) []int {
	counts := make([]int, (to-from)/window)
	for _, at := range l.between(from, to) {
		if i := int((at - from) / window); i < len(counts) {
			counts[i]++
		}
	}
	return counts
}
