package behaviour_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/lab"
)

func TestResumeErrorNamesMissingFieldOfGrant(t *testing.T) {
	oneClient(t, func(t *testing.T, w *lab.World, c *leasehold.Client, wire *lab.Wire) {
		whole := w.Detach(w.Acquire(c, "deploy"))
		wire.Sent()
		for missing, g := range map[string]leasehold.Grant{
			"table, key, owner, token, id, versions, lease": {},
			"versions": func() leasehold.Grant { g := whole; g.Versions = nil; return g }(),
			"key, id":  func() leasehold.Grant { g := whole; g.Key, g.ID = leasehold.Key{}, ""; return g }(),
		} {
			_, err := c.Resume(t.Context(), g)
			if err == nil || !strings.Contains(err.Error(), "lacks its "+missing+":") || len(wire.Sent()) != 0 {
				t.Errorf("want %q missing: %v", missing, err)
			}
		}
	})
}

func TestGrantCanBeResumedOnceByAnotherProcess(t *testing.T) {
	oneClient(t, func(t *testing.T, w *lab.World, a *leasehold.Client, wire *lab.Wire) {
		lock := w.Acquire(a, "deploy", leasehold.WithoutRenewal(), leasehold.WithLease(10*time.Minute), leasehold.WithData([]byte("x")))
		wire.Sent()
		g := w.Detach(lock)
		if !errors.Is(lock.Err(), leasehold.ErrReleased) || len(wire.Sent()) != 0 {
			t.Errorf("error %v", lock.Err())
		}
		lab.WantErr(t, "release of a detached lock", lock.Release(t.Context()), leasehold.ErrReleased)
		lab.Elapse(5 * time.Minute)
		g = overJSON(t, g)
		b, _ := w.Client(lab.Config())
		resumed := w.Resume(b, g)
		if resumed.Token() != lock.Token() || string(resumed.Record().Data) != "x" || resumed.Record().Owner != lock.Record().Owner {
			t.Errorf("resumed %+v", resumed.Record())
		}
		lab.Elapse(time.Hour) // the resumed lock is renewed during this time
		lab.WantErr(t, "resumed", resumed.Err(), nil)
		d, _ := w.Client(lab.Config())
		lab.WantErr(t, "resumed twice", lab.ErrorOf(d.Resume(t.Context(), g)), leasehold.ErrLost)
		w.Release(resumed)
		lab.WantErr(t, "resumed after the release", lab.ErrorOf(d.Resume(t.Context(), g)), leasehold.ErrLost)
	})
}

func TestExpiredGrantCanBeResumedUnlessTakenOver(t *testing.T) {
	oneClient(t, func(t *testing.T, w *lab.World, a *leasehold.Client, _ *lab.Wire) {
		lock := w.Acquire(a, "deploy", leasehold.WithoutRenewal())
		g := w.Detach(lock)
		lab.Elapse(time.Hour)
		lock, err := a.Resume(t.Context(), g)
		if err != nil {
			t.Fatalf("nobody took it: %v", err)
		}
		g = w.Detach(lock)
		taken := holds(w, "deploy")
		_, err = a.Resume(t.Context(), g)
		if lost := as[*leasehold.LostError](err); lost == nil || lost.Reason != leasehold.LostReplaced || lost.By.Token != taken.Token() {
			t.Errorf("taken: %v", err)
		}
		w.Release(taken)
	})
}

func TestInvalidGrantIsRejectedBeforeAnyRequest(t *testing.T) {
	oneClient(t, func(t *testing.T, w *lab.World, c *leasehold.Client, wire *lab.Wire) {
		lock := w.Acquire(c, "deploy")
		g := w.Detach(lock)
		wire.Sent()
		for name, change := range map[string]func(*leasehold.Grant){
			"another table": func(g *leasehold.Grant) { g.Table = "other" },
			"no id":         func(g *leasehold.Grant) { g.ID = "" },
			"no versions":   func(g *leasehold.Grant) { g.Versions = nil },
			"no key":        func(g *leasehold.Grant) { g.Key = leasehold.Key{} },
			"a lease of 0":  func(g *leasehold.Grant) { g.Lease = 0 },
		} {
			bad := g
			change(&bad)
			if _, err := c.Resume(t.Context(), bad); err == nil || len(wire.Sent()) != 0 {
				t.Errorf("%s: %v", name, err)
			}
		}
	})
}
