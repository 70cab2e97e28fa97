package holding

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/cli/failure"
	"github.com/leasehold-go/leasehold/internal/cli/say"
	"github.com/leasehold-go/leasehold/internal/lab"
)

// waiting is a wait together with the messages and the queue positions that it has reported.
type waiting struct {
	*wait
	stderr bytes.Buffer
	now    time.Time // time that the clock of the wait shows; zero for the real time
	told   []int     // queue positions in the events that the wait reported, guarded by wait.mu
}

// newWaiting returns a wait that has not begun. Its clock shows the time "now" or, if "now" is
// zero, the real time. The parameter "own" is the id of an earlier grant of the same process, or
// empty.
func newWaiting(now time.Time, own string) *waiting {
	w := &waiting{now: now}
	w.next(own)
	return w
}

// next replaces the wait by a new one, as elect does each time it campaigns again.
func (w *waiting) next(own string) {
	now := func() time.Time {
		if w.now.IsZero() {
			return time.Now()
		}
		return w.now
	}
	w.wait = newWait(User{Say: say.NewMessages(&say.Output{To: &w.stderr}), Now: now}, w.wait, own)
}

// see passes a waiting event to w.wait. The event contains the record r of the held key and the
// queue position "place". If w waits for one of several keys, the parameter "all" is not nil. The
// result counts the events that w has reported.
func (w *waiting) see(r leasehold.Record, place int, all *allHeld) int {
	w.mu.Lock()
	w.tell = func(e leasehold.Event, _ int) { w.told = append(w.told, e.Position) } // the wait calls tell while it holds w.mu
	w.mu.Unlock()
	w.saw(leasehold.Event{Kind: leasehold.EventWaiting, Holder: &r, Position: place}, all)
	return len(w.positions())
}

// positions returns a copy of w.told, because a wait in progress may still append to w.told.
func (w *waiting) positions() []int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.told)
}

// wrote fails the test unless exactly n message lines contain the text and n events were reported.
func (w *waiting) wrote(t *testing.T, text string, n int) {
	t.Helper()
	if lines := strings.Count(w.stderr.String(), text); lines != n || len(w.positions()) != n {
		t.Errorf("%d lines and %d events, want %d: %.300s", lines, len(w.positions()), n, w.stderr.String())
	}
}

// early is the start time of each wait whose clock the test controls.
var early = time.Unix(1e9, 0)

// held returns a record that shows the key k held by owner, under the given grant id.
func held(owner, grant string) leasehold.Record {
	return leasehold.Record{Key: leasehold.Key{Partition: "k"}, Owner: owner, Grant: grant, Lease: time.Second}
}

func TestWaitIsReportedOncePerMinuteEvenIfHoldersChange(t *testing.T) {
	w := newWaiting(early, "")
	const minutes = 5
	for i := range minutes * 600 { // the holder changes ten times a second
		w.see(held(fmt.Sprint("owner", i), fmt.Sprint(i)), 0, nil)
		w.now = w.now.Add(time.Second / 10)
	}
	w.wrote(t, "waiting for k, held by ", minutes)
	lab.Want(t, "holders", w.holdersSeen(), minutes*600)
}

func TestWaitForSameHolderIsReportedOncePerMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWaiting(time.Time{}, "")
		w.start()
		w.see(held("o", "g"), 0, nil)
		time.Sleep(5*time.Minute + 30*time.Second)
		w.end()
		w.wrote(t, "waiting for k, held by o", 6)
	})
}

func TestElectReportsWaitOncePerMinuteAcrossTerms(t *testing.T) {
	w := newWaiting(early, "")
	const minutes = 3
	for i := range minutes * 30 { // a new term begins every two seconds
		if i > 0 {
			w.next("")
		}
		w.start()
		w.see(held(fmt.Sprint("owner", i), fmt.Sprint(i)), 0, nil)
		lab.Want(t, fmt.Sprint("holders in term ", i), w.holdersSeen(), 1)
		w.end()
		w.now = w.now.Add(2 * time.Second)
	}
	w.wrote(t, "waiting for k, held by ", minutes)
}

func TestWaitIsReportedOnlyIfAllPermitsAreHeld(t *testing.T) {
	w := newWaiting(time.Time{}, "")
	permits := (&Wanted{Permits: 2}).allHeld(leasehold.Keys("k"))
	for i, key := range leasehold.Keys("k/1", "k/2") {
		r := held("o", fmt.Sprint(i))
		r.Key = key
		if n := w.see(r, 0, permits); n != i || (w.holdersSeen() > 0) != (n > 0) {
			t.Errorf("permit %d: %d events, %d holders seen", i+1, n, w.holdersSeen())
		}
	}
}

func TestWaitMessageShowsHolderDataOnlyIfItIsOneShortLine(t *testing.T) {
	for data, want := range map[string]string{
		"deploying v42":          "held by o: \"deploying v42\"\n",
		"":                       "held by o\n",
		"two\nlines":             "held by o\n",
		strings.Repeat("a", 200): "held by o\n",
	} {
		w := newWaiting(time.Time{}, "")
		r := held("o", "g")
		r.Data = []byte(data)
		if w.see(r, 0, nil); !strings.HasSuffix(w.stderr.String(), want) {
			t.Errorf("%q, want %q at the end", &w.stderr, want)
		}
	}
}

func TestWaitMessageShowsQueuePosition(t *testing.T) {
	w := newWaiting(time.Time{}, "")
	w.see(held("o", "g"), 3, nil)
	w.wrote(t, "waiting for k, held by o, number 3 in the queue", 1)
}

// In these cases, place 0 means that the queue position was not known, for example because
// the waiter had not joined the queue yet.
func TestQueuePositionIsReportedAtMostOncePerSecond(t *testing.T) {
	type seen struct {
		at     time.Duration
		place  int
		events int // number of events so far
	}
	lab.Variants(t, map[string][]seen{
		"position known later":              {{0, 0, 1}, {time.Millisecond, 3, 2}},
		"position known at first":           {{0, 3, 1}},
		"same position again":               {{0, 3, 1}, {2 * time.Second, 3, 1}},
		"new position":                      {{0, 3, 1}, {2 * time.Second, 2, 2}},
		"new position after a minute":       {{0, 3, 1}, {time.Hour, 3, 2}, {time.Hour + time.Millisecond, 2, 3}},
		"new position too soon":             {{0, 3, 1}, {time.Millisecond, 2, 1}, {time.Second, 1, 2}},
		"new positions many times a second": {{0, 9, 1}, {100 * time.Millisecond, 8, 1}, {200 * time.Millisecond, 7, 1}, {1100 * time.Millisecond, 6, 2}, {1200 * time.Millisecond, 5, 2}},
		"position unknown for a while":      {{0, 3, 1}, {time.Second, 0, 1}, {2 * time.Second, 3, 1}},
		"position unknown after a minute":   {{0, 3, 1}, {time.Hour, 0, 2}, {time.Hour + time.Second, 3, 3}},
	}, func(t *testing.T, c []seen) {
		w := newWaiting(early, "")
		for _, s := range c {
			w.now = early.Add(s.at)
			w.see(held("o", "g"), s.place, nil)
			w.wrote(t, "waiting for k", s.events)
		}
	})
}

func TestDelayedReportOfWaitShowsLatestQueuePosition(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWaiting(time.Time{}, "")
		w.start()
		for _, place := range []int{4, 3, 2} {
			w.see(held("o", "g"), place, nil)
		}
		time.Sleep(5 * time.Second)
		synctest.Wait()
		lab.Want(t, "reported positions", w.positions(), []int{4, 2})
		w.see(held("o", "g"), 1, nil)
		w.wrote(t, "waiting for k", 3)
		w.see(held("o", "g"), 5, nil)
		w.saw(leasehold.Event{Kind: leasehold.EventGranted}, nil)
		time.Sleep(5 * time.Second)
		w.end()
		lab.Want(t, "positions after the wait has ended", w.positions(), []int{4, 2, 1})
	})
}

func TestElectReportsItsGrantFromPreviousTermOnlyOnce(t *testing.T) {
	w := newWaiting(early, "own")
	for range 100 {
		lab.Want(t, "reported waits", w.see(held("me", "own"), 0, nil), 0)
		w.now = w.now.Add(time.Second)
	}
	lab.Want(t, "stderr", w.stderr.String(), "leasehold: checking whether the former grant of k to this process is still current\n")
	lab.Want(t, "holders seen", w.holdersSeen(), 1)
	w.see(held("other", "other"), 0, nil)
	w.wrote(t, "waiting for k, held by other", 1)
}

// A call that acquires one of several permits waits in the queue of each permit. It moves
// forward in each queue separately, so no single position is right.
func TestWaitInMultipleQueuesReportsNoPosition(t *testing.T) {
	w := newWaiting(early, "")
	permits := (&Wanted{Permits: 2}).allHeld(leasehold.Keys("k"))
	for i, place := range []int{4, 3, 2, 1, 3} {
		r := held("o", fmt.Sprint(i))
		r.Key = leasehold.Keys("k/0", "k/1")[i%2]
		w.see(r, place, permits)
		w.now = w.now.Add(2 * time.Second)
	}
	w.wrote(t, "waiting", 1)
}

func TestWaitCountsAsTooShortIfShorterThanLeaseOfHolder(t *testing.T) {
	waited := &failure.WaitedError{Wait: 5 * time.Second}
	refused := func(r leasehold.Record) error { return &leasehold.HeldError{Holder: r, Err: waited} }
	lease := func(d time.Duration) leasehold.Record { return leasehold.Record{Lease: d} }
	for name, c := range map[string]struct {
		wanted Wanted
		err    error
		want   bool
	}{
		"a lease longer than the wait":  {Wanted{}, refused(lease(6 * time.Second)), true},
		"a lease as long as the wait":   {Wanted{}, refused(lease(5 * time.Second)), false},
		"a shared lease":                {Wanted{}, refused(leasehold.Record{Lease: time.Second, Session: "s"}), true},
		"one of several keys":           {Wanted{Keys: []string{"a", "b"}}, refused(lease(time.Second)), true},
		"one of several permits":        {Wanted{Permits: 2}, &allHeldError{"all held", refused(lease(time.Second))}, true},
		"refused before the wait ended": {Wanted{}, &leasehold.HeldError{Holder: lease(time.Minute)}, false},
		"ended by a signal":             {Wanted{}, &leasehold.HeldError{Holder: lease(time.Minute), Err: &failure.SignalError{}}, false},
		"no holder was seen":            {Wanted{}, waited, false},
		"granted":                       {Wanted{}, nil, false},
	} {
		c.wanted.Wait = waited.Wait
		lab.Want(t, name, c.wanted.wasTooShort(c.err), c.want)
	}
}

func TestErrorForHeldKeyStatesLengthOfWait(t *testing.T) {
	f := Wanted{Wait: 1500 * time.Millisecond}
	for took, want := range map[time.Duration]time.Duration{
		1501 * time.Millisecond: 1500 * time.Millisecond, 21700 * time.Millisecond: 21 * time.Second,
	} {
		var waited *failure.WaitedError
		if err := f.afterWait(&leasehold.HeldError{}, took); !errors.As(err, &waited) || waited.Wait != want || !failure.NotGranted(err) {
			t.Errorf("after %v: %v", took, err)
		}
	}
	lab.WantErr(t, "afterWait for a granted key", f.afterWait(nil, time.Second), nil)
}

func TestWaitReturnsTimeoutErrorIfDynamoDBNeverReplied(t *testing.T) {
	waited := &failure.WaitedError{Wait: time.Second}
	for name, c := range map[string]struct {
		err     error
		answers int
		refused bool
	}{
		"no answer":                     {waited, 0, false},
		"an answer without a holder":    {waited, 1, true},
		"no answer, but a known holder": {&leasehold.HeldError{Err: waited}, 0, true},
	} {
		err := afterSilence(c.err, c.answers, "locks", leasehold.Key{Partition: "job"})
		if got := failure.NotGranted(err); got != c.refused || !c.refused && !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, err := range []error{nil, leasehold.ErrClosed, &leasehold.OpError{Op: "acquire", Err: errors.Join(waited, errors.New("refused"))}} {
		lab.WantErr(t, "afterSilence", afterSilence(err, 0, "locks", leasehold.Key{}), err)
	}
}
