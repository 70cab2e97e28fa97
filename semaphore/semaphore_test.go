package semaphore_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/lab"
	"github.com/leasehold-go/leasehold/layout"
	"github.com/leasehold-go/leasehold/semaphore"
	"github.com/leasehold-go/leasehold/table"
)

func newSemaphore(w *lab.World, c *leasehold.Client, key string, n int) *semaphore.Semaphore {
	w.T.Helper()
	s, err := semaphore.New(c, key, n)
	if err != nil {
		w.T.Fatal(err)
	}
	return s
}

func takePermit(w *lab.World, s *semaphore.Semaphore, opts ...leasehold.AcquireOption) *leasehold.Lock {
	w.T.Helper()
	lock, err := s.Acquire(w.T.Context(), opts...)
	if err != nil {
		w.T.Fatal(err)
	}
	return lock
}

// takePermits acquires n of them, which are free.
func takePermits(w *lab.World, s *semaphore.Semaphore, n int) map[string]*leasehold.Lock {
	w.T.Helper()
	held := map[string]*leasehold.Lock{}
	for range n {
		lock := takePermit(w, s, leasehold.NoWait())
		held[lock.Key().Partition] = lock
	}
	return held
}

// mustWait runs an Acquire that is expected to wait.
func mustWait(w *lab.World, s *semaphore.Semaphore, opts ...leasehold.AcquireOption) <-chan *leasehold.Lock {
	granted := make(chan *leasehold.Lock, 1)
	go func() {
		lock, err := s.Acquire(w.T.Context(), opts...)
		if err != nil && !errors.Is(err, leasehold.ErrClosed) { // when the test is over
			w.T.Error(err)
		}
		granted <- lock
	}()
	lab.Elapse(2 * time.Second)
	select {
	case lock := <-granted:
		w.T.Fatalf("%v granted", lock.Key())
	default:
	}
	return granted
}

func resizeTo(w *lab.World, s *semaphore.Semaphore, n int) {
	w.T.Helper()
	if err := s.Resize(w.T.Context(), n); err != nil {
		w.T.Fatal(err)
	}
}

// touches reports whether a request is about the row of a semaphore under gpu.
func touches(c lab.Call) bool {
	return (c.Op == "GetItem" || c.Op == "UpdateItem") && strings.Contains(string(c.Body), `"S":"gpu"`)
}

// closed closes clients, one of which others wait for.
func closed(t *testing.T, clients ...*leasehold.Client) {
	t.Helper()
	for _, c := range clients {
		if err := c.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}
}

func TestASemaphoreIsHeldByNAtATime(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		const n = 3
		var mu sync.Mutex
		inside, most, done := 0, 0, 0
		var wg sync.WaitGroup
		for range 4 {
			c, _ := w.Client(lab.Config())
			s := newSemaphore(w, c, "gpu", n)
			for range 3 {
				wg.Go(func() {
					for range 5 {
						permit, err := s.Acquire(t.Context())
						if err != nil {
							t.Error(err)
							return
						}
						mu.Lock()
						inside++
						most = max(most, inside)
						done++
						mu.Unlock()
						time.Sleep(time.Second)
						mu.Lock()
						inside--
						mu.Unlock()
						w.Release(permit)
					}
				})
			}
		}
		wg.Wait()
		if most != n || done != 60 {
			t.Errorf("at most %d inside, %d times in all", most, done)
		}
	})
}

func TestOtherProcessesGetTheirPermit(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, _ := w.Client(lab.Config())
		other, _ := w.Client(lab.Config())
		ours, theirs := newSemaphore(w, c, "gpu", 2), newSemaphore(w, other, "gpu", 2)
		ctx, stop := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		for range 6 {
			wg.Go(func() {
				for ctx.Err() == nil {
					if permit, err := ours.Acquire(ctx); err == nil {
						time.Sleep(20 * time.Millisecond)
						w.Release(permit)
					}
				}
			})
		}
		lab.Elapse(time.Second)
		for range 10 {
			bound, cancel := context.WithTimeout(t.Context(), 2*time.Second)
			permit, err := theirs.Acquire(bound)
			cancel()
			if err != nil {
				t.Errorf("the other process: %v", err)
				break
			}
			w.Release(permit)
		}
		stop()
		wg.Wait()
		_ = c.Close(t.Context()) // waits for what was granted to callers who had left
		_ = other.Close(t.Context())
	})
}

func TestAPermitCostsAWriteAndAReadAndItsReleaseAWrite(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, wire := w.Client(lab.Config())
		s := newSemaphore(w, c, "gpu", 3)
		for i, want := range []string{"GetItem UpdateItem UpdateItem GetItem UpdateItem", "UpdateItem GetItem UpdateItem"} {
			w.Release(takePermit(w, s))
			if got := strings.Join(lab.Ops(wire.Sent()), " "); got != want {
				t.Errorf("permit %d: requests %s", i, got)
			}
		}
		held := takePermits(w, s, 2)
		wire.Sent()
		takePermit(w, s)
		if got := strings.Join(lab.Ops(wire.Sent()), " "); got != "UpdateItem GetItem" {
			t.Errorf("beside permits of this process: requests %s", got)
		}
		if len(held) != 2 {
			t.Errorf("%d permits", len(held))
		}
		_ = c.Close(t.Context())
	})
}

func TestEveryPermitIsTriedFirstEquallyOften(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		const permits, tries = 3, 600
		c, _ := w.Client(lab.Config())
		s := newSemaphore(w, c, "gpu", permits)
		first := map[string]int{}
		for range tries {
			lock := takePermit(w, s)
			first[lock.Key().Partition]++
			w.Release(lock)
		}
		for i := range permits {
			if n := first[fmt.Sprint("gpu/", i)]; n < tries/permits/2 || n > tries/permits*3/2 { // eight deviations
				t.Errorf("permit %d first %d times of %d", i, n, tries)
			}
		}
	})
}

func TestWhatASemaphoreCannotDo(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		for _, l := range []layout.Layout{layout.AWSLabs{}, layout.Dynamolock{}, layout.PythonDynamoDBLock{}, layout.DyndbMutex{}, layout.DynamoDLM{NoSlots: true}} {
			c, _ := w.Client(lab.ConfigOf("locks", l))
			var unsupported *leasehold.UnsupportedError
			if _, err := semaphore.New(c, "gpu", 3); !errors.As(err, &unsupported) || *unsupported != (leasehold.UnsupportedError{Table: "locks", Layout: l.Name(), Feature: "semaphores"}) {
				t.Errorf("%s: %v", l.Name(), err)
			}
		}
		if _, err := semaphore.New(nil, "gpu", 3); err == nil {
			t.Error("a nil client was taken")
		}
		c, wire := w.Client(lab.Config())
		for _, n := range []int{-1, 0, 101} {
			if _, err := semaphore.New(c, "gpu", n); err == nil || !strings.Contains(err.Error(), "from 1 to 100") {
				t.Errorf("%d permits: %v", n, err)
			}
			if err := newSemaphore(w, c, "gpu", 3).Resize(t.Context(), n); err == nil || !strings.Contains(err.Error(), "from 1 to 100") {
				t.Errorf("resized to %d: %v", n, err)
			}
		}
		for _, key := range []string{"", "leasehold/session/abc", strings.Repeat("k", 2046)} {
			if _, err := semaphore.New(c, key, 1); err == nil {
				t.Errorf("a semaphore under a key of %d bytes", len(key))
			}
		}
		for _, o := range []leasehold.AcquireOption{leasehold.IfExists(), leasehold.WithSortKey("x")} {
			if _, err := newSemaphore(w, c, "gpu", 3).Acquire(t.Context(), o); !errors.Is(err, errors.ErrUnsupported) {
				t.Errorf("%T: %v", o, err)
			}
		}
		for _, o := range []leasehold.AcquireOption{leasehold.WithLease(time.Millisecond), leasehold.WithExpiryWarning(time.Second, nil)} {
			if _, err := newSemaphore(w, c, "gpu", 3).Acquire(t.Context(), o); err == nil {
				t.Errorf("%T is not refused", o)
			}
		}
		ended, cancel := context.WithCancelCause(t.Context())
		cancel(lab.ErrReset)
		if _, err := newSemaphore(w, c, "gpu", 3).Acquire(ended); !errors.Is(err, lab.ErrReset) {
			t.Errorf("under an ended context: %v", err)
		}
		if sent := wire.Sent(); len(sent) != 0 {
			t.Errorf("%d requests for what cannot be had", len(sent))
		}
	})
}

func TestPermitsInATableWithASortKey(t *testing.T) {
	for value, want := range map[string]string{"": "-", "eu": "eu"} {
		t.Run(want, func(t *testing.T) {
			lab.InBubble(t, func(t *testing.T, w *lab.World) {
				l := layout.Native{SortKey: "shard", SortValue: value}
				if err := table.Create(t.Context(), w.DB, table.Spec{Name: "sorted", Layout: l}); err != nil {
					t.Fatal(err)
				}
				c, _ := w.Client(lab.ConfigOf("sorted", l))
				lock := takePermit(w, newSemaphore(w, c, "gpu", 1))
				if lock.Key() != (leasehold.Key{Partition: "gpu/0", Sort: want}) {
					t.Errorf("%v granted", lock.Key())
				}
				if _, err := c.Get(t.Context(), "gpu", leasehold.WithSortKey(want)); !errors.Is(err, leasehold.ErrRecord) {
					t.Errorf("no row there: %v", err)
				}
				_ = c.Close(t.Context())
			})
		})
	}
}

func TestThePermitsOfDynamoDLMAreItsSlots(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		l := layout.DynamoDLM{}
		if err := table.Create(t.Context(), w.DB, table.Spec{Name: "dlm", Layout: l}); err != nil {
			t.Fatal(err)
		}
		cfg := lab.ConfigOf("dlm", l)
		a, _ := w.Client(cfg)
		b, wire := w.Client(cfg)
		s := newSemaphore(w, b, "gpu", 3)
		other := w.Acquire(a, "gpu", leasehold.WithSortKey("1")) // slot 1 of a process that does not know semaphores
		held := []*leasehold.Lock{takePermit(w, s), takePermit(w, s)}
		slots := []string{held[0].Key().Sort, held[1].Key().Sort}
		slices.Sort(slots)
		if !slices.Equal(slots, []string{"0", "2"}) || held[0].Key().Partition != "gpu" {
			t.Errorf("slots %v of %s", slots, held[0].Key().Partition)
		}
		for _, c := range wire.Sent() {
			if c.Op != "UpdateItem" {
				t.Errorf("%s: records of dynamo-dlm do not say how many slots there are", c.Op)
			}
		}
		if _, err := s.TryAcquire(t.Context()); !errors.Is(err, leasehold.ErrHeld) {
			t.Errorf("a fourth: %v", err)
		}
		var unsupported *leasehold.UnsupportedError
		if err := s.Resize(t.Context(), 4); !errors.As(err, &unsupported) || *unsupported != (leasehold.UnsupportedError{Table: "dlm", Layout: "dynamo-dlm", Feature: "Resize"}) {
			t.Errorf("resize: %v", err)
		}
		w.Release(other)
		dead, _ := w.Client(cfg)
		if _, err := dead.Acquire(t.Context(), "gpu", leasehold.WithSortKey("1"), leasehold.WithoutRenewal()); err != nil {
			t.Fatal(err)
		}
		if holders, err := s.Holders(t.Context()); err != nil || len(holders) != 3 {
			t.Errorf("%d holders: %v", len(holders), err)
		}
		lab.Elapse(30 * time.Second) // dynamo-dlm leaves the records of its dead in place
		if holders, err := s.Holders(t.Context()); err != nil || len(holders) != 2 {
			t.Errorf("%d holders, one of whom is dead: %v", len(holders), err)
		}
		closed(t, a, b)
		_ = dead.Close(t.Context())
	})
}

func TestADeadHolderIsShownUntilItsPermitIsGrantedOrBroken(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		dead, _ := w.Client(lab.Config())
		c, _ := w.Client(lab.Config())
		for range 3 {
			takePermit(w, newSemaphore(w, dead, "gpu", 3), leasehold.WithoutRenewal())
		}
		s := newSemaphore(w, c, "gpu", 3)
		resizeTo(w, s, 1)
		lab.Elapse(time.Hour)
		shown := func(want int) []leasehold.Record {
			t.Helper()
			holders, err := s.Holders(t.Context())
			if err != nil || len(holders) != want {
				t.Fatalf("%d holders, want %d: %v", len(holders), want, err)
			}
			return holders
		}
		shown(3)
		lock := takePermit(w, s)
		for _, r := range shown(3) {
			if r.Grant == lock.Record().Grant {
				continue
			}
			if err := c.Break(t.Context(), r); err != nil {
				t.Error(err)
			}
		}
		shown(1)
		closed(t, c, dead)
	})
}

func TestHoldersLeavesOutWhatASharedLeaseHasFreed(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		a, _ := w.Client(lab.SharedConfig())
		b, _ := w.Client(lab.Config())
		takePermits(w, newSemaphore(w, a, "gpu", 3), 2)
		s := newSemaphore(w, b, "gpu", 3)
		takePermit(w, s)
		if holders, err := s.Holders(t.Context()); err != nil || len(holders) != 3 {
			t.Errorf("%d holders: %v", len(holders), err)
		}
		closed(t, a)
		if holders, err := s.Holders(t.Context()); err != nil || len(holders) != 1 {
			t.Errorf("%d holders: %v", len(holders), err)
		}
		closed(t, b)
	})
}

func TestHoldersLeavesOutWhoIsDeadByAClockThatIsVouchedFor(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		cfg := lab.Config()
		cfg.MaxSkew = time.Second
		dead, _ := w.Client(cfg)
		takePermit(w, newSemaphore(w, dead, "gpu", 3), leasehold.WithoutRenewal())
		c, _ := w.Client(cfg)
		s := newSemaphore(w, c, "gpu", 3)
		for _, at := range []struct {
			after time.Duration
			want  int
		}{{20 * time.Second, 1}, {time.Second + time.Millisecond, 0}} {
			lab.Elapse(at.after)
			if holders, err := s.Holders(t.Context()); err != nil || len(holders) != at.want {
				t.Errorf("%v later: %d holders: %v", at.after, len(holders), err)
			}
		}
		closed(t, dead, c)
	})
}

func TestHoldersGoesOnPastADamagedRecord(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, _ := w.Client(lab.Config())
		s := newSemaphore(w, c, "gpu", 100)
		for i := range 100 {
			if i%2 == 0 {
				w.Put(map[string]types.AttributeValue{"key": lab.Str(fmt.Sprintf("gpu/%d", i))})
			}
		}
		lock := takePermit(w, s)
		holders, err := s.Holders(t.Context())
		var bad *leasehold.RecordError
		if len(holders) != 1 || holders[0].Grant != lock.Record().Grant || !errors.As(err, &bad) {
			t.Errorf("%d holders, error %v", len(holders), err)
		}
		closed(t, c)
	})
}

func TestAPermitThatAnotherRecordIsInTheWayOfIsToldOf(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		other, _ := w.Client(lab.Config())
		slot := takePermit(w, newSemaphore(w, other, "jobs/1", 2)) // its row is the key of a permit of jobs
		var told []leasehold.Event
		var log bytes.Buffer
		cfg := lab.Config()
		cfg.Logger = slog.New(slog.NewTextHandler(&log, nil))
		cfg.OnEvent = func(_ context.Context, e leasehold.Event) {
			if e.Kind == leasehold.EventWaitError {
				told = append(told, e)
			}
		}
		c, _ := w.Client(cfg)
		jobs := newSemaphore(w, c, "jobs", 2)
		held := takePermit(w, jobs)
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		_, waited := jobs.Acquire(ctx)
		_, tried := jobs.TryAcquire(t.Context())
		_, holders := jobs.Holders(t.Context())
		for what, err := range map[string]error{"a wait": waited, "a try": tried, "holders": holders} {
			if !errors.Is(err, leasehold.ErrRecord) || !strings.Contains(err.Error(), "jobs/1 in table locks") || strings.Contains(err.Error(), "\n") {
				t.Errorf("%s: %v", what, err)
			}
			if what != "holders" && !errors.Is(err, leasehold.ErrHeld) {
				t.Errorf("%s: %v", what, err)
			}
		}
		if len(told) == 0 || told[0].Key.Partition != "jobs/1" {
			t.Errorf("told %v", told)
		} else if op := (*leasehold.OpError)(nil); !errors.Is(told[0].Err, leasehold.ErrRecord) || errors.As(told[0].Err, &op) {
			t.Errorf("told that a request had failed: %v", told[0].Err)
		}
		if log := log.String(); !strings.Contains(log, "level=WARN") || !strings.Contains(log, "jobs/1") {
			t.Errorf("log %s", log)
		}
		w.Release(held)
		w.Release(slot)
	})
}
