package ui

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/lab"
	"github.com/leasehold-go/leasehold/layout"
)

func TestUIBreakAppliesOnlyToGrantShownInDialog(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		b := serve(t, w, layout.Native{}, func(c *Config) { c.AllowBreak = true })
		c, _ := w.Client(lab.Config())
		first := w.Acquire(c, "job")
		lab.Elapse(2 * time.Second)
		b.show("job", "")
		shown := b.look("job", "")
		b.breaks(breakRequest{shownGrant: shown, Typed: "jab"}, http.StatusBadRequest, "refused")
		lab.Elapse(6 * time.Second) // meanwhile the holder renews its lease, but the grant stays the same
		b.breaks(breakRequest{shown, "job", "stuck since noon"}, http.StatusOK, "broken")
		b.tells("grant; break: stuck since noon")
		lab.Want(t, "reported breaks", b.broke, []string{"job: stuck since noon"})
		<-first.Context().Done()
		second := w.Acquire(c, "job")
		changed := b.breaks(breakRequest{shown, "job", ""}, http.StatusConflict, "changed")
		lab.WantParts(t, "the current record", string(changed.Now), fmt.Sprint(second.Token()))
		lab.WantErr(t, "the second grant", second.Err(), nil)
		w.Release(second)
	})
}

func TestBreakByUIFailsIfHolderShownAsDeadHasRenewed(t *testing.T) {
	lab.Each(t, map[string]leasehold.Config{"the lock": lab.Config(), "its session": lab.SharedConfig()}, func(t *testing.T, w *lab.World, cfg leasehold.Config) {
		b := serve(t, w, layout.Native{}, func(c *Config) { c.AllowBreak = true })
		c, wire := mortal(t, w, cfg)
		w.Acquire(c, "job")
		wire.SetFault(lab.Cut)
		lab.Elapse(30 * time.Second)
		shown := b.look("job", "")
		if !shown.Dead {
			t.Fatalf("shown: %+v", shown)
		}
		renewed := "job"
		if cfg.SharedLease {
			renewed = "leasehold/session/" + b.row("job").Session
		}
		w.Update(renewed, map[string]types.AttributeValue{"recordVersionNumber": lab.Str("renewed-after-all")})
		b.breaks(breakRequest{shown, "job", ""}, http.StatusConflict, "changed")
	})
}

func TestUIBreakDialogShowsSameHolderAsLockDetails(t *testing.T) {
	onPage(t, func(t *testing.T, w *lab.World, b *bench) {
		lock := acquire(w, "job")
		lab.Elapse(12 * time.Second)
		b.show("job", "")
		var shown struct {
			shownGrant
			Seen int64
			beatView
		}
		b.post("/look", map[string]string{"key": "job"}, &shown)
		card := b.lock.Holder
		if shown.Seen != card.Seen || shown.beatView != card.beatView || card.Renewals == 0 || shown.Grant != card.Grant {
			t.Errorf("the dialog shows %+v, the lock details %+v", shown, card)
		}
		w.Release(lock)
	})
}

// silentBreaks is a Source that returns ErrUnknownOutcome for every break. It makes the break only
// if the field "applied" is true.
type silentBreaks struct {
	Source
	applied bool
}

func (s silentBreaks) Break(ctx context.Context, r leasehold.Record, reason string, unrenewed bool) error {
	if s.applied {
		_ = s.Source.Break(ctx, r, reason, unrenewed)
	}
	return leasehold.ErrUnknownOutcome
}

func TestUIShowsBreakOfUnknownOutcomeOnlyIfBreakWasApplied(t *testing.T) {
	lab.Each(t, map[string]bool{"applied": true, "not applied": false}, func(t *testing.T, w *lab.World, applied bool) {
		b := serve(t, w, layout.Native{}, func(c *Config) { c.AllowBreak, c.Source = true, silentBreaks{c.Source, applied} })
		lock := acquire(w, "job")
		lab.Elapse(2 * time.Second)
		b.show("job", "")
		b.breaks(breakRequest{b.look("job", ""), "job", "stuck"}, http.StatusGatewayTimeout, "unknown")
		lab.Elapse(time.Minute)
		want := "grant; break: stuck"
		if !applied {
			w.Release(lock)
			want = "grant; release"
		}
		lab.Elapse(2 * time.Second)
		b.tells(want)
	})
}

func TestUIShowsBreakOnceDespiteLateReplyToEarlierScan(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		b := serve(t, w, layout.Native{}, func(c *Config) { c.AllowBreak = true })
		lock := acquire(w, "job")
		lab.Elapse(2 * time.Second)
		b.show("job", "")
		shown := b.look("job", "")
		scanned, answered := make(chan struct{}), make(chan struct{})
		b.wire.SetFault(lab.Once(func(c lab.Call) bool { return c.Op == "Scan" }, func(r *lab.Request) (*http.Response, error) {
			reply, err := r.Send()
			close(scanned)
			<-answered
			return reply, err
		}))
		<-scanned
		lab.Elapse(time.Millisecond)
		b.breaks(breakRequest{shown, "job", "stuck"}, http.StatusOK, "broken")
		close(answered) // this reply was read before the break, and still shows the grant
		lab.Elapse(5 * time.Second)
		b.tells("grant; break: stuck")
		<-lock.Context().Done()
	})
}

func TestUIBreakRequiresAllowBreak(t *testing.T) {
	onPage(t, func(t *testing.T, w *lab.World, b *bench) {
		refused := b.breaks(breakRequest{shownGrant{Key: "job", Grant: "g", Version: "v"}, "job", ""}, http.StatusForbidden, "refused")
		lab.WantParts(t, "the message", refused.Message, "--allow-break")
	})
}

func TestUIRejectsBreakRequestWithReasonOver1000Bytes(t *testing.T) {
	for n, want := range map[int]string{1000: "", 1001: "Nothing was broken: the reason has 1001 bytes: use at most 1000."} {
		asked := breakRequest{shownGrant: shownGrant{Key: "k", Grant: "g", Version: "v"}, Typed: "k", Reason: strings.Repeat("x", n)}
		lab.Want(t, fmt.Sprint("bytes of the reason: ", n), asked.check(), want)
	}
}
