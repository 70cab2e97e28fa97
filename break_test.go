package leasehold_test

import (
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/lab"
)

func TestABreakLeavesToTTLWhatItFreesAndNotWhatWasLookedAt(t *testing.T) {
	for name, tc := range map[string]struct {
		before []leasehold.AcquireOption
		store  leasehold.RenewOption
		kept   bool
	}{
		"data stored since": {nil, leasehold.WithData([]byte("x")), true},
		"attributes stored since": {nil,
			leasehold.WithAttributes(map[string]types.AttributeValue{"a": lab.Str("x")}), true},
		"data removed since": {[]leasehold.AcquireOption{leasehold.WithData([]byte("x"))}, leasehold.WithData(nil), false},
		"data all the time":  {[]leasehold.AcquireOption{leasehold.WithData([]byte("x"))}, leasehold.WithLease(time.Minute), true},
		"never any":          {nil, leasehold.WithLease(time.Minute), false},
	} {
		t.Run(name, func(t *testing.T) {
			lab.InBubble(t, func(t *testing.T, w *lab.World) {
				a, _ := w.Client(lab.Config())
				op, wire := w.Client(lab.Config())
				lock := w.Acquire(a, "job", tc.before...)
				r, err := op.Get(t.Context(), "job")
				if err != nil {
					t.Fatal(err)
				}
				if err := lock.Renew(t.Context(), tc.store); err != nil {
					t.Fatal(err)
				}
				if err := op.Break(t.Context(), r); err != nil {
					t.Fatal(err)
				}
				item := w.Item("job")
				if lab.Text(item, "isReleased") != "1" || (item["expiresAt"] == nil) != tc.kept {
					t.Errorf("left to TTL: %v", item["expiresAt"] != nil)
				}
				wire.Sent()
				lock = w.Acquire(a, "job")
				if err := op.Break(t.Context(), lock.Record()); err != nil || len(wire.Sent()) != 1 {
					t.Errorf("of a record that has not changed: %v", err)
				}
			})
		})
	}
}
