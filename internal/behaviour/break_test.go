package behaviour_test

import (
	"errors"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/lab"
)

func TestBreakFreesOnlySpecifiedGrant(t *testing.T) {
	oneClient(t, func(t *testing.T, w *lab.World, a *leasehold.Client, _ *lab.Wire) {
		op, _ := w.Client(lab.Config())
		lock := w.Acquire(a, "job")
		r := get(w, op, "job")
		lab.Elapse(12 * time.Second) // the grant is renewed meanwhile, so its record has a new version
		lab.WantErr(t, "break of a renewed grant if unrenewed", op.Break(t.Context(), r, leasehold.BreakOptions{IfUnrenewed: true}), leasehold.ErrChanged)
		breaks(w, op, r)
		lab.Elapse(6 * time.Second)
		if lost := as[*leasehold.LostError](lock.Err()); lost == nil || lost.Reason != leasehold.LostBroken {
			t.Errorf("the holder: %v", lock.Err())
		}
		var changed *leasehold.ChangedError
		if err := op.Break(t.Context(), r, leasehold.BreakOptions{}); !errors.As(err, &changed) || !changed.Now.Released {
			t.Errorf("break of a free key: %v", err)
		}
		next := w.Acquire(a, "job")
		if err := op.Break(t.Context(), r, leasehold.BreakOptions{}); !errors.As(err, &changed) || changed.Now.Token != next.Token() {
			t.Errorf("break of another grant: %v", err)
		}
		w.Release(next)
		w.Delete("job")
		lab.WantErr(t, "break of nothing", op.Break(t.Context(), r, leasehold.BreakOptions{}), leasehold.ErrNotFound)
		_ = lock.Release(t.Context())
	})
}

func TestLostErrorOfBrokenGrantNamesOperatorAndReason(t *testing.T) {
	says := regexp.MustCompile(`^leasehold: lost job in table locks \(token \d+\) at [0-9:.]+: broken by operator/[a-z2-7]{4} at 0\d:\d\d:\d\d: "the disk\\nis full"(; the record shows a later grant, of test/[a-z2-7]{4})?$`)
	type row struct {
		after  func(*lab.World, *leasehold.Client)
		reason leasehold.LostReason
	}
	lab.Each(t, map[string]row{
		"free since":         {func(*lab.World, *leasehold.Client) {}, leasehold.LostBroken},
		"granted to another": {func(w *lab.World, c *leasehold.Client) { w.Acquire(c, "job") }, leasehold.LostReplaced},
		"granted to another, which has released it": {func(w *lab.World, c *leasehold.Client) {
			w.Release(w.Acquire(c, "job"))
		}, leasehold.LostReplaced},
	}, func(t *testing.T, w *lab.World, tc row) {
		holder, _ := w.Client(lab.Config())
		next, _ := w.Client(lab.Config())
		cfg := lab.Config()
		cfg.Owner = "operator"
		op, _ := w.Client(cfg)
		renewing, releasing, detached := w.Acquire(holder, "job"), w.Acquire(holder, "other"), w.Acquire(holder, "third")
		grant := w.Detach(detached)
		for _, key := range []string{"job", "other", "third"} {
			r := get(w, op, key)
			lab.OK(t, op.Break(t.Context(), r, leasehold.BreakOptions{Reason: "the disk\nis full"}))
		}
		tc.after(w, next)
		lab.Elapse(6 * time.Second)
		var lost *leasehold.LostError
		if !errors.As(renewing.Err(), &lost) || lost.Reason != tc.reason || !says.MatchString(lost.Error()) {
			t.Errorf("the holder: %v", renewing.Err())
		}
		if b := lost.By; b == nil || b.Broken == nil || b.Broken.Reason != "the disk\nis full" || b.Broken.Token != renewing.Token() {
			t.Errorf("the record that showed it: %+v", lost.By)
		}
		told := func(what string, err error) {
			t.Helper()
			if !errors.Is(err, leasehold.ErrLost) || !strings.Contains(err.Error(), ": broken by operator/") {
				t.Errorf("%s: %v", what, err)
			}
		}
		told("a release", releasing.Release(t.Context()))
		told("a resume", lab.ErrorOf(holder.Resume(t.Context(), grant)))
		_ = next.Close(t.Context())
	})
}

func TestBreakNotifiesOnlyHolderOfSpecifiedGrant(t *testing.T) {
	oneClient(t, func(t *testing.T, w *lab.World, a *leasehold.Client, _ *lab.Wire) {
		op, _ := w.Client(lab.Config())
		first := w.Acquire(a, "job", leasehold.WithoutRenewal())
		breaks(w, op, first.Record())
		second := w.Acquire(a, "job", leasehold.WithoutRenewal())
		w.Update("job", map[string]types.AttributeValue{"grantId": lab.Str("another")})
		if err := second.Renew(t.Context()); !errors.Is(err, leasehold.ErrLost) || strings.Contains(err.Error(), "broken") {
			t.Errorf("the next holder: %v", err)
		}
	})
}

func TestBreakRejectsReasonThatIsNotShortText(t *testing.T) {
	oneLock(t, func(t *testing.T, _ *lab.World, c *leasehold.Client, wire *lab.Wire, lock *leasehold.Lock) {
		wire.Sent()
		for _, reason := range []string{strings.Repeat("x", 1001), "\xff"} {
			lab.WantFailed(t, "break", c.Break(t.Context(), lock.Record(), leasehold.BreakOptions{Reason: reason}))
			lab.Want(t, "requests", len(wire.Sent()), 0)
		}
		lab.WantErr(t, "Break", c.Break(t.Context(), lock.Record(), leasehold.BreakOptions{Reason: strings.Repeat("x", 1000)}), nil)
	})
}
