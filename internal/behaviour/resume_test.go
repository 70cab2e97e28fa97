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
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, wire := w.Client(lab.Config())
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
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		a, wire := w.Client(lab.Config())
		lock := w.Acquire(a, "deploy", leasehold.WithoutRenewal(), leasehold.WithLease(10*time.Minute), leasehold.WithData([]byte("x")))
		wire.Sent()
		g := w.Detach(lock)
		if !errors.Is(lock.Err(), leasehold.ErrReleased) || len(wire.Sent()) != 0 {
			t.Errorf("error %v", lock.Err())
		}
		if err := lock.Release(t.Context()); !errors.Is(err, leasehold.ErrReleased) {
			t.Errorf("release of a detached lock: %v", err)
		}
		lab.Elapse(5 * time.Minute)
		g = overJSON(t, g)
		b, _ := w.Client(lab.Config())
		resumed, err := b.Resume(t.Context(), g)
		if err != nil {
			t.Fatal(err)
		}
		if resumed.Token() != lock.Token() || string(resumed.Record().Data) != "x" || resumed.Record().Owner != lock.Record().Owner {
			t.Errorf("resumed %+v", resumed.Record())
		}
		lab.Elapse(time.Hour) // the resumed lock is renewed during this time
		if err := resumed.Err(); err != nil {
			t.Errorf("resumed: %v", err)
		}
		d, _ := w.Client(lab.Config())
		if _, err := d.Resume(t.Context(), g); !errors.Is(err, leasehold.ErrLost) {
			t.Errorf("resumed twice: %v", err)
		}
		w.Release(resumed)
		if _, err := d.Resume(t.Context(), g); !errors.Is(err, leasehold.ErrLost) {
			t.Errorf("resumed after the release: %v", err)
		}
	})
}

func TestExpiredGrantCanBeResumedUnlessTakenOver(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		a, _ := w.Client(lab.Config())
		lock := w.Acquire(a, "deploy", leasehold.WithoutRenewal())
		g := w.Detach(lock)
		lab.Elapse(time.Hour)
		lock, err := a.Resume(t.Context(), g)
		if err != nil {
			t.Fatalf("nobody took it: %v", err)
		}
		g, err = lock.Detach()
		if err != nil {
			t.Fatal(err)
		}
		b, _ := w.Client(lab.Config())
		taken := w.Acquire(b, "deploy")
		_, err = a.Resume(t.Context(), g)
		var lost *leasehold.LostError
		if !errors.As(err, &lost) || lost.Reason != leasehold.LostReplaced || lost.By.Token != taken.Token() {
			t.Errorf("taken: %v", err)
		}
		w.Release(taken)
	})
}

func TestInvalidGrantIsRejectedBeforeAnyRequest(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, wire := w.Client(lab.Config())
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
