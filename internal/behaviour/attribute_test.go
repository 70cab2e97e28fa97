package behaviour_test

import (
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/lab"
)

func TestNilInsideAttributeIsRejectedBeforeAnyRequest(t *testing.T) {
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
			// CommitAndRelease releases the lock even if the writes fail.
			if err := lock.CommitAndRelease(t.Context(), nil, opt); err == nil || !strings.Contains(err.Error(), where) {
				t.Errorf("commit, %s: %v", where, err)
			}
		})
	}
}

func TestItemSizeLimitCountsEveryTypeOfValue(t *testing.T) { // Developer Guide, "DynamoDB item sizes and formats"
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, _ := w.Client(lab.Config())
		bytes := func(v types.AttributeValue) int {
			return refusedBytes(t, c, "job", leasehold.WithData(make([]byte, 400<<10)),
				leasehold.WithAttributes(map[string]types.AttributeValue{"note": v}))
		}
		list := &types.AttributeValueMemberL{Value: []types.AttributeValue{lab.Str("abc"), lab.Num("12")}}
		without := bytes(lab.Str(""))
		for name, tc := range map[string]struct {
			v    types.AttributeValue
			want int
		}{
			"a string":            {lab.Str("abc"), 3},
			"a number":            {lab.Num("1234"), 4},
			"bytes":               {&types.AttributeValueMemberB{Value: []byte("abcd")}, 4},
			"true":                {&types.AttributeValueMemberBOOL{Value: true}, 1},
			"null":                {&types.AttributeValueMemberNULL{Value: true}, 1},
			"a set of strings":    {&types.AttributeValueMemberSS{Value: []string{"a", "bcd"}}, 3 + 1 + 3},
			"a set of numbers":    {&types.AttributeValueMemberNS{Value: []string{"1", "1234"}}, 3 + 2 + 4},
			"a set of bytes":      {&types.AttributeValueMemberBS{Value: [][]byte{[]byte("a"), []byte("bcd")}}, 3 + 1 + 3},
			"a list":              {list, 3 + 1 + 3 + 1 + 3},
			"a map":               {&types.AttributeValueMemberM{Value: map[string]types.AttributeValue{"name": lab.Str("abc")}}, 3 + 1 + 4 + 3},
			"a list inside a map": {&types.AttributeValueMemberM{Value: map[string]types.AttributeValue{"name": list}}, 3 + 1 + 4 + 11},
		} {
			if got := bytes(tc.v) - without; got != tc.want {
				t.Errorf("%s: %d bytes, want %d", name, got, tc.want)
			}
		}
	})
}
