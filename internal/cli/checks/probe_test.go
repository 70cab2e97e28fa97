package checks

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"pgregory.net/rapid"

	"github.com/leasehold-go/leasehold/internal/cli/store"
	"github.com/leasehold-go/leasehold/internal/lab"
	"github.com/leasehold-go/leasehold/internal/lease"
	"github.com/leasehold-go/leasehold/internal/protocol"
	"github.com/leasehold-go/leasehold/internal/records"
	"github.com/leasehold-go/leasehold/layout"
	"github.com/leasehold-go/leasehold/table"
)

func TestEstimatedRangeOfClockDifferenceContainsTrueValue(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ahead := time.Duration(rapid.Int64Range(-int64(time.Hour), int64(time.Hour)).Draw(t, "ahead"))
		now := time.Unix(1_700_000_000, rapid.Int64Range(0, int64(time.Second)).Draw(t, "nanoseconds"))
		var c clockRange
		for range rapid.IntRange(1, 20).Draw(t, "replies") {
			out := time.Duration(rapid.Int64Range(0, int64(100*time.Millisecond)).Draw(t, "out"))
			back := time.Duration(rapid.Int64Range(0, int64(100*time.Millisecond)).Draw(t, "back"))
			date := now.Add(out).Add(ahead).Truncate(time.Second)
			c.add(date, now, now.Add(out).Add(back))
			now = now.Add(time.Duration(rapid.Int64Range(0, int64(time.Second)).Draw(t, "pause")))
		}
		if ahead < c.from || ahead > c.to || c.to-c.from > time.Second+200*time.Millisecond {
			t.Errorf("%v is not between %v and %v", ahead, c.from, c.to)
		}
		if d := ahead.Abs(); d < c.least() || d > c.most() {
			t.Errorf("%v is not between %v and %v", d, c.least(), c.most())
		}
	})
}

func TestRangeOfClockDifferenceIsHalvedByReplyAtWholeSecond(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ahead := time.Duration(rapid.Int64Range(-int64(time.Minute), int64(time.Minute)).Draw(t, "ahead"))
		now := time.Unix(1_700_000_000, rapid.Int64Range(0, int64(time.Second)).Draw(t, "nanoseconds"))
		var c clockRange
		for i := range 4 {
			if i > 0 {
				now = now.Add(c.untilSecond(now))
			}
			width := c.to - c.from
			c.add(now.Add(ahead).Truncate(time.Second), now, now)
			if got := c.to - c.from; i > 0 && got > width/2+time.Microsecond || ahead < c.from || ahead > c.to {
				t.Errorf("the range is %v to %v after %d replies, but the difference is %v", c.from, c.to, i+1, ahead)
			}
		}
	})
}

func TestRecommendedMaxSkewIsTwiceClockDifference(t *testing.T) {
	const ms = time.Millisecond
	for _, c := range []struct{ from, to, want time.Duration }{
		{0, 0, 500 * ms}, {-20 * ms, 40 * ms, 500 * ms}, {-250 * ms, 10 * ms, 500 * ms}, {-251 * ms, 10 * ms, time.Second}, {900 * ms, 1100 * ms, 2500 * ms},
	} {
		lab.Want(t, fmt.Sprintf("between %v and %v", c.from, c.to), honestSkew(clockRange{true, c.from, c.to}), c.want)
	}
}

func TestPercentileUsesNearestRank(t *testing.T) {
	var values []time.Duration
	for i := range 100 {
		values = append(values, time.Duration(i+1))
	}
	got := []time.Duration{percentile(values, 0.5), percentile(values, 0.99), percentile(values, 1)}
	lab.Want(t, "percentiles", got, []time.Duration{50, 99, 100})
	lab.Want(t, "percentile of one value", percentile(values[:1], 0.5), 1)
}

func TestDoctorRecommendsShortestLeaseThatSuitsLatency(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		took := time.Duration(rapid.Int64Range(1, int64(20*time.Second)).Draw(t, "took"))
		skew := time.Duration(rapid.IntRange(0, 2).Draw(t, "skew")) * time.Second
		least := leaseFor(took, skew)
		if isSlow(lease.Usual(least, skew), took) || triesIn(lease.Usual(least, skew), took) < leastTries {
			t.Errorf("a lease of %v is too short", least)
		}
		if shorter := least - time.Second; shorter >= time.Second+skew && !isSlow(lease.Usual(shorter, skew), took) {
			t.Errorf("a lease of %v is long enough, got %v", shorter, least)
		}
	})
}

func TestDoctorWarnsOfHighLatency(t *testing.T) {
	for _, c := range []struct {
		took time.Duration
		want State
	}{{time.Millisecond, OK}, {time.Second, OK}, {1500 * time.Millisecond, Warning}, {4 * time.Second, Warning}, {10 * time.Second, Fatal}} {
		if f := roundTrip(protocol.DefaultLease, 0, []time.Duration{c.took}); len(f) != 1 || f[0].State != c.want || (f[0].Do == "") != (c.want == OK) {
			t.Errorf("%v: %+v", c.took, f)
		}
	}
}

func TestDoctorTriesAllActionsOfIAMPoliciesAndNoOthers(t *testing.T) {
	proto := lab.Must(records.Of(layout.Native{}))(t)
	s := &store.Store{Home: dynamodb.New(dynamodb.Options{}), Target: store.Target{Place: store.Place{Table: "locks"}, Records: store.Records{Layout: layout.Native{}, Proto: proto}}}
	target := lab.Must(New(s, time.Second, "k"))(t)
	rights := target.rights()
	var policy struct{ Statement []struct{ Action []string } }
	for _, access := range []table.Access{table.Use, table.Operate, table.Read} {
		text := lab.Must(table.Spec{}.Policy("", access))(t)
		lab.OK(t, json.Unmarshal([]byte(text), &policy))
		tried := map[string]bool{}
		for _, r := range rights {
			if r.neededFor(access) {
				tried["dynamodb:"+r.action] = true
			}
		}
		want := slices.Sorted(slices.Values(policy.Statement[0].Action))
		lab.Want(t, fmt.Sprint("actions tried for ", access), slices.Sorted(maps.Keys(tried)), want)
	}
	for _, r := range rights {
		lab.Want(t, "a policy allows "+r.action, r.neededFor(table.Operate), true)
	}
}
