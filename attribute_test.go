package leasehold_test

import (
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/lab"
)

func TestANilValueInsideAnAttributeIsRefusedBeforeAnythingIsSent(t *testing.T) {
	list := func(v ...types.AttributeValue) types.AttributeValue { return &types.AttributeValueMemberL{Value: v} }
	object := func(name string, v types.AttributeValue) types.AttributeValue {
		return &types.AttributeValueMemberM{Value: map[string]types.AttributeValue{name: v}}
	}
	for where, v := range map[string]types.AttributeValue{
		`"note" itself`:          (*types.AttributeValueMemberS)(nil),
		`"note" itself is`:       (*types.AttributeValueMemberL)(nil),
		`"note" itself is a`:     (*types.AttributeValueMemberM)(nil),
		`"note" itself is a nil`: (*types.AttributeValueMemberNULL)(nil),
		`"note"[1]`:              list(lab.Str("a"), nil),
		`"note".in[0].deep`:      object("in", list(object("deep", (*types.AttributeValueMemberN)(nil)))),
	} {
		lab.InBubble(t, func(t *testing.T, w *lab.World) {
			c, wire := w.Client(lab.Config())
			lock := w.Acquire(c, "job")
			wire.Sent()
			opt := leasehold.WithAttributes(map[string]types.AttributeValue{"note": v})
			_, acquired := c.Acquire(t.Context(), "other", opt)
			for name, err := range map[string]error{
				"acquire": acquired, "renew": lock.Renew(t.Context(), opt), "release": lock.Release(t.Context(), opt),
			} {
				if err == nil || !strings.Contains(err.Error(), where) || !strings.Contains(err.Error(), "nil value") {
					t.Errorf("%s, %s: %v", name, where, err)
				}
			}
			if n := len(wire.Sent()); n != 0 {
				t.Errorf("%s: %d requests", where, n)
			}
			if err := lock.Err(); err != nil {
				t.Errorf("%s: %v", where, err)
			}
			remove := leasehold.WithAttributes(map[string]types.AttributeValue{"note": nil})
			if err := lock.Renew(t.Context(), remove); err != nil {
				t.Errorf("a nil value removes one: %v", err)
			}
			// It releases whatever becomes of the writes.
			if err := lock.CommitAndRelease(t.Context(), nil, opt); err == nil || !strings.Contains(err.Error(), where) {
				t.Errorf("commit, %s: %v", where, err)
			}
		})
	}
}
