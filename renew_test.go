package leasehold_test

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/lab"
	"github.com/leasehold-go/leasehold/internal/machine"
)

func TestOneLostReplyOfARenewalLosesNothing(t *testing.T) { // dynamolock, awslabs, python: heartbeats stop for good
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, wire := w.Client(lab.Config())
		lock := w.Acquire(c, "job")
		wire.SetFault(lab.Once(lab.Call.Renews, lab.LoseReply))
		lab.Elapse(2 * time.Minute)
		if err := lock.Err(); err != nil {
			t.Fatalf("lost: %v", err)
		}
		if lock.Record().Version != lab.Text(w.Item("job"), "recordVersionNumber") {
			t.Error("the client does not know its own version")
		}
		w.Release(lock)
	})
}

func TestARetriedRenewalCarriesANewVersion(t *testing.T) { // dynamolock: the same version, extending only its own belief
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, wire := w.Client(lab.Config())
		lock := w.Acquire(c, "job")
		seen := map[string]bool{}
		var mu sync.Mutex
		wire.SetFault(func(r *lab.Request) (*http.Response, error) {
			if r.Renews() {
				_, err := r.Send()
				mu.Lock()
				defer mu.Unlock()
				v := lab.Text(w.Item("job"), "recordVersionNumber")
				if seen[v] {
					t.Errorf("version %s was sent twice", v)
				}
				seen[v] = true
				return nil, errors.Join(err, lab.ErrReset)
			}
			return r.Send()
		})
		lab.Elapse(16 * time.Second)
		if len(seen) < 5 {
			t.Errorf("%d attempts", len(seen))
		}
		wire.SetFault(nil)
		_ = lock.Release(t.Context())
	})
}

func TestRenewalsGoOnAfterTrouble(t *testing.T) { // python_dynamodb_lock never heartbeats again after "in danger"
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, wire := w.Client(lab.Config())
		lock := w.Acquire(c, "job")
		for range 5 {
			wire.SetFault(lab.Cut)
			lab.Elapse(11 * time.Second)
			wire.SetFault(nil)
			lab.Elapse(6 * time.Second)
			if err := lock.Err(); err != nil {
				t.Fatalf("lost: %v", err)
			}
		}
		w.Release(lock)
	})
}

func TestNoRenewalIsSentAfterTrustHasEnded(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, wire := w.Client(lab.Config())
		lock := w.Acquire(c, "job")
		ended := make(chan struct{})
		context.AfterFunc(lock.Context(), func() { close(ended) })
		wire.SetFault(func(r *lab.Request) (*http.Response, error) {
			select {
			case <-ended:
				if r.Renews() {
					t.Errorf("renewed after the end")
				}
			default:
			}
			return lab.Refusal(500, "InternalServerError"), nil
		})
		lab.Elapse(5 * time.Minute)
		_ = lock.Release(t.Context())
	})
}

// wrapped is a DB between a client and the SDK, which may not look at the
// deadline of what it is given.
type wrapped struct {
	machine.DB
	update func() error
	get    func()
}

func (d wrapped) UpdateItem(ctx context.Context, in *dynamodb.UpdateItemInput, o ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error) {
	if err := d.update(); err != nil {
		return nil, err
	}
	return d.DB.UpdateItem(ctx, in, o...)
}

func (d wrapped) GetItem(ctx context.Context, in *dynamodb.GetItemInput, o ...func(*dynamodb.Options)) (*dynamodb.GetItemOutput, error) {
	d.get()
	return d.DB.GetItem(ctx, in, o...)
}

func TestNoRenewalIsSentIfTrustEndsWhileItIsPrepared(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		k := &lab.Jumps{}
		held, paused, renewed := false, false, 0
		c := w.ClientOf(wrapped{
			DB: w.Connect([]lab.Edit{k.Edit}),
			update: func() error {
				switch {
				case !held:
					return nil
				case paused:
					t.Error("renewed after the end of trust")
				}
				renewed++
				return lab.ErrReset
			},
			get: func() { // to settle what has had no answer
				paused = true
				k.Boot.Store(int64(2 * time.Hour)) // suspended: no timer has run
			},
		}, lab.Config())
		lock := w.Acquire(c, "job", leasehold.WithoutRenewal(), leasehold.WithLease(time.Hour))
		held = true
		if err := lock.Renew(t.Context()); !errors.Is(err, leasehold.ErrLost) {
			t.Errorf("renew: %v", err)
		}
		if !paused || renewed == 0 {
			t.Errorf("the record was not read after %d attempts", renewed)
		}
		held = false
		_ = lock.Release(t.Context())
	})
}

func TestThousandsOfLocksAreRenewedInTime(t *testing.T) { // dynamolock: serial, half of them expire
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		n := 2 * lab.Crowd()
		c, wire := w.Client(lab.Config())
		locks := w.AcquireMany(c, "job", n)
		slow := 10 * time.Second / time.Duration(n) // one after another they take two periods
		var now, most atomic.Int64
		wire.SetFault(func(r *lab.Request) (*http.Response, error) {
			most.Store(max(most.Load(), now.Add(1)))
			defer now.Add(-1)
			time.Sleep(slow)
			return r.Send()
		})
		lab.Elapse(time.Minute)
		for _, l := range locks {
			if l.Err() != nil {
				t.Fatalf("%v: %v", l.Key(), l.Err())
			}
		}
		if m := most.Load(); m > 128 {
			t.Errorf("%d renewals at a time", m)
		}
		if s := c.Stats(); s.Held != n || s.MinRemaining < 10*time.Second {
			t.Errorf("stats %+v", s)
		}
		if err := c.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

func TestAHungRenewalDelaysNoOther(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, wire := w.Client(lab.Config())
		a, b := w.Acquire(c, "a"), w.Acquire(c, "b")
		wire.SetFault(func(r *lab.Request) (*http.Response, error) {
			if r.Renews() && bytes.Contains(r.Body, []byte(`"S":"a"`)) {
				return lab.Cut(r)
			}
			return r.Send()
		})
		lab.Elapse(time.Minute)
		if a.Err() == nil || b.Err() != nil {
			t.Errorf("a: %v, b: %v", a.Err(), b.Err())
		}
		wire.SetFault(nil)
		_ = a.Release(t.Context())
		w.Release(b)
	})
}

func TestARenewalThatHangsIsRepeatedWithinTwoSeconds(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, wire := w.Client(lab.Config())
		lock := w.Acquire(c, "job", leasehold.WithoutRenewal())
		wire.SetFault(lab.Once(lab.Call.Renews, lab.Cut))
		began := time.Now()
		if err := lock.Renew(t.Context()); err != nil {
			t.Error(err)
		}
		if took := time.Since(began); took < 2*time.Second || took > 2100*time.Millisecond {
			t.Errorf("took %v", took)
		}
		w.Release(lock)
	})
}

func TestAThrottledRenewalIsRepeatedAtOnce(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, wire := w.Client(lab.Config())
		lock := w.Acquire(c, "job")
		var sent []time.Time
		wire.SetFault(func(r *lab.Request) (*http.Response, error) {
			if r.Renews() {
				if sent = append(sent, time.Now()); len(sent) == 1 {
					return lab.Refusal(400, "TransactionConflictException"), nil
				}
			}
			return r.Send()
		})
		lab.Elapse(6 * time.Second)
		if len(sent) < 2 || !sent[1].Equal(sent[0]) {
			t.Errorf("sent at %v", sent)
		}
		w.Release(lock)
	})
}

func TestARenewalComesThroughAfterAHundredWithoutAnAnswer(t *testing.T) {
	for name, landed := range map[string]int{"none has landed": 0, "the first has landed": 1, "the thirtieth has landed": 30} {
		t.Run(name, func(t *testing.T) {
			lab.InBubble(t, func(t *testing.T, w *lab.World) {
				c, wire := w.Client(lab.Config())
				lock := w.Acquire(c, "job", leasehold.WithoutRenewal(), leasehold.WithLease(time.Hour))
				n := 0
				wire.SetFault(func(r *lab.Request) (*http.Response, error) {
					if !r.Renews() {
						return r.Send()
					}
					if n++; n == landed {
						_, _ = r.Send()
					}
					return nil, lab.ErrReset
				})
				ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
				defer cancel()
				if err := lock.Renew(ctx); !errors.Is(err, leasehold.ErrUnknownOutcome) {
					t.Errorf("no answer: %v", err)
				}
				synctest.Wait()
				if n < 110 {
					t.Fatalf("%d attempts", n)
				}
				wire.SetFault(nil)
				if err := lock.Renew(t.Context()); err != nil {
					t.Errorf("answered: %v", err)
				}
				w.Release(lock)
			})
		})
	}
}

func TestWhoIsToldOfARenewalMayCommitOrRelease(t *testing.T) {
	for name, do := range map[string]func(ctx context.Context, l *leasehold.Lock) error{
		"commit":  func(ctx context.Context, l *leasehold.Lock) error { return l.Commit(ctx, nil) },
		"renew":   func(ctx context.Context, l *leasehold.Lock) error { return l.Renew(ctx) },
		"release": func(ctx context.Context, l *leasehold.Lock) error { return l.Release(ctx) },
	} {
		for kind, happens := range map[leasehold.EventKind]func(w *lab.World, wire *lab.Wire){
			leasehold.EventRenewed:    func(*lab.World, *lab.Wire) {},
			leasehold.EventRenewError: func(_ *lab.World, wire *lab.Wire) { wire.SetFault(lab.Once(lab.Call.Renews, lab.Out)) },
			leasehold.EventThrottled:  func(_ *lab.World, wire *lab.Wire) { wire.SetFault(lab.Once(lab.Call.Renews, lab.Throttled)) },
			leasehold.EventLost:       func(w *lab.World, _ *lab.Wire) { w.Delete("job") },
		} {
			t.Run(name+", "+string(kind), func(t *testing.T) {
				lab.InBubble(t, func(t *testing.T, w *lab.World) {
					var held atomic.Pointer[leasehold.Lock]
					var told atomic.Bool
					cfg := lab.Config()
					cfg.OnEvent = func(ctx context.Context, e leasehold.Event) {
						if e.Kind != kind || told.Swap(true) {
							return
						}
						began := time.Now()
						if err := do(ctx, held.Load()); (err != nil) != (kind == leasehold.EventLost) || err != nil && !errors.Is(err, leasehold.ErrLost) {
							t.Errorf("%v", err)
						}
						if took := time.Since(began); took > 0 {
							t.Errorf("took %v", took)
						}
					}
					c, wire := w.Work().Client(cfg)
					held.Store(w.Acquire(c, "job"))
					happens(w, wire)
					lab.Elapse(6 * time.Second)
					if !told.Load() {
						t.Error("not told")
					}
					_ = c.Close(t.Context())
				})
			})
		}
	}
}
