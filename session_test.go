package leasehold_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/layout"
)

// sharedConfig has all locks of a client renewed as one.
func sharedConfig() leasehold.Config {
	cfg := config()
	cfg.SharedLease = true
	return cfg
}

// sessions returns the keys of the session rows in the table.
func (w *world) sessions() []string {
	w.t.Helper()
	var keys []string
	for _, item := range w.scan() {
		if key := textOf(item, "key"); strings.HasPrefix(key, "leasehold/session/") {
			keys = append(keys, key)
		}
	}
	return keys
}

func (c call) renewsSession() bool {
	return c.renews() && strings.Contains(string(c.body), "leasehold/session/")
}

func TestTenThousandLocksCostOneRenewalPerPeriod(t *testing.T) {
	locks := 10_000
	if raceEnabled { // make check runs it without the detector too
		locks = 1_000
	}
	inBubble(t, func(t *testing.T, w *world) {
		holder, holderWire := w.client(sharedConfig())
		var first *leasehold.Lock
		for i := range locks {
			lock := w.acquire(holder, fmt.Sprint("lock/", i))
			if i == 0 {
				first = lock
			}
		}
		holderWire.sent()
		elapse(60 * time.Second) // three leases
		sent := holderWire.sent()
		for _, c := range sent {
			if !c.renewsSession() {
				t.Fatalf("a %s besides the session's renewals: %s", c.op, c.body)
			}
		}
		if len(sent) < 11 || len(sent) > 13 {
			t.Errorf("%d renewals in 60 s, one each 5 s expected", len(sent))
		}

		// The holder dies. Each lock is taken over by somebody who waits for it.
		cfg := sharedConfig()
		cfg.PollMin, cfg.PollMax = 5*time.Second, 5*time.Second
		heir, _ := w.client(cfg)
		holderWire.setFault(cut)
		died := time.Now()
		lastRenewed := died // at the latest
		var wg sync.WaitGroup
		var mu sync.Mutex
		earliest, latest := time.Hour, time.Duration(0)
		for i := range locks {
			wg.Go(func() {
				lock := w.acquire(heir, fmt.Sprint("lock/", i))
				mu.Lock()
				defer mu.Unlock()
				earliest, latest = min(earliest, time.Since(lastRenewed)), max(latest, time.Since(died))
				if dead, ok := lock.TookOver(); !ok || dead.Token >= lock.Token() {
					t.Errorf("lock %d took over %v", i, dead)
				}
			})
		}
		wg.Wait()
		// The session's last renewal was up to a period before its death, and
		// was first seen after it.
		if earliest < 20*time.Second || latest > 30*time.Second {
			t.Errorf("taken over from %v to %v after the death of the holder", earliest, latest)
		}
		if err := first.Err(); !errors.Is(err, leasehold.ErrLost) {
			t.Errorf("the dead holder believes: %v", err)
		}
		if err := heir.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

func TestALostSessionEndsEveryLockAtOnce(t *testing.T) {
	for name, loss := range map[string]func(w *world, row string){
		"deleted": func(w *world, row string) { w.delete(row) },
		"marked dead": func(w *world, row string) {
			w.update(row, map[string]types.AttributeValue{"dead": str("1"), "recordVersionNumber": str("v")})
		},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, w *world) {
				c, _ := w.client(sharedConfig())
				a, b := w.acquire(c, "a"), w.acquire(c, "b")
				loss(w, w.sessions()[0])
				elapse(5 * time.Second) // the next renewal
				for _, lock := range []*leasehold.Lock{a, b} {
					var lost *leasehold.LostError
					if !errors.As(lock.Err(), &lost) || lost.Reason != leasehold.LostBroken {
						t.Errorf("%v: %v", lock.Key(), lock.Err())
					}
				}
				again := w.acquire(c, "c")
				if again.Err() != nil || len(c.Held()) != 1 {
					t.Errorf("no new session: %v, %d held", again.Err(), len(c.Held()))
				}
				w.release(again)
			})
		})
	}
}

func TestTrustUnderASessionEndsWithTheSessionsLease(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		c, wire := w.client(sharedConfig())
		lock := w.acquire(c, "job")
		wire.setFault(cut)
		began := time.Now()
		if left := time.Until(lock.TrustedUntil()); left > 18*time.Second {
			t.Errorf("trusted for another %v", left)
		}
		<-lock.Context().Done()
		if held := time.Since(began); held > 18*time.Second {
			t.Errorf("believed for %v after the last renewal", held)
		}
		var lost *leasehold.LostError
		if !errors.As(lock.Err(), &lost) || lost.Reason != leasehold.LostExpired {
			t.Errorf("lost: %v", lock.Err())
		}
	})
}

func TestALockUnderASessionIsTouched(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		c, _ := w.client(sharedConfig())
		lock := w.acquire(c, "job")
		if ms := textOf(w.item("job"), "leaseDuration"); ms != "3600000" {
			t.Errorf("a peer waits for %s ms", ms)
		}
		before := textOf(w.item("job"), "recordVersionNumber")
		elapse(20 * time.Minute)
		if textOf(w.item("job"), "recordVersionNumber") == before {
			t.Error("not touched within twenty minutes")
		}
		elapse(3 * time.Hour)
		if err := lock.Err(); err != nil {
			t.Error(err)
		}
		w.release(lock)
		_ = c.Close(t.Context())
	})
}

func TestAnExpiryWarningUnderASessionIsGivenOnceEachTimeTheSessionRunsShort(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		c, wire := w.client(sharedConfig())
		given := make(chan time.Duration, 9)
		lock := w.acquire(c, "job", leasehold.WithExpiryWarning(9*time.Second, func(l *leasehold.Lock) {
			given <- time.Until(l.TrustedUntil())
		}))
		for range 2 {
			wire.setFault(cut)
			elapse(10 * time.Second)
			wire.setFault(nil)
			elapse(6 * time.Second)
		}
		if len(given) != 2 {
			t.Fatalf("%d warnings in two such times", len(given))
		}
		if left := <-given; left > 9*time.Second || left < 8*time.Second {
			t.Errorf("given with %v left", left)
		}
		if err := lock.Err(); err != nil {
			t.Error(err)
		}
		_ = c.Close(t.Context())
	})
}

func TestASessionWhoseCreationHadNoAnswerIsNeverUsed(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		c, wire := w.client(sharedConfig())
		wire.setFault(once(call.grants, loseReply))
		lock := w.acquire(c, "job")
		elapse(time.Second)
		if rows := w.sessions(); len(rows) != 1 || !strings.HasSuffix(lock.Record().Owner, strings.TrimPrefix(rows[0], "leasehold/session")) {
			t.Errorf("sessions %q, owner %s", rows, lock.Record().Owner)
		}
		_ = c.Close(t.Context())
	})
}

func TestAListingPassesOverSessions(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		c, _ := w.client(sharedConfig())
		w.acquire(c, "job")
		n := 0
		for r, err := range c.List(t.Context()) {
			if n++; err != nil || r.Key.Partition != "job" {
				t.Errorf("listed %v: %v", r.Key, err)
			}
		}
		if n != 1 {
			t.Errorf("%d records", n)
		}
		if _, err := c.Get(t.Context(), w.sessions()[0]); !errors.Is(err, leasehold.ErrBadRecord) {
			t.Errorf("a session read as a lock: %v", err)
		}
		_ = c.Close(t.Context())
	})
}

func TestWhatASharedLeaseCannotDo(t *testing.T) {
	cfg := sharedConfig()
	cfg.Layout = layout.AWSLabs{}
	if _, err := leasehold.New(newWorld(t).db, cfg); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("awslabs: %v", err)
	}
	inBubble(t, func(t *testing.T, w *world) {
		c, wire := w.client(sharedConfig())
		for _, o := range []leasehold.AcquireOption{leasehold.WithLease(time.Minute), leasehold.WithoutRenewal()} {
			if _, err := c.Acquire(t.Context(), "job", o); !errors.Is(err, errors.ErrUnsupported) {
				t.Errorf("%T: %v", o, err)
			}
		}
		if sent := wire.sent(); len(sent) != 0 {
			t.Errorf("%d requests for options that cannot be had", len(sent))
		}
		if _, err := w.acquire(c, "job").Detach(); !errors.Is(err, errors.ErrUnsupported) {
			t.Errorf("Detach: %v", err)
		}
		_ = c.Close(t.Context())
	})
}

func TestTheFirstLookAfterAPauseIsToldOfTheSession(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		c, _ := w.client(sharedConfig())
		began := time.Now()
		var asleep time.Duration // what the monotonic clock did not see
		leasehold.SetClocks(c, func() (mono, boot time.Duration) {
			return time.Since(began), time.Since(began) + asleep
		})
		lock := w.acquire(c, "job")
		asleep = 19 * time.Second // no timer knows of it
		if lock.Context().Err() == nil {
			t.Error("a lock whose session's lease ended in suspend is believed in")
		}
		_ = c.Close(t.Context())
	})
}

func TestALockGrantedUnderASessionThatEndedMeanwhileIsLost(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		cfg := sharedConfig()
		cfg.Lease = 4 * time.Second
		c, wire := w.client(cfg)
		w.acquire(c, "other")
		wire.setFault(once(call.grants, slow(2900*time.Millisecond)))
		w.delete(w.sessions()[0]) // the session's next renewal comes before the grant's reply
		lock := w.acquire(c, "job")
		if err := lock.Err(); !errors.Is(err, leasehold.ErrLost) {
			t.Errorf("believed in under a session that is gone: %v", err)
		}
		_ = c.Close(t.Context())
	})
}

func TestALateDuplicateOfASessionsCreationBringsNothingBack(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		c, wire := w.client(sharedConfig())
		var again func() (*http.Response, error)
		wire.setFault(once(call.grants, func(_ context.Context, _ call, next func() (*http.Response, error)) (*http.Response, error) {
			again = next
			return next()
		}))
		w.acquire(c, "job")
		row := w.sessions()[0]
		if err := c.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		if _, err := again(); err != nil {
			t.Fatal(err)
		}
		if textOf(w.item(row), "dead") != "1" {
			t.Error("a session came back from the dead")
		}
	})
}

func TestWhatWasResumedIsNotHandedOverToASession(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		first, _ := w.client(config())
		g, err := w.acquire(first, "job").Detach()
		if err != nil {
			t.Fatal(err)
		}
		c, _ := w.client(sharedConfig())
		resumed, err := c.Resume(t.Context(), g)
		if err != nil {
			t.Fatal(err)
		}
		granted := make(chan *leasehold.Lock)
		go func() { granted <- w.acquire(c, "job") }()
		elapse(0)
		w.release(resumed)
		<-granted
		item := w.item("job")
		if id := textOf(item, "session"); id == "" || !strings.HasSuffix(textOf(item, "ownerName"), "/"+id) {
			t.Errorf("a lock of a shared lease that is under no session: %v", item)
		}
		_ = c.Close(t.Context())
	})
}

func TestAnUnsettledAttemptUnderASessionIsUndone(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		c, wire := w.client(sharedConfig())
		w.acquire(c, "other")
		wire.setFault(once(call.grants, slow(time.Hour)))
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := c.Acquire(ctx, "job"); err == nil {
			t.Fatal("granted without a reply")
		}
		elapse(5 * time.Second)
		plain, _ := w.client(config())
		lock, err := plain.TryAcquire(t.Context(), "job")
		if err != nil {
			t.Fatalf("the attempt blocks others: %v", err)
		}
		w.release(lock)
		_ = c.Close(t.Context())
	})
}

func TestNoLockOutlivesTheTrustInItsSessionForTheTimeAnotherIsToldOf(t *testing.T) {
	for name, lose := range map[string]func(w *world, wire *wire){
		"expired": func(_ *world, wire *wire) { wire.setFault(cut); elapse(19 * time.Second) },
		"deleted": func(w *world, _ *wire) { w.delete(w.sessions()[0]); elapse(19 * time.Second) },
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, w *world) {
				told := make(chan struct{})
				cfg := sharedConfig()
				cfg.OnEvent = func(_ context.Context, e leasehold.Event) {
					if e.Kind == leasehold.EventLost {
						<-told // a slow listener
					}
				}
				c, wire := w.client(cfg)
				a, b := w.acquire(c, "a"), w.acquire(c, "b")
				lose(w, wire)
				lost := make(chan error, 2)
				for _, lock := range []*leasehold.Lock{a, b} {
					go func() { lost <- lock.Err() }()
				}
				elapse(0)
				believed := 0
				for range len(lost) {
					if <-lost == nil {
						believed++
					}
				}
				if believed > 0 {
					t.Errorf("%d locks are believed in under a session that has ended", believed)
				}
				close(told)
				elapse(5 * time.Second)
				_ = c.Close(t.Context())
			})
		})
	}
}

func TestNothingIsGrantedUnderASessionWhoseLeaseHasRunOut(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		cfg := sharedConfig()
		cfg.HoldThroughOutage = true
		c, wire := w.client(cfg)
		lock := w.acquire(c, "a")
		wire.setFault(func(ctx context.Context, c call, next func() (*http.Response, error)) (*http.Response, error) {
			if c.renews() {
				return out(ctx, c, next)
			}
			return next()
		})
		elapse(30 * time.Second)
		if err := lock.Err(); err != nil {
			t.Fatalf("not held on to: %v", err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		if got, err := c.Acquire(ctx, "b"); err == nil {
			t.Errorf("granted %v under a session that anybody may mark dead", got.Key())
		}
		wire.setFault(nil)
		elapse(10 * time.Second)
		w.release(w.acquire(c, "b"))
		_ = c.Close(t.Context())
	})
}

func TestASessionThatRanOutIsMarkedDeadByTheNext(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		c, wire := w.client(sharedConfig())
		w.acquire(c, "a")
		row := w.sessions()[0]
		wire.setFault(cut)
		elapse(30 * time.Second)
		wire.setFault(nil)
		lock := w.acquire(c, "b")
		elapse(time.Second)
		if item := w.item(row); textOf(item, "dead") != "1" || item["expiresAt"] == nil {
			t.Errorf("nothing collects the row of the session before: %v", item)
		}
		if err := lock.Err(); err != nil {
			t.Error(err)
		}
		_ = c.Close(t.Context())
	})
}

func TestAGrantIsWaitedForNoLongerThanItsSessionIsTrusted(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		cfg := sharedConfig()
		cfg.Lease = 4 * time.Second
		c, wire := w.client(cfg)
		w.acquire(c, "other")
		former := w.sessions()[0]
		late := once(func(c call) bool { return c.grants() && !strings.Contains(string(c.body), "leasehold/session/") }, slow(2900*time.Millisecond))
		wire.setFault(func(ctx context.Context, c call, next func() (*http.Response, error)) (*http.Response, error) {
			if c.renewsSession() && strings.Contains(string(c.body), former) {
				return hang(ctx)
			}
			return late(ctx, c, next)
		})
		elapse(2 * time.Second)
		lock := w.acquire(c, "job")
		if err := lock.Err(); err != nil || strings.HasSuffix(lock.Record().Owner, strings.TrimPrefix(former, "leasehold/session")) {
			t.Errorf("granted under a session whose lease had run out: %v", err)
		}
		_ = c.Close(t.Context())
	})
}
