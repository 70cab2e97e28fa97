package say

import (
	"testing"
	"time"

	"github.com/leasehold-go/leasehold"
)

func TestLeaseIsShownAsDurationOrExpiryTime(t *testing.T) {
	now := time.Now()
	for want, r := range map[string]leasehold.Record{
		"20s":      {Lease: 20 * time.Second, ExpiresAt: now.Add(time.Hour)},
		"in 12s":   {ExpiresAt: now.Add(12 * time.Second)},
		"3m2s ago": {ExpiresAt: now.Add(-182 * time.Second)},
		"":         {ExpiresAt: now.Add(time.Hour), Released: true},
	} {
		if got := Lease(r, now); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestDoneMarkIsShownWithStartOfPeriod(t *testing.T) {
	d := &leasehold.Done{Period: time.UnixMilli(0), Owner: "ann"}
	if got, want := doneText(d, moment), "1970-01-01, by ann"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestWaitersAreShownInOrderWithTheirTimes(t *testing.T) {
	var r leasehold.Record
	for i, owner := range []string{"ann/abcdefghijklmnopqrstuvwxyz", "carl/abcdefghijklmnopqrstuvwxyz"} {
		r.Waiting = append(r.Waiting, struct {
			Owner string
			Since time.Time
		}{owner, time.UnixMilli(int64(i + 1))})
	}
	at := func(t time.Time) string { return t.UTC().Format("05.000") }
	if got, want := waitingText(r, at), "ann/abcd since 00.001, carl/abcd since 00.002"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestQueueSuspensionIsShownUntilItEnds(t *testing.T) {
	now := time.UnixMilli(1e12)
	for until, want := range map[time.Time]string{now.Add(time.Minute): moment(now.Add(time.Minute)), now: "", {}: ""} {
		for _, f := range (Record{Record: leasehold.Record{NoQueueUntil: until}}).fields(false, now) {
			if f[0] == "noQueueUntil" && f[1] != want {
				t.Errorf("until %v: %q, want %q", until, f[1], want)
			}
		}
	}
}
