package leasehold_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/lab"
	"github.com/leasehold-go/leasehold/rwlock"
)

// carried is an observation as another process gets it.
func carried(t *testing.T, o leasehold.Observation) leasehold.Observation {
	t.Helper()
	b, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	var got leasehold.Observation
	if err := json.Unmarshal(b, &got); err != nil {
		t.Fatalf("%s: %v", b, err)
	}
	return got
}

func TestWhatAHeldErrorObservedIsWorthALeaseWhoeverHolds(t *testing.T) {
	for name, cfg := range map[string]leasehold.Config{"its own lease": lab.Config(), "a shared lease": lab.SharedConfig()} {
		t.Run(name, func(t *testing.T) {
			lab.InBubble(t, func(t *testing.T, w *lab.World) {
				a, wire := w.Client(cfg)
				lock := w.Acquire(a, "job")
				wire.SetFault(lab.Cut)
				_, try := a.TryAcquire(t.Context(), "job")
				_, one := a.AcquireAny(t.Context(), leasehold.Keys("job"), leasehold.NoWait())
				ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
				defer cancel()
				_, wait := a.Acquire(ctx, "job")
				lab.Elapse(20 * time.Second)
				for call, err := range map[string]error{"try": try, "one of several": one, "wait": wait} {
					var held *leasehold.HeldError
					if !errors.As(err, &held) || held.Observation == (leasehold.Observation{}) {
						t.Errorf("%s: %v, observed %+v", call, err, held)
						continue
					}
					b, _ := w.Client(lab.Config())
					if err := b.ImportObservations(0, leasehold.BootObservation(b, carried(t, held.Observation), 20*time.Second)); err != nil {
						t.Error(err)
					}
					if call != "try" {
						continue
					}
					next, err := b.TryAcquire(t.Context(), "job")
					if err != nil {
						t.Fatalf("a lease after the error: %v", err)
					}
					w.Release(next)
				}
				_ = lock.Release(t.Context())
				_ = a.Close(t.Context())
			})
		})
	}
}

func TestAnObservationOfNothingIsCarriedAndImportedAsNothing(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		a, _ := w.Client(lab.Config())
		locks, err := rwlock.New(a, "job")
		if err != nil {
			t.Fatal(err)
		}
		lock, err := locks.AcquireWrite(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		_, err = locks.AcquireRead(t.Context(), leasehold.NoWait())
		var held *leasehold.HeldError
		if !errors.As(err, &held) || held.Observation != (leasehold.Observation{}) {
			t.Fatalf("%v, observed %+v", err, held)
		}
		b, _ := w.Client(lab.Config())
		if err := b.ImportObservations(time.Second, carried(t, held.Observation)); err != nil {
			t.Error(err)
		}
		if all := b.Observations(); len(all) > 0 {
			t.Errorf("imported: %v", all)
		}
		w.Release(lock)
	})
}

func TestAnObservationByAClockThatIsNotKnownHereCountsFromItsArrival(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		a, wire := w.Client(lab.Config())
		dead := w.Acquire(a, "job")
		wire.SetFault(lab.Cut)
		b, _ := w.Client(lab.Config())
		var o leasehold.Observation
		if err := json.Unmarshal([]byte(`{"key":"job","version":"`+dead.Record().Version+
			`","leaseMs":20000,"since":"2000-01-01T00:00:00Z","boot":"another","bootMs":1}`), &o); err != nil {
			t.Fatal(err)
		}
		if err := b.ImportObservations(0, o); err != nil {
			t.Fatal(err)
		}
		lab.Elapse(20*time.Second - time.Millisecond)
		if _, err := b.TryAcquire(t.Context(), "job"); !errors.Is(err, leasehold.ErrHeld) {
			t.Fatalf("before a lease has passed here: %v", err)
		}
		lab.Elapse(time.Millisecond)
		lock, err := b.TryAcquire(t.Context(), "job")
		if err != nil {
			t.Fatalf("a lease after its arrival: %v", err)
		}
		w.Release(lock)
		_ = dead.Release(t.Context())
	})
}

func TestAnObservationIsNeverOlderForBeingCarried(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		a, _ := w.Client(lab.Config())
		b, _ := w.Client(lab.Config())
		dead := w.Acquire(a, "job", leasehold.WithoutRenewal())
		lab.Elapse(time.Nanosecond)
		_, err := b.TryAcquire(t.Context(), "job")
		var held *leasehold.HeldError
		if !errors.As(err, &held) {
			t.Fatal(err)
		}
		c, _ := w.Client(lab.Config())
		if err := c.ImportObservations(0, carried(t, held.Observation)); err != nil {
			t.Fatal(err)
		}
		lab.Elapse(20*time.Second - time.Nanosecond)
		if _, err := c.TryAcquire(t.Context(), "job"); !errors.Is(err, leasehold.ErrHeld) {
			t.Errorf("before a lease has passed: %v", err)
		}
		lab.Elapse(time.Millisecond)
		lock, err := c.TryAcquire(t.Context(), "job")
		if err != nil {
			t.Fatal(err)
		}
		w.Release(lock)
		_ = dead.Release(t.Context())
	})
}

func TestAnObservationOutlivesItsProcess(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		a, wire := w.Client(lab.Config())
		dead := w.Acquire(a, "job")
		wire.SetFault(lab.Cut)
		first, _ := w.Client(lab.Config())
		_, err := first.TryAcquire(t.Context(), "job")
		var held *leasehold.HeldError
		if !errors.As(err, &held) {
			t.Fatal(err)
		}
		b, err := json.Marshal(first.Observations())
		if err != nil {
			t.Fatal(err)
		}
		var seen []leasehold.Observation
		if err := json.Unmarshal(b, &seen); err != nil {
			t.Fatal(err)
		}
		for _, tc := range []struct {
			name string
			ago  time.Duration
			want error
		}{
			{"a lease ago by the boot clock", 20 * time.Second, nil},
			{"just now", 0, leasehold.ErrHeld},
		} {
			second, _ := w.Client(lab.Config())
			if err := second.ImportObservations(0, leasehold.BootObservation(second, seen[0], tc.ago)); err != nil {
				t.Fatal(err)
			}
			lock, err := second.TryAcquire(t.Context(), "job")
			if !errors.Is(err, tc.want) {
				t.Errorf("%s: %v", tc.name, err)
			}
			if lock != nil {
				w.Release(lock)
				w.Update("job", map[string]types.AttributeValue{"isReleased": nil})
			}
		}
		_ = dead.Release(t.Context())
	})
}

func TestAnObservationOfAnotherHostIsMadeYoungerByTheSkew(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		a, wire := w.Client(lab.Config())
		dead := w.Acquire(a, "job")
		wire.SetFault(lab.Cut)
		o := leasehold.Observation{
			Key: leasehold.Key{Partition: "job"}, Version: dead.Record().Version, Lease: 20 * time.Second,
			Since: time.Now().Add(-21 * time.Second),
		}
		for _, tc := range []struct {
			skew time.Duration
			want error
		}{{0, leasehold.ErrHeld}, {2 * time.Second, leasehold.ErrHeld}, {time.Second, nil}} {
			b, _ := w.Client(lab.Config())
			if err := b.ImportObservations(tc.skew, o); err != nil {
				t.Fatal(err)
			}
			lock, err := b.TryAcquire(t.Context(), "job")
			if !errors.Is(err, tc.want) {
				t.Errorf("skew %v: %v", tc.skew, err)
			}
			if lock != nil {
				w.Release(lock)
			}
		}
		_ = dead.Release(t.Context())
	})
}

// A machine that starts with a wrong clock is set right a moment later. What it has
// seen by then is not older for it, to machines whose clocks were right all along.
func TestAnObservationIsAsOldAsItIsThoughSomebodyHasSetTheWallClock(t *testing.T) {
	const day = 24 * time.Hour
	for name, set := range map[string]time.Duration{"forward": day, "back": -day} {
		t.Run(name, func(t *testing.T) {
			lab.InBubble(t, func(t *testing.T, w *lab.World) {
				a, wire := w.Client(lab.Config())
				holder := w.Acquire(a, "job", leasehold.WithoutRenewal())
				k := &lab.Jumps{}
				k.Wall.Store(int64(-set))
				watcher, _ := w.Client(lab.Config(), k.Edit)
				_, err := watcher.TryAcquire(t.Context(), "job")
				var held *leasehold.HeldError
				if !errors.As(err, &held) {
					t.Fatal(err)
				}
				k.Wall.Store(0)
				time.Sleep(10 * time.Second)
				_, err = watcher.TryAcquire(t.Context(), "job")
				if !errors.As(err, &held) {
					t.Fatal(err)
				}
				for what, seen := range map[string]leasehold.Observation{"of a client": watcher.Observations()[0], "of an error": held.Observation} {
					if age := time.Since(seen.Since); age != 10*time.Second {
						t.Errorf("%s: made %v ago, want 10s", what, age)
					}
				}
				wire.SetFault(lab.Cut)
				b, _ := w.Client(lab.Config())
				seen := held.Observation
				elsewhere := leasehold.Observation{Key: seen.Key, Version: seen.Version, Lease: seen.Lease, Since: seen.Since}
				if err := b.ImportObservations(time.Second, elsewhere); err != nil {
					t.Fatal(err)
				}
				time.Sleep(10 * time.Second) // the lease is over; the observation is one second younger
				if _, err := b.TryAcquire(t.Context(), "job"); !errors.Is(err, leasehold.ErrHeld) {
					t.Errorf("error %v", err)
				}
				time.Sleep(time.Second)
				next, err := b.TryAcquire(t.Context(), "job")
				if err != nil {
					t.Fatal(err)
				}
				w.Release(next)
				_ = holder.Release(t.Context())
			})
		})
	}
}

func TestWhichObservationIsImported(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		a, _ := w.Client(lab.Config())
		lock := w.Acquire(a, "job", leasehold.WithoutRenewal())
		seen := leasehold.Observation{Key: lock.Key(), Version: lock.Record().Version, Lease: 20 * time.Second}
		older := leasehold.Observation{Key: lock.Key(), Version: "older", Lease: 20 * time.Second, Since: time.Now().Add(-time.Hour)}
		b, _ := w.Client(lab.Config())
		if _, err := b.TryAcquire(t.Context(), "job"); !errors.Is(err, leasehold.ErrHeld) {
			t.Fatal(err)
		}
		since := func() time.Duration {
			t.Helper()
			all := b.Observations()
			if len(all) != 1 || all[0].Version != seen.Version {
				t.Fatalf("observations %v", all)
			}
			return time.Since(all[0].Since)
		}
		for _, tc := range []struct {
			name string
			o    leasehold.Observation
			ago  time.Duration
			want time.Duration
		}{
			{"of another version", older, time.Hour, 0},
			{"an older one", seen, 10 * time.Second, 10 * time.Second},
			{"a younger one", seen, 5 * time.Second, 10 * time.Second},
		} {
			tc.o.Since = time.Now().Add(-tc.ago - time.Second)
			if err := b.ImportObservations(time.Second, tc.o); err != nil {
				t.Fatal(err)
			}
			if got := since(); (got - tc.want).Abs() > time.Second {
				t.Errorf("%s: seen %v ago, want %v", tc.name, got, tc.want)
			}
		}
		w.Release(lock)
	})
}

func TestAnObservationOfAnotherBootIsNoOlderThanItsArrivalWithoutASkew(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		a, _ := w.Client(lab.Config())
		lock := w.Acquire(a, "job", leasehold.WithoutRenewal())
		var o leasehold.Observation
		if err := json.Unmarshal([]byte(`{"key":"job","version":"`+lock.Record().Version+
			`","leaseMs":20000,"since":"2000-01-01T00:00:00Z","boot":"another","bootMs":-3600000}`), &o); err != nil {
			t.Fatal(err)
		}
		b, _ := w.Client(lab.Config())
		if err := b.ImportObservations(0, o); err != nil {
			t.Fatal(err)
		}
		if _, err := b.TryAcquire(t.Context(), "job"); !errors.Is(err, leasehold.ErrHeld) {
			t.Errorf("error %v", err)
		}
		w.Release(lock)
	})
}
