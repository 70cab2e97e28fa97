package hold_test

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/lab"
)

// outage returns a fault that applies another fault to all requests for the duration d. Later
// requests succeed.
func outage(d time.Duration, fault lab.Fault) lab.Fault {
	began := time.Now()
	return func(r *lab.Request) (*http.Response, error) {
		if time.Since(began) < d {
			return fault(r)
		}
		return r.Send()
	}
}

// troubles are faults after which a client repeats its release.
var troubles = map[string]lab.Fault{
	"throttled": lab.Throttled, "server error": lab.Out, "connection reset": lab.Drop, "no answer": lab.Cut,
	"reply lost":          lab.LoseReply,
	"credentials expired": lab.Refused("ExpiredTokenException"),
	"access denied":       lab.Refused("AccessDeniedException"),
}

// shortLease returns a configuration with a lease of ten seconds.
func shortLease() leasehold.Config {
	cfg := lab.Config()
	cfg.Lease = 10 * time.Second
	return cfg
}

func TestDoneMarkIsStoredDespiteFailedAttempts(t *testing.T) {
	ways := map[string]func(context.Context, *leasehold.Client, func()) error{
		"Do": func(ctx context.Context, c *leasehold.Client, done func()) error {
			return c.Do(ctx, "job", func(context.Context, *leasehold.Lock) error { done(); return nil }, leasehold.Once("mon"))
		},
		"MarkDone": func(ctx context.Context, c *leasehold.Client, done func()) error {
			lock, err := c.Acquire(ctx, "job", leasehold.Once("mon"))
			if err != nil {
				return err
			}
			done()
			return lock.Release(ctx, leasehold.MarkDone())
		},
	}
	for trouble, fault := range troubles {
		for way, do := range ways {
			t.Run(trouble+", "+way, func(t *testing.T) {
				lab.InBubble(t, func(t *testing.T, w *lab.World) {
					c, wire := w.Client(shortLease())
					other, _ := w.Client(shortLease())
					ctx, cancel := context.WithCancel(t.Context())
					defer cancel()
					var waits <-chan error
					err := do(ctx, c, func() {
						waits = lab.Go(func() error {
							return lab.ErrorOf(other.Acquire(t.Context(), "job", leasehold.Once("mon")))
						})
						wire.SetFault(outage(6*time.Second, fault))
						// Cancel the context of the release. A release without a done mark would
						// then give up after ReleaseGrace, before the end of the outage. But this
						// release must continue, because it stores the done mark.
						cancel()
					})
					lab.WantErr(t, "do", err, nil)
					lab.WantErr(t, "waiter", <-waits, leasehold.ErrDone)
				})
			})
		}
	}
}

func TestMethodDoReturnsErrorIfDoneMarkIsNotStored(t *testing.T) {
	for trouble, fault := range troubles {
		if trouble == "reply lost" {
			continue // a write whose reply is lost was applied, so its mark is stored
		}
		t.Run(trouble, func(t *testing.T) {
			lab.InBubble(t, func(t *testing.T, w *lab.World) {
				c, wire := w.Client(shortLease())
				other, _ := w.Client(shortLease())
				var began time.Time
				err := c.Do(t.Context(), "job", func(context.Context, *leasehold.Lock) error {
					wire.SetFault(fault)
					began = time.Now()
					return nil
				}, leasehold.Once("mon"))
				took := time.Since(began)
				if !errors.As(err, new(*leasehold.OpError)) || errors.Is(err, leasehold.ErrLost) {
					t.Errorf("want an OpError, because the mark is not stored: %v", err)
				}
				lab.WantRange(t, "gave up after", took, 9*time.Second, 14*time.Second)
				w.Release(w.Acquire(other, "job", leasehold.Once("mon")))
			})
		})
	}
}

func TestMethodDoFailsAtOnceIfDynamoDBRefusesDoneMark(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, wire := w.Client(shortLease())
		wire.SetFault(refuseReleases("ValidationException"))
		began := time.Now()
		lab.WantAs[*leasehold.OpError](t, "do", c.Do(t.Context(), "job", func(context.Context, *leasehold.Lock) error { return nil }, leasehold.Once("mon")))
		lab.WantTook(t, "returned after", began, 0, time.Second)
	})
}

func TestCloseStopsRetriesOfReleaseThatStoresDoneMark(t *testing.T) {
	lab.Each(t, map[string]lab.Fault{
		"throttled": lab.Throttled, "no answer": lab.Cut,
	}, func(t *testing.T, w *lab.World, fault lab.Fault) {
		cfg := shortLease()
		cfg.ReleaseGrace = 2 * time.Second
		c, wire := w.Client(cfg)
		ended := lab.Go(func() error {
			return c.Do(t.Context(), "job", func(context.Context, *leasehold.Lock) error {
				wire.SetFault(fault)
				return nil
			}, leasehold.Once("mon"))
		})
		lab.Elapse(time.Second)
		began := time.Now()
		_ = c.Close(w.Within(time.Second))
		lab.WantTook(t, "Close took", began, 0, 2100*time.Millisecond)
		lab.WantFailed(t, "Do", <-ended)
		lab.WantTook(t, "Do returned, after Close began,", began, 0, 2100*time.Millisecond)
		lab.Elapse(5 * time.Second) // let the requests in flight end
		w.WantSilence(wire, time.Hour)
	})
}

// longLease returns a configuration with a lease of 15 minutes. No call of Release waits that
// long, so a failed release is repeated in the background.
func longLease() leasehold.Config {
	cfg := lab.Config()
	cfg.Lease = 15 * time.Minute
	return cfg
}

func TestFailedReleaseIsRepeatedInBackground(t *testing.T) {
	lab.Each(t, troubles, func(t *testing.T, w *lab.World, fault lab.Fault) {
		_, wire, lock := w.Holding(longLease())
		ctx := w.Within(time.Second)
		began := time.Now()
		wire.SetFault(outage(10*time.Second, fault))
		err := lock.Release(ctx)
		if took := time.Since(began); err == nil && !w.IsReleased("job") || took > 2100*time.Millisecond {
			t.Errorf("after %v: %v", took, err)
		}
		lab.Elapse(75*time.Second - time.Since(began)) // pauses between the repeated releases are at most a minute
		w.WantReleased("job")
		w.WantSilence(wire, time.Hour)
	})
}

func TestFailedReleaseIsNotRepeatedForever(t *testing.T) {
	withLease := func(w *lab.World, _ *leasehold.Client, wire *lab.Wire, _ *leasehold.Lock) {
		lab.Elapse(14 * time.Minute)
		lab.WantRange(w.T, "requests in 14 minutes", len(wire.Sent()), 10, 400)
		lab.Elapse(2 * time.Minute)
		w.WantSilence(wire, time.Hour)
	}
	type row struct {
		trouble lab.Fault
		stops   func(w *lab.World, c *leasehold.Client, wire *lab.Wire, lock *leasehold.Lock)
	}
	lab.Each(t, map[string]row{
		"lease expires, throttled":        {lab.Throttled, withLease},
		"lease expires, no answer":        {lab.Cut, withLease},
		"lease expires, connection reset": {lab.Drop, withLease},
		"Close": {lab.Throttled, func(w *lab.World, c *leasehold.Client, wire *lab.Wire, _ *leasehold.Lock) {
			began := time.Now()
			_ = c.Close(w.Within(4 * time.Second))
			lab.WantTook(w.T, "Close took", began, 0, 4100*time.Millisecond)
			w.WantSilence(wire, time.Hour)
		}},
		"Close frees key": {lab.Throttled, func(w *lab.World, c *leasehold.Client, wire *lab.Wire, _ *leasehold.Lock) {
			wire.SetFault(nil)
			lab.WantErr(w.T, "close", c.Close(w.T.Context()), nil)
			w.WantReleased("job")
		}},
		"another release": {lab.Throttled, func(w *lab.World, _ *leasehold.Client, wire *lab.Wire, lock *leasehold.Lock) {
			lab.Elapse(10 * time.Minute)
			wire.SetFault(nil)
			began := time.Now()
			lab.WantErr(w.T, "release", lock.Release(w.T.Context()), nil)
			lab.WantTook(w.T, "release took", began, 0, 100*time.Millisecond)
			w.WantSilence(wire, time.Hour)
		}},
		"refused for good": {refuseReleases("ValidationException"), func(w *lab.World, _ *leasehold.Client, wire *lab.Wire, _ *leasehold.Lock) {
			lab.Elapse(time.Hour)
			lab.Want(w.T, "releases sent", lab.Count(wire.Sent(), lab.Call.Releases), 1)
		}},
	}, func(t *testing.T, w *lab.World, tc row) {
		c, wire, lock := w.Holding(longLease())
		wire.SetFault(tc.trouble)
		lab.WantFailed(t, "failing release", lock.Release(w.Within(time.Second)))
		tc.stops(w, c, wire, lock)
	})
}

func TestRepeatedReleaseDoesNotReleaseNextGrantOfKey(t *testing.T) {
	lab.Each(t, map[string]bool{"same client": true, "other client": false}, func(t *testing.T, w *lab.World, same bool) {
		c, wire, lock := w.Holding(lab.Config())
		other, _ := w.Client(lab.Config())
		if same {
			other = c
		}
		wire.SetFault(lab.On(lab.Call.Releases, lab.Throttled))
		lab.WantFailed(t, "failing release", lock.Release(w.Within(time.Second)))
		next := w.Acquire(other, "job")
		wire.SetFault(nil)
		lab.Elapse(time.Minute)
		lab.WantErr(t, "next lock", next.Err(), nil)
		w.Release(next)
	})
}
