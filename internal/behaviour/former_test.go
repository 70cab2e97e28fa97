package behaviour_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/lab"
)

func TestRecordFieldFormerShowsHowPreviousGrantEnded(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		a, _ := w.Client(lab.Config())
		b, _ := w.Client(lab.Config())
		shown := func(what string, want *leasehold.End) leasehold.Record {
			t.Helper()
			r, err := b.Get(t.Context(), "job")
			if err != nil {
				t.Fatal(err)
			}
			got := r.Former
			if (got == nil) != (want == nil) || got != nil && (got.Owner != want.Owner || got.Token != want.Token || got.How != want.How || got.At.IsZero()) {
				t.Errorf("%s: %+v", what, got)
			}
			text, err := json.Marshal(r)
			if err != nil || strings.Contains(string(text), `"former":{`) != (want != nil) {
				t.Errorf("%s: %s, %v", what, text, err)
			}
			return r
		}
		lock := w.Acquire(a, "job")
		shown("the first grant", nil)
		w.Release(lock)
		shown("released", &leasehold.End{Owner: lock.Record().Owner, Token: lock.Token(), How: "released"})
		lock = w.Acquire(a, "job")
		r := shown("granted after a release", nil)
		if err := b.Break(t.Context(), r, leasehold.BreakOptions{}); err != nil {
			t.Fatal(err)
		}
		shown("broken", &leasehold.End{Owner: lock.Record().Owner, Token: lock.Token(), How: "broken"})
		broken := lock.Token()
		lock = w.Acquire(a, "job", leasehold.WithoutRenewal())
		shown("granted after a break", &leasehold.End{Token: broken, How: "broken"})
		owner, token := lock.Record().Owner, lock.Token()
		w.Detach(lock)
		next := w.Acquire(b, "job")
		shown("taken over", &leasehold.End{Owner: owner, Token: token, How: "taken over"})
		w.Release(next)
		shown("released after a takeover", &leasehold.End{Owner: next.Record().Owner, Token: next.Token(), How: "released"})
		next = w.Acquire(b, "job")
		shown("granted after all that", nil)
		w.Release(next)
	})
}
