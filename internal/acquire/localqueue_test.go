package acquire

import (
	"context"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/leasehold-go/leasehold/internal/lease"
	"github.com/leasehold-go/leasehold/internal/protocol"
)

// grant is a Holding with an age and a holder that the test chooses.
type grant struct {
	holder string
	age    time.Duration
	ended  bool
	asked  func() // called by IsOver, unless it is nil
}

func (g *grant) Age() time.Duration      { return g.age }
func (g *grant) Record() protocol.Record { return *by(g.holder) }
func (g *grant) Lease() *lease.Lease     { return nil }

func (g *grant) IsOver() bool {
	if g.asked != nil {
		g.asked()
	}
	return g.ended
}

// newQueues returns the local queues of a client. The client hands a key over at most handOvers
// times in a row. Its pollMin is 1 ms, and its pollMax is 1 s.
func newQueues(handOvers int) *LocalQueues {
	return newLocalQueues(handOvers, time.Millisecond, time.Second)
}

func at(key string) protocol.Key { return protocol.Key{Partition: key} }

func by(owner string) *protocol.Record { return &protocol.Record{Owner: owner} }

// enter joins the queue of a key for a caller with the given options, if there are any.
func enter(l *LocalQueues, key, caller string, options ...Want) *Place {
	want := append(options, Want{})[0]
	want.Key = at(key)
	p := newPlace(context.WithValue(context.Background(), nameOf{}, caller), &want, nil)
	l.join(p)
	return p
}

type nameOf struct{}

// name returns the name of the caller, which enter has stored in p.
func name(p *Place) string { return p.Ctx.Value(nameOf{}).(string) }

// come returns the turn of w. It returns false if the turn has not come yet.
func come(w *Place) (turn, bool) {
	select {
	case given := <-w.turns:
		return given, true
	default:
		return turn{}, false
	}
}

// isTold fails the test unless the holder that was reported to w has the wanted name. If want is
// "", no holder may have been reported.
func isTold(t *testing.T, w *Place, want string) {
	t.Helper()
	got := ""
	select {
	case holder := <-w.held:
		got = holder.Owner
	default:
	}
	if got != want {
		t.Errorf("the holder reported to %s is %q, want %q", name(w), got, want)
	}
}

// isEmpty fails the test if l still has a queue for any key.
func isEmpty(t *testing.T, l *LocalQueues) {
	t.Helper()
	if len(l.byKey) > 0 {
		t.Errorf("queues are left: %v", l.byKey)
	}
}

// isHeldBy fails the test unless the holder has the wanted name. If want is "", holder must be nil.
func isHeldBy(t *testing.T, holder *protocol.Record, want string) {
	t.Helper()
	if (holder == nil) != (want == "") || holder != nil && holder.Owner != want {
		t.Errorf("the holder is %+v, want %q", holder, want)
	}
}

// hasTurn fails the test unless the turn of w has come, and returns that turn.
func hasTurn(t *testing.T, w *Place) turn {
	t.Helper()
	given, ok := come(w)
	if !ok || given.of != w {
		t.Fatalf("it is not the turn of %s", name(w))
	}
	return given
}

func waits(t *testing.T, ws ...*Place) {
	t.Helper()
	for _, w := range ws {
		if _, ok := come(w); ok {
			t.Fatalf("it is the turn of %s already", name(w))
		}
	}
}

func TestLocalWaitersGetTurnsOneByOneInOrder(t *testing.T) {
	l := newQueues(16)
	a, b, c := enter(l, "key", "a"), enter(l, "key", "b"), enter(l, "key", "c")
	other := enter(l, "other key", "d")
	hasTurn(t, other)
	for _, w := range []*Place{a, b, c} {
		seeksAfter(t, w, 0)
		waits(t, a, b, c)
		l.Pass(at("key"), nil)
	}
	l.Pass(at("other key"), nil)
	isEmpty(t, l)
}

func TestGoroutineWithoutTurnCannotPassTurnToNextWaiter(t *testing.T) {
	l := newQueues(16)
	a, b := enter(l, "key", "a"), enter(l, "key", "b")
	hasTurn(t, a)
	held, another := &grant{holder: "a"}, &grant{holder: "x"}
	l.Pass(at("key"), another)
	waits(t, b)
	l.Granted(at("key"), held)
	l.Pass(at("key"), another)
	l.Pass(at("key"), nil)
	waits(t, b)
	l.Pass(at("key"), held)
	hasTurn(t, b)
	l.Pass(at("unknown key"), held)
}

func TestLeaveGivesBackTurnThatWaiterHasNotReceivedYet(t *testing.T) {
	l := newQueues(16)
	a, b, c := enter(l, "key", "a"), enter(l, "key", "b"), enter(l, "key", "c")
	hasTurn(t, a)
	if given, had := l.leave(b); had {
		t.Errorf("b had a turn: %+v", given)
	}
	l.Pass(at("key"), nil)
	waits(t, b)
	if given, had := l.leave(c); !had || given.of != c {
		t.Errorf("c had no turn: %+v", given)
	}
	l.Pass(at("key"), nil)
	isEmpty(t, l)
}

func TestWaitersForSeveralKeysCanShareOneChannel(t *testing.T) {
	l := newQueues(16)
	enter(l, "b", "holder")
	turns := make(chan turn, 2)
	var ws []*Place
	for _, key := range []string{"a", "b"} {
		w := newPlace(t.Context(), &Want{Key: at(key), OneOfSeveral: true}, turns)
		l.join(w)
		ws = append(ws, w)
	}
	if given := <-turns; given.of != ws[0] {
		t.Errorf("the first turn is for key %s", given.of.Want.Key)
	}
	l.Pass(at("b"), nil)
	if given, had := l.leave(ws[0]); !had || given.of != ws[1] {
		t.Errorf("Leave returned %+v, want the other waiter's turn", given)
	}
}

func TestQueuedCallWithOptionNoWaitReceivesRecordOfNewHolder(t *testing.T) {
	for name, tc := range map[string]struct {
		known func(l *LocalQueues)
		want  string
	}{
		"held elsewhere":     {func(l *LocalQueues) { l.ReportHolder(at("key"), by("elsewhere")) }, "elsewhere"},
		"granted here":       {func(l *LocalQueues) { l.Granted(at("key"), &grant{holder: "a"}) }, "a"},
		"granted, and ended": {func(l *LocalQueues) { l.Granted(at("key"), &grant{holder: "a", ended: true}) }, "a"},
	} {
		t.Run(name, func(t *testing.T) {
			l := newQueues(16)
			enter(l, "key", "a")
			waiting, before := enter(l, "key", "b"), enter(l, "key", "c", Want{NoWait: true})
			isTold(t, before, "")
			tc.known(l)
			isTold(t, before, tc.want)
			isTold(t, waiting, "")
			if _, had := l.leave(before); had {
				t.Error("the waiter got both the holder and a turn")
			}
		})
	}
}

func TestNewCallWithOptionNoWaitReceivesRecordOfHolderAtOnce(t *testing.T) {
	l := newQueues(16)
	hasTurn(t, enter(l, "key", "a"))
	l.ReportHolder(at("key"), by("elsewhere"))
	isTold(t, enter(l, "key", "b", Want{NoWait: true}), "elsewhere")
	held := &grant{holder: "a"}
	l.Granted(at("key"), held)
	isTold(t, enter(l, "key", "c", Want{NoWait: true}), "a")
	isHeldBy(t, l.Holder(at("key")), "a")
	b := enter(l, "key", "d")
	l.Pass(at("key"), held)
	hasTurn(t, b)
	isHeldBy(t, l.Holder(at("key")), "") // the goroutine with the turn has no grant yet
	l.Pass(at("key"), nil)
	isHeldBy(t, l.Holder(at("key")), "") // no waiter is left, so the key has no queue
	l.ReportHolder(at("key"), by("elsewhere"))
	l.Granted(at("key"), held)
	isEmpty(t, l)
}

func TestNextWaiterGetsTurnIfNewGrantHasAlreadyEnded(t *testing.T) {
	l := newQueues(16)
	hasTurn(t, enter(l, "key", "a"))
	b := enter(l, "key", "b")
	l.Granted(at("key"), &grant{holder: "a", ended: true})
	hasTurn(t, b)
}

func TestResumedGrantGetsTurnOnlyIfNoOtherGoroutineHasTurn(t *testing.T) {
	l := newQueues(16)
	resumed := &grant{holder: "resumed"}
	l.GrantedOutOfTurn(at("free"), resumed)
	next := enter(l, "free", "b")
	waits(t, next)
	l.Pass(at("free"), resumed)
	hasTurn(t, next)

	hasTurn(t, enter(l, "sought", "a"))
	l.GrantedOutOfTurn(at("sought"), resumed)
	next = enter(l, "sought", "b")
	l.Pass(at("sought"), resumed)
	waits(t, next)
	l.Pass(at("sought"), nil)
	hasTurn(t, next)

	l.GrantedOutOfTurn(at("ended"), &grant{ended: true})
	if l.byKey[at("ended")] != nil {
		t.Error("a grant that has ended keeps a queue")
	}
}

func TestTakeReturnsFalseIfAnotherGoroutineHasTurnForKey(t *testing.T) {
	l := newQueues(16)
	b := enter(l, "b", "b")
	hasTurn(t, b)
	if l.take(at("b")) {
		t.Fatal("Take returned true while a goroutine has the turn")
	}
	l.Pass(at("b"), nil)
	if !l.take(at("b")) {
		t.Fatal("Take returned false, but no goroutine has the turn")
	}
	next := enter(l, "b", "next")
	waits(t, next)
	l.Pass(at("b"), nil)
	hasTurn(t, next)
}

// TestTwoGoroutinesNeverHoldSameKey lets many goroutines acquire and release keys, and leave the
// queues of keys, at the same time. If two goroutines hold one key together, the race detector
// reports a race. If a waiter never gets its turn, the test does not end.
func TestTwoGoroutinesNeverHoldSameKey(t *testing.T) {
	l := newQueues(3)
	// Only the goroutine that has the turn for a key writes the string of that key.
	has := map[string]*string{"a": new(string), "b": new(string)}
	var wg sync.WaitGroup
	for i := range 50 {
		wg.Go(func() {
			chance := rand.New(rand.NewPCG(1, uint64(i)))
			for range 50 {
				key := []string{"a", "b"}[chance.IntN(2)]
				w := enter(l, key, "", Want{NoWait: chance.IntN(5) == 0, OneOfSeveral: chance.IntN(5) == 0})
				if chance.IntN(5) == 0 {
					if given, had := l.leave(w); had {
						l.Pass(at(key), given.granted)
					}
					continue
				}
				select {
				case <-w.held:
					continue
				case given := <-w.turns:
					held := given.granted
					if held == nil && chance.IntN(3) > 0 {
						held = &grant{holder: "one"}
						l.Granted(at(key), held)
					}
					*has[key] += "x"
					if held == nil || chance.IntN(3) == 0 {
						l.Pass(at(key), held)
						continue
					}
					for {
						next := l.Successor(at(key), held, chance.IntN(2) == 0)
						if next == nil {
							l.Pass(at(key), held)
							break
						}
						if l.HandOver(next, &grant{holder: "next"}) {
							break
						}
					}
				}
			}
		})
	}
	wg.Wait()
	isEmpty(t, l)
	if strings.Trim(*has["a"]+*has["b"], "x") != "" || slices.Contains([]string{*has["a"], *has["b"]}, "") {
		t.Error("a key was never acquired")
	}
}

// In this test, only the first of two callers reads the record and reports the holder. Then the
// first caller gives up. If the second caller gives up, too, its error must name the same holder.
func TestLocalQueueRemembersHolderThatPreviousCallReported(t *testing.T) {
	l := newQueues(3)
	first, second := enter(l, "key", "first"), enter(l, "key", "second")
	l.ReportHolder(at("key"), by("elsewhere"))
	_, _ = come(first)
	l.Pass(at("key"), nil)
	// Holder returns nil again, because the reported holder may have released the key since the
	// report.
	isHeldBy(t, l.Holder(at("key")), "")
	isHeldBy(t, l.LastHolder(at("key")), "elsewhere")
	hasTurn(t, second)
	l.Granted(at("key"), &grant{holder: "here"})
	isHeldBy(t, l.LastHolder(at("key")), "here")
}

func TestLocalQueueRemembersThatDynamoDBHasAnsweredForKey(t *testing.T) {
	for name, report := range map[string]func(l *LocalQueues){
		"held elsewhere": func(l *LocalQueues) { l.ReportHolder(at("key"), by("elsewhere")) },
		"granted here":   func(l *LocalQueues) { l.Granted(at("key"), &grant{holder: "a"}) },
	} {
		l := newQueues(16)
		if l.IsKnown(at("key")) {
			t.Errorf("%s: known without a queue", name)
		}
		hasTurn(t, enter(l, "key", "a"))
		if l.IsKnown(at("key")) {
			t.Errorf("%s: known before", name)
		}
		if report(l); !l.IsKnown(at("key")) {
			t.Errorf("%s: not known", name)
		}
	}
}
