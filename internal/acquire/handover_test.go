package acquire

import (
	"fmt"
	"testing"
	"time"
)

// seeksAfter fails the test unless w has received its turn without a grant, so that w must acquire
// the key itself. The turn must tell w to wait for the given delay first.
func seeksAfter(t *testing.T, w *Place, delay time.Duration) {
	t.Helper()
	if given := hasTurn(t, w); given.granted != nil || given.delay != delay {
		t.Errorf("the turn of %s: %+v, want a delay of %v", name(w), given, delay)
	}
}

// isNext fails the test unless Successor returns w, which may be nil. The parameter "held" is the
// grant of the key's holder.
func isNext(t *testing.T, l *LocalQueues, held *grant, w *Place) {
	t.Helper()
	if got := l.Successor(at("key"), held, false); got != w {
		t.Fatalf("the successor is %+v, want %+v", got, w)
	}
}

// handOn hands the key of the grant "from" over to the waiter w, and returns w's new grant with the
// given age.
func handOn(t *testing.T, l *LocalQueues, from *grant, w *Place, age time.Duration) *grant {
	t.Helper()
	isNext(t, l, from, w)
	to := &grant{holder: name(w), age: age}
	if !l.HandOver(w, to) {
		t.Fatalf("%s has left", name(w))
	}
	if given := hasTurn(t, w); given.granted != to {
		t.Fatalf("the turn of %s: %+v", name(w), given)
	}
	return to
}

// holding returns local queues that allow the given number of hand-overs in a row. One key is held
// by a grant of the given age. holding also returns this grant, and the given number of waiters for
// the key.
func holding(t *testing.T, handOvers int, age time.Duration, waiting int) (*LocalQueues, *grant, []*Place) {
	t.Helper()
	l := newQueues(handOvers)
	hasTurn(t, enter(l, "key", "first"))
	held := &grant{holder: "first", age: age}
	l.Granted(at("key"), held)
	var ws []*Place
	for i := range waiting {
		ws = append(ws, enter(l, "key", fmt.Sprint("waiter ", i)))
	}
	return l, held, ws
}

func TestNextWaiterIsDelayedIfHandOverLimitIsReached(t *testing.T) {
	l, held, ws := holding(t, 3, 10*time.Millisecond, 8)
	for _, w := range ws[:3] {
		held = handOn(t, l, held, w, 200*time.Millisecond)
	}
	isNext(t, l, held, nil)
	l.Pass(at("key"), held)
	// The longest grant so far lasted 200 ms. A waiter of another process pauses between two polls
	// for at most one and a half times the age of the current grant. So it polls at least once during
	// a delay of 300 ms.
	seeksAfter(t, ws[3], 300*time.Millisecond)
	held = &grant{age: time.Hour}
	l.Granted(at("key"), held)
	for _, w := range ws[4:7] { // Pass has set the count of hand-overs to zero
		held = handOn(t, l, held, w, time.Hour)
	}
	l.Pass(at("key"), held)
	seeksAfter(t, ws[7], 1500*time.Millisecond) // 1.5 s is the longest delay
	l.Pass(at("key"), nil)
}

func TestHandOversAreUnlimitedIfNoOtherProcessWaits(t *testing.T) {
	l, held, ws := holding(t, 3, time.Second, 9)
	for _, w := range ws[:8] {
		if to := l.Successor(at("key"), held, true); to != w {
			t.Fatalf("the successor is %+v, want %s", to, name(w))
		}
		held = &grant{age: time.Second}
		l.HandOver(w, held)
		hasTurn(t, w)
	}
	l.PassQueued(at("key"), held)
	seeksAfter(t, ws[8], 0)
}

func TestNextLocalWaiterIsNotDelayedIfRecordHasQueue(t *testing.T) {
	l, held, _ := holding(t, 2, time.Second, 0)
	for i := range 5 {
		next := enter(l, "key", fmt.Sprint("next ", i), Want{OneOfSeveral: true})
		l.PassQueued(at("key"), held)
		seeksAfter(t, next, 0)
		held = &grant{age: time.Second}
		l.Granted(at("key"), held)
	}
}

func TestNextWaiterIsNotDelayedBeforeHandOverLimitIsReached(t *testing.T) {
	l, held, ws := holding(t, 3, time.Minute, 2)
	held = handOn(t, l, held, ws[0], time.Minute)
	// The holder passes the turn to the next waiter without a hand-over, for example because
	// the holder has lost its lock.
	l.Pass(at("key"), held)
	seeksAfter(t, ws[1], 0)
}

func TestWaiterThatRejectsHandOverAcquiresKeyItself(t *testing.T) {
	l, held, _ := holding(t, 3, time.Minute, 0)
	next := enter(l, "key", "next", Want{OneOfSeveral: true})
	enter(l, "key", "behind")
	isNext(t, l, held, nil)
	l.Pass(at("key"), held)
	seeksAfter(t, next, 0)
}

func TestTurnGivenToWaiterForSeveralKeysCountsAsHandOver(t *testing.T) {
	l, held, _ := holding(t, 2, 100*time.Millisecond, 0)
	for i, delay := range []time.Duration{0, 150 * time.Millisecond, 0, 150 * time.Millisecond} {
		next := enter(l, "key", fmt.Sprint("next ", i), Want{OneOfSeveral: true})
		isNext(t, l, held, nil)
		l.Pass(at("key"), held)
		seeksAfter(t, next, delay)
		held = &grant{age: 100 * time.Millisecond}
		l.Granted(at("key"), held)
	}
}

// The delay depends on the longest grant, so Successor records the age of each grant. Pass must do
// so, too: a holder that has lost its lock, or whose release deletes the record, calls only Pass.
func TestDelayOfNextWaiterDependsOnLongestPastGrantOfKey(t *testing.T) {
	l, held, _ := holding(t, 2, 200*time.Millisecond, 0)
	for i, delay := range []time.Duration{0, 300 * time.Millisecond} {
		next := enter(l, "key", fmt.Sprint("next ", i), Want{OneOfSeveral: true})
		l.Pass(at("key"), held)
		seeksAfter(t, next, delay)
		held = &grant{age: 100 * time.Millisecond}
		l.Granted(at("key"), held)
	}
}

func TestHandOverSkipsWaiterThatHasLeft(t *testing.T) {
	l, held, ws := holding(t, 3, time.Second, 2)
	isNext(t, l, held, ws[0])
	if _, had := l.leave(ws[0]); had {
		t.Fatal("the first waiter already has a turn")
	}
	if l.HandOver(ws[0], &grant{}) || l.HandOver(ws[0], nil) {
		t.Error("handed over to a waiter that has left")
	}
	waits(t, ws[1])
	isNext(t, l, held, ws[1]) // the waiter ws[0] has left, so the holder of held still has the turn
	if !l.HandOver(ws[1], nil) {
		t.Error("the second waiter has left")
	}
	seeksAfter(t, ws[1], 0)
	l.Pass(at("key"), held) // does nothing, because the holder of held no longer has the turn
	if l.byKey[at("key")] == nil {
		t.Error("the previous holder passed a turn that it did not have")
	}
}

func TestNextWaiterGetsTurnIfHandedOverGrantHasAlreadyEnded(t *testing.T) {
	l, held, ws := holding(t, 3, time.Second, 2)
	to := l.Successor(at("key"), held, false)
	if !l.HandOver(to, &grant{ended: true}) {
		t.Fatal("the first waiter has left")
	}
	hasTurn(t, ws[0])
	seeksAfter(t, ws[1], 0)
}

// A goroutine that receives its turn may end its grant immediately, on another processor. The
// queue must know the grant by then. Otherwise, the queue would ignore the end of the grant, and
// the next waiter would never get its turn.
func TestHandOverStoresGrantBeforeItWakesWaiter(t *testing.T) {
	l, held, ws := holding(t, 3, time.Second, 2)
	to := &grant{asked: func() {
		if _, came := come(ws[0]); came {
			t.Error("the turn was sent before the grant was stored")
		}
	}}
	if !l.HandOver(l.Successor(at("key"), held, false), to) {
		t.Fatal("the first waiter has left")
	}
	hasTurn(t, ws[0])
}

func TestSuccessorIsNilIfGrantDoesNotHoldKey(t *testing.T) {
	l, held, _ := holding(t, 3, time.Second, 1)
	isNext(t, l, &grant{}, nil)
	if to := l.Successor(at("another key"), held, false); to != nil {
		t.Errorf("the successor for another key is %s", name(to))
	}
}

func TestTurnIsPassedToNextWaiterAfterSpecifiedDelay(t *testing.T) {
	l := newQueues(3)
	hasTurn(t, enter(l, "key", "a"))
	b := enter(l, "key", "b")
	l.PassAfter(at("key"), nil, time.Minute)
	seeksAfter(t, b, time.Minute)
}
