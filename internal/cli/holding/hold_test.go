package holding

import (
	"context"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/leasehold-go/leasehold"
)

func TestRenewalTimeoutMessageIncludesEarlierError(t *testing.T) {
	throttled, late := &types.ProvisionedThroughputExceededException{}, context.DeadlineExceeded
	for name, test := range map[string]struct {
		failed []error
		want   []string
	}{
		"throttled":                          {[]error{throttled}, []string{"throttled: "}},
		"no answer":                          {[]error{late, late}, []string{"no answer in time"}},
		"throttled, then no answer":          {[]error{throttled, late, late}, []string{"no answer in time", "; before that: throttled: "}},
		"throttled after no answer":          {[]error{late, throttled}, []string{"throttled: "}},
		"throttled, renewed, then no answer": {[]error{throttled, nil, late}, []string{"no answer in time"}},
		"throttled, then renewed":            {[]error{throttled, nil}, nil},
	} {
		r := newRenewals(nil, "here")
		for _, err := range test.failed {
			if err != nil {
				err = &leasehold.OpError{Op: "renew", Table: "locks", Key: leasehold.Key{Partition: "k"}, Err: err}
			}
			r.fails(leasehold.Key{Partition: "k"}, err)
		}
		why := r.why()
		rest := why
		for _, part := range test.want {
			_, after, found := strings.Cut(rest, part)
			if !found {
				t.Errorf("%s: %q", name, why)
			}
			rest = after
		}
		if (why == "") != (test.want == nil) || strings.Contains(why, "before that") != (len(test.want) > 1) || strings.Count(why, "no answer")+strings.Count(why, "throttled: ") != len(test.want) {
			t.Errorf("%s: %q", name, why)
		}
	}
}
