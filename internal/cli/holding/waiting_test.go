package holding

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/cli/failure"
	"github.com/leasehold-go/leasehold/internal/cli/say"
)

// userAt returns a User that writes its messages to w, and reads the clock now.
func userAt(w io.Writer, now func() time.Time) User {
	return User{Say: say.NewMessages(&say.Output{To: w}), Now: now}
}

// see records a waiting event. It returns how many events the wait has written so far.
func (w *wait) see(r leasehold.Record, place int, all *allHeld, told *[]int) int {
	w.mu.Lock()
	w.tell = func(e leasehold.Event, _ int) { *told = append(*told, e.Position) } // the wait calls this function while it holds w.mu
	w.mu.Unlock()
	w.saw(leasehold.Event{Kind: leasehold.EventWaiting, Holder: &r, Position: place}, all)
	return len(w.positions(told))
}

// positions returns a copy of told, which a wait that has started may still change.
func (w *wait) positions(told *[]int) []int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(*told)
}

func TestWaitIsReportedOnceAMinuteWhileHoldersChange(t *testing.T) {
	var stderr bytes.Buffer
	now := time.Unix(1e9, 0)
	w := newWait(userAt(&stderr, func() time.Time { return now }), nil, "")
	var told []int
	const minutes = 5
	for i := range minutes * 600 { // the holder changes ten times a second
		r := leasehold.Record{Key: leasehold.Key{Partition: "k"}, Owner: fmt.Sprint("owner", i), Grant: fmt.Sprint(i), Lease: time.Second}
		w.see(r, 0, nil, &told)
		now = now.Add(time.Second / 10)
	}
	if lines := strings.Count(stderr.String(), "waiting for k, held by "); lines != minutes || len(told) != minutes {
		t.Errorf("%d lines and %d events in %d minutes", lines, len(told), minutes)
	}
	if w.holdersSeen() != minutes*600 {
		t.Errorf("%d holders", w.holdersSeen())
	}
}

func TestWaitForOneHolderIsReportedOnceAMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var stderr bytes.Buffer
		var told []int
		w := newWait(userAt(&stderr, time.Now), nil, "")
		w.start()
		w.see(leasehold.Record{Key: leasehold.Key{Partition: "k"}, Owner: "o", Grant: "g", Lease: time.Second}, 0, nil, &told)
		time.Sleep(5*time.Minute + 30*time.Second)
		w.end()
		if lines := strings.Count(stderr.String(), "waiting for k, held by o"); lines != 6 || len(told) != 6 {
			t.Errorf("%d lines and %d events in five minutes", lines, len(told))
		}
	})
}

func TestElectReportsWaitOnceAMinute(t *testing.T) {
	var stderr bytes.Buffer
	now := time.Unix(1e9, 0)
	user := userAt(&stderr, func() time.Time { return now })
	var w *wait
	var told []int
	const minutes = 3
	for i := range minutes * 30 { // a term every two seconds
		w = newWait(user, w, "")
		w.start()
		r := leasehold.Record{Key: leasehold.Key{Partition: "k"}, Owner: fmt.Sprint("owner", i), Grant: fmt.Sprint(i), Lease: time.Second}
		w.see(r, 0, nil, &told)
		if seen := w.holdersSeen(); seen != 1 {
			t.Errorf("term %d: %d holders were waited for", i, seen)
		}
		w.end()
		now = now.Add(2 * time.Second)
	}
	if lines := strings.Count(stderr.String(), "waiting for k, held by "); lines != minutes || len(told) != minutes {
		t.Errorf("%d lines and %d events in %d minutes", lines, len(told), minutes)
	}
}

func TestWaitIsNotReportedUntilAllPermitsAreHeld(t *testing.T) {
	var stderr bytes.Buffer
	keys := leasehold.Keys("k/1", "k/2")
	permits := (&Wanted{Permits: 2}).allHeld(leasehold.Keys("k"))
	w := newWait(userAt(&stderr, time.Now), nil, "")
	var told []int
	for i, key := range keys {
		r := leasehold.Record{Key: key, Owner: "o", Grant: fmt.Sprint(i), Lease: time.Second}
		if n := w.see(r, 0, permits, &told); n != i || (w.holdersSeen() > 0) != (n > 0) {
			t.Errorf("permit %d: %d events, %d holders were waited for", i+1, n, w.holdersSeen())
		}
	}
}

func TestWaitMessageShowsRemarkOfHolder(t *testing.T) {
	for data, want := range map[string]string{
		"deploying v42":          "held by o: \"deploying v42\"\n",
		"":                       "held by o\n",
		"two\nlines":             "held by o\n",
		strings.Repeat("a", 200): "held by o\n",
	} {
		var stderr bytes.Buffer
		newWait(userAt(&stderr, time.Now), nil, "").see(leasehold.Record{Key: leasehold.Key{Partition: "k"}, Owner: "o", Grant: "g", Data: []byte(data)}, 0, nil, new([]int))
		if got := stderr.String(); !strings.HasSuffix(got, want) {
			t.Errorf("%q", got)
		}
	}
}

func TestWaitMessageShowsQueuePosition(t *testing.T) {
	var stderr bytes.Buffer
	w := newWait(userAt(&stderr, time.Now), nil, "")
	w.see(leasehold.Record{Key: leasehold.Key{Partition: "k"}, Owner: "o", Grant: "g", Lease: time.Second}, 3, nil, new([]int))
	if got := stderr.String(); !strings.Contains(got, "waiting for k, held by o, number 3 in the queue") {
		t.Error(got)
	}
}

// The first report may come before the waiter has joined the queue.
func TestQueuePositionIsReportedAtMostOnceASecond(t *testing.T) {
	r := leasehold.Record{Key: leasehold.Key{Partition: "k"}, Owner: "o", Grant: "g", Lease: time.Second}
	type seen struct {
		at     time.Duration
		place  int
		events int // number of events so far
	}
	for name, c := range map[string][]seen{
		"known later":               {{0, 0, 1}, {time.Millisecond, 3, 2}},
		"known at first":            {{0, 3, 1}},
		"seen again":                {{0, 3, 1}, {2 * time.Second, 3, 1}},
		"another":                   {{0, 3, 1}, {2 * time.Second, 2, 2}},
		"another, after a minute":   {{0, 3, 1}, {time.Hour, 3, 2}, {time.Hour + time.Millisecond, 2, 3}},
		"another, too soon":         {{0, 3, 1}, {time.Millisecond, 2, 1}, {time.Second, 1, 2}},
		"many times a second":       {{0, 9, 1}, {100 * time.Millisecond, 8, 1}, {200 * time.Millisecond, 7, 1}, {1100 * time.Millisecond, 6, 2}, {1200 * time.Millisecond, 5, 2}},
		"not known for a while":     {{0, 3, 1}, {time.Second, 0, 1}, {2 * time.Second, 3, 1}},
		"not known, after a minute": {{0, 3, 1}, {time.Hour, 0, 2}, {time.Hour + time.Second, 3, 3}},
	} {
		t.Run(name, func(t *testing.T) {
			var stderr bytes.Buffer
			begin := time.Unix(1e9, 0)
			now := begin
			w := newWait(userAt(&stderr, func() time.Time { return now }), nil, "")
			var told []int
			for _, s := range c {
				now = begin.Add(s.at)
				events := w.see(r, s.place, nil, &told)
				if lines := strings.Count(stderr.String(), "waiting for k"); events != s.events || lines != s.events {
					t.Errorf("after %v: %d events and %d lines, want %d", s.at, events, lines, s.events)
				}
			}
		})
	}
}

func TestDeferredQueuePositionIsReportedOneSecondLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var stderr bytes.Buffer
		r := leasehold.Record{Key: leasehold.Key{Partition: "k"}, Owner: "o", Grant: "g", Lease: time.Second}
		var told []int
		w := newWait(userAt(&stderr, time.Now), nil, "")
		w.start()
		for _, place := range []int{4, 3, 2} {
			w.see(r, place, nil, &told)
		}
		time.Sleep(5 * time.Second)
		synctest.Wait()
		if !slices.Equal(w.positions(&told), []int{4, 2}) {
			t.Errorf("told %v", told)
		}
		if w.see(r, 1, nil, &told); strings.Count(stderr.String(), "waiting for k") != 3 {
			t.Errorf("it says %s", &stderr)
		}
		w.see(r, 5, nil, &told)
		w.saw(leasehold.Event{Kind: leasehold.EventGranted}, nil)
		time.Sleep(5 * time.Second)
		w.end()
		if !slices.Equal(w.positions(&told), []int{4, 2, 1}) {
			t.Errorf("told %v, though the wait was over", told)
		}
	})
}

func TestWaitForOwnOldGrantIsReportedAsCheck(t *testing.T) {
	var stderr bytes.Buffer
	now := time.Unix(1e9, 0)
	w := newWait(userAt(&stderr, func() time.Time { return now }), nil, "own")
	key := leasehold.Key{Partition: "k"}
	var told []int
	for range 100 {
		if w.see(leasehold.Record{Key: key, Owner: "me", Grant: "own", Lease: time.Second}, 0, nil, &told) > 0 {
			t.Error("an event says that it waits")
		}
		now = now.Add(time.Second)
	}
	if got, want := stderr.String(), "leasehold: checking whether the former grant of k to this process is still current\n"; got != want || w.holdersSeen() != 1 {
		t.Errorf("%d holders: %s", w.holdersSeen(), got)
	}
	if w.see(leasehold.Record{Key: key, Owner: "other", Grant: "other", Lease: time.Second}, 0, nil, &told) != 1 || !strings.Contains(stderr.String(), "waiting for k, held by other") {
		t.Errorf("another holder is not waited for: %s", &stderr)
	}
}

// A call for one of several permits waits in several queues. It moves forward in each of
// these queues.
func TestWaitInMultipleQueuesReportsNoPosition(t *testing.T) {
	var stderr bytes.Buffer
	now := time.Unix(1e9, 0)
	w := newWait(userAt(&stderr, func() time.Time { return now }), nil, "")
	permits := (&Wanted{Permits: 2}).allHeld(leasehold.Keys("k"))
	var told []int
	for i, place := range []int{4, 3, 2, 1, 3} {
		key := leasehold.Keys("k/0", "k/1")[i%2]
		w.see(leasehold.Record{Key: key, Owner: "o", Grant: fmt.Sprint(i), Lease: time.Second}, place, permits, &told)
		now = now.Add(2 * time.Second)
	}
	if n := strings.Count(stderr.String(), "waiting"); n != 1 || len(told) != 1 {
		t.Errorf("%d lines, %d events: %s", n, len(told), &stderr)
	}
}

func TestWaitShorterThanLeaseOfHolderIsTooShort(t *testing.T) {
	waited := &failure.WaitedError{Wait: 5 * time.Second}
	held := func(r leasehold.Record) error { return &leasehold.HeldError{Holder: r, Err: waited} }
	lease := func(d time.Duration) leasehold.Record { return leasehold.Record{Lease: d} }
	for name, c := range map[string]struct {
		wanted Wanted
		err    error
		want   bool
	}{
		"a lease that is longer":             {Wanted{}, held(lease(6 * time.Second)), true},
		"a lease that was waited for":        {Wanted{}, held(lease(5 * time.Second)), false},
		"a shared lease":                     {Wanted{}, held(leasehold.Record{Lease: time.Second, Session: "s"}), true},
		"one of several keys":                {Wanted{Keys: []string{"a", "b"}}, held(lease(time.Second)), true},
		"one of several permits":             {Wanted{Permits: 2}, &allHeldError{"all held", held(lease(time.Second))}, true},
		"refused before the wait was over":   {Wanted{}, &leasehold.HeldError{Holder: lease(time.Minute)}, false},
		"ended by a signal":                  {Wanted{}, &leasehold.HeldError{Holder: lease(time.Minute), Err: &failure.SignalError{}}, false},
		"nobody was seen while it was asked": {Wanted{}, waited, false},
		"granted":                            {Wanted{}, nil, false},
	} {
		c.wanted.Wait = waited.Wait
		if got := c.wanted.wasTooShort(c.err); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestHeldMessageStatesTotalWait(t *testing.T) {
	f := Wanted{Wait: 1500 * time.Millisecond}
	for took, want := range map[time.Duration]time.Duration{
		1501 * time.Millisecond: 1500 * time.Millisecond, 21700 * time.Millisecond: 21 * time.Second,
	} {
		var waited *failure.WaitedError
		if err := f.afterWait(&leasehold.HeldError{}, took); !errors.As(err, &waited) || waited.Wait != want || !failure.NotGranted(err) {
			t.Errorf("after %v: %v", took, err)
		}
	}
	if f.afterWait(nil, time.Second) != nil {
		t.Error("granted, and an error")
	}
}

func TestWaitWithoutAnswersIsNotReportedAsHeld(t *testing.T) {
	waited := &failure.WaitedError{Wait: time.Second}
	for name, c := range map[string]struct {
		err     error
		answers int
		refused bool
	}{
		"no answer":                    {waited, 0, false},
		"an answer, and no holder yet": {waited, 1, true},
		"a holder, from another call":  {&leasehold.HeldError{Err: waited}, 0, true},
	} {
		err := afterSilence(c.err, c.answers, "locks", leasehold.Key{Partition: "job"})
		if got := failure.NotGranted(err); got != c.refused || !c.refused && !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, err := range []error{nil, leasehold.ErrClosed, &leasehold.OpError{Op: "acquire", Err: errors.Join(waited, errors.New("refused"))}} {
		if got := afterSilence(err, 0, "locks", leasehold.Key{}); !errors.Is(got, err) {
			t.Errorf("%v became %v", err, got)
		}
	}
}
