package leasehold_test

import (
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/leasehold-go/leasehold"
)

func TestABreakLeavesToTTLWhatItFreesAndNotWhatWasLookedAt(t *testing.T) {
	for name, tc := range map[string]struct {
		before []leasehold.AcquireOption
		store  leasehold.RenewOption
		kept   bool
	}{
		"data stored since": {nil, leasehold.WithData([]byte("x")), true},
		"attributes stored since": {nil,
			leasehold.WithAttributes(map[string]types.AttributeValue{"a": str("x")}), true},
		"data removed since": {[]leasehold.AcquireOption{leasehold.WithData([]byte("x"))}, leasehold.WithData(nil), false},
		"data all the time":  {[]leasehold.AcquireOption{leasehold.WithData([]byte("x"))}, leasehold.WithLease(time.Minute), true},
		"never any":          {nil, leasehold.WithLease(time.Minute), false},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, w *world) {
				a, _ := w.client(config())
				op, wire := w.client(config())
				lock := w.acquire(a, "job", tc.before...)
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
				item := w.item("job")
				if textOf(item, "isReleased") != "1" || (item["expiresAt"] == nil) != tc.kept {
					t.Errorf("left to TTL: %v", item["expiresAt"] != nil)
				}
				wire.sent()
				lock = w.acquire(a, "job")
				if err := op.Break(t.Context(), lock.Record()); err != nil || len(wire.sent()) != 1 {
					t.Errorf("of a record that has not changed: %v", err)
				}
			})
		})
	}
}
