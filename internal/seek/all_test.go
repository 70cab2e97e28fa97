package seek_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/smithy-go"

	"github.com/leasehold-go/leasehold/internal/protocol"
	"github.com/leasehold-go/leasehold/internal/seek"
)

// wants are what a call of c wants of keys.
func (c *client) wants(keys ...string) []*seek.Want {
	var wants []*seek.Want
	for _, key := range keys {
		wants = append(wants, c.want(key, func(want *seek.Want) { want.OneOfSeveral = true }))
	}
	return wants
}

// owners are who holds keys.
func (w *world) owners(keys ...string) []string {
	w.Helper()
	var owners []string
	for _, key := range keys {
		owners = append(owners, w.owner(key))
	}
	return owners
}

func TestAllKeysAreGrantedInOneTransaction(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		c := w.client("me")
		found, err := c.All(t.Context(), c.wants("a", "b", "c"))
		if err != nil || len(found.Held) != 3 {
			t.Fatalf("%+v, %v", found, err)
		}
		for i, key := range []string{"a", "b", "c"} {
			if got := found.Held[i].(*holding).want.Key.Partition; got != key {
				t.Errorf("%s in the place of %s", got, key)
			}
		}
		if n := slices.Index(c.wire.requests(), "transact"); n != 0 || len(c.given) > 0 {
			t.Errorf("sent %v, gave back %v", c.wire.requests(), c.given)
		}
	})
}

func TestWhileOneOfAllIsHeldNoneIs(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		other := w.client("other").one("b")
		c := w.client("me")
		ctx, cancel := context.WithTimeout(t.Context(), timing.Lease/2)
		defer cancel()
		_, err := c.All(ctx, c.wants("a", "b", "c"))
		if held := (*heldError)(nil); !errors.As(err, &held) || held.key.Partition != "b" {
			t.Errorf("%v", err)
		}
		c.left()
		if got := w.owners("a", "b", "c"); !slices.Equal(got, []string{"", "other", ""}) {
			t.Errorf("held by %v", got)
		}
		if n := len(slices.DeleteFunc(c.wire.requests(), func(name string) bool { return name == "get" })); n != 1 {
			t.Errorf("%d writes: %v", n, c.wire.requests())
		}
		other.release()
		if found, err := c.All(t.Context(), c.wants("a", "b", "c")); err != nil || len(found.Held) != 3 {
			t.Errorf("%v", err)
		}
	})
}

func TestWhereTransactionsAreRefusedKeysAreGrantedOneByOne(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		c := w.client("me")
		c.wire.fate = func(_ int, name string, deliver func()) error {
			if name == "transact" {
				return &smithy.GenericAPIError{Code: "AccessDeniedException", Fault: smithy.FaultClient}
			}
			deliver()
			return nil
		}
		found, err := c.All(t.Context(), c.wants("a", "b"))
		if err != nil || len(found.Held) != 2 {
			t.Fatalf("%v", err)
		}
		if sent := c.wire.requests(); !slices.Equal(sent, []string{"transact", "update", "update"}) {
			t.Errorf("sent %v", sent)
		}
	})
}

func TestAfterFiveRefusalsAllKeysAreGrantedOneByOne(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		c, others := w.client("me"), w.client("others")
		c.wire.fate = func(_ int, name string, deliver func()) error {
			if name == "transact" { // each time somebody has been quicker
				defer others.one("b").release()
			}
			deliver()
			return nil
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		_, err := c.All(ctx, c.wants("a", "b"))
		sent := slices.DeleteFunc(c.wire.requests(), func(name string) bool { return name == "get" })
		if want := []string{"transact", "transact", "transact", "transact", "transact", "update", "update"}; err != nil || !slices.Equal(sent, want) {
			t.Errorf("%v, sent %v", err, sent)
		}
		c.left()
	})
}

func TestAKeyOfADeadHolderIsAwaitedWhileOthersAreHeld(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.client("other").one("b")
		c := w.client("me")
		c.wire.fate = func(_ int, name string, deliver func()) error {
			if name == "transact" {
				return &smithy.GenericAPIError{Code: "AccessDeniedException", Fault: smithy.FaultClient}
			}
			deliver()
			return nil
		}
		ctx, cancel := context.WithTimeout(t.Context(), timing.Lease+time.Second) // b's holder is dead by then
		defer cancel()
		found, err := c.All(ctx, c.wants("a", "b"))
		if err != nil || found.Held[1].(*holding).grant.Dead == nil {
			t.Errorf("%v", err)
		}
		c.left()
	})
}

func TestAHolderThatIsLostWhileOthersAreAwaitedIsAcquiredAgain(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		c := w.client("me")
		n := 0
		c.wire.fate = func(_ int, name string, deliver func()) error {
			if name == "transact" {
				return &smithy.GenericAPIError{Code: "AccessDeniedException", Fault: smithy.FaultClient}
			}
			deliver()
			if n++; n == 2 { // b was granted: but meanwhile a was lost
				c.mu.Lock()
				defer c.mu.Unlock()
				c.leases["a"].End(errors.New("lost"))
			}
			return nil
		}
		found, err := c.All(t.Context(), c.wants("a", "b"))
		if err != nil {
			t.Fatal(err)
		}
		for _, h := range found.Held {
			if cause := h.Lease().Ended(); cause != nil {
				t.Errorf("returned with a lost one: %v", cause)
			}
		}
		c.left()
	})
}

func TestATransactionThatIsDeliveredTwiceIsAGrant(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		c := w.client("me")
		c.wire.fate = func(_ int, name string, deliver func()) error {
			deliver()
			if name == "transact" {
				deliver()
			}
			return nil
		}
		began := w.now()
		found, err := c.All(t.Context(), c.wants("a", "b"))
		if err != nil || found.Held[0].(*holding).grant.Sent != began {
			t.Errorf("%v, sent %v", err, c.wire.requests())
		}
	})
}

func TestOfATransactionDeliveredTwiceOneRecordThatCanBeReadShowsTheGrant(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		c := w.client("me")
		c.wire.blind = true
		reads := 0
		c.wire.fate = func(_ int, name string, deliver func()) error {
			switch name {
			case "transact":
				deliver()
			case "get":
				if reads++; reads == 1 { // of a
					return errReset
				}
			}
			deliver()
			return nil
		}
		found, err := c.All(t.Context(), c.wants("a", "b"))
		if sent := c.wire.requests(); err != nil || len(found.Held) != 2 || !slices.Equal(sent, []string{"transact", "get", "get", "batch"}) {
			t.Errorf("%v, sent %v", err, sent)
		}
		c.left()
	})
}

func TestAGrantThatIsHeldIsNoAttemptWithoutAnAnswer(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		c := w.client("me")
		c.wire.blind = true
		unread := false
		c.wire.fate = func(_ int, name string, deliver func()) error {
			switch {
			case name == "transact":
				deliver()
			case name == "get" && !unread: // of a: only b shows that the first copy was applied
				unread = true
				return errReset
			}
			deliver()
			return nil
		}
		found, err := c.All(t.Context(), c.wants("a", "b"))
		if err != nil || !unread {
			t.Fatalf("%v, sent %v", err, c.wire.requests())
		}
		for _, h := range found.Held {
			if h := h.(*holding); c.IsUnsettled(h.want.Key, h.grant.Version) { // its own client would take it over
				t.Errorf("%s is held, and taken for unsettled", h.want.Key.Partition)
			}
		}
	})
}

func TestAGrantThatWasBrokenBeforeItsTransactionIsReadShowsWhoHasTheKeyNow(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		c, other := w.client("me"), w.client("other")
		taken := false
		c.wire.fate = func(_ int, name string, deliver func()) error {
			if name == "batch" && !taken {
				taken = true
				w.delete("b")
				time.AfterFunc(time.Second, other.one("b").release)
			}
			deliver()
			return nil
		}
		if _, err := c.All(t.Context(), c.wants("a", "b")); err != nil {
			t.Fatal(err)
		}
		// Both are given up, a is granted anew, and b is only looked at.
		if sent := c.wire.requests(); !slices.Equal(sent[:6], []string{"transact", "batch", "update", "update", "update", "get"}) {
			t.Errorf("sent %v", sent)
		}
		c.left()
	})
}

func TestAGrantThatWasFreedBeforeItsTransactionIsReadIsNotHeld(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		c := w.client("me")
		broken := false
		c.wire.fate = func(_ int, name string, deliver func()) error {
			if name == "batch" && !broken {
				broken = true
				r, err := w.proto.Decode(w.item("b"))
				if err != nil {
					t.Error(err)
				}
				w.write(w.proto.Break(r, protocol.Break{Version: protocol.NewVersion()})) // which shows its grant as before
			}
			deliver()
			return nil
		}
		if _, err := c.All(t.Context(), c.wants("a", "b")); err != nil {
			t.Fatal(err)
		}
		if got := w.owners("a", "b"); !broken || !slices.Equal(got, []string{"me", "me"}) {
			t.Errorf("held by %q", got)
		}
		c.left()
	})
}

func TestReadsThatFailAfterATransactionAreToldAndRepeated(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		c := w.client("me")
		reads := 0
		c.wire.fate = func(_ int, name string, deliver func()) error {
			if name == "batch" {
				if reads++; reads <= 2 {
					return errReset
				}
			}
			deliver()
			return nil
		}
		found, err := c.All(t.Context(), c.wants("a", "b"))
		if sent := c.wire.requests(); err != nil || len(found.Held) != 2 || !slices.Equal(sent, []string{"transact", "batch", "batch", "batch"}) {
			t.Errorf("%v, sent %v", err, sent)
		}
		if len(c.failing) != 1 || !errors.Is(c.failing[0], errReset) {
			t.Errorf("told of %v", c.failing)
		}
		c.left()
	})
}

func TestATransactionWhoseRecordsCannotBeReadInTimeIsReplacedOneByOne(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		c, began := w.client("me"), time.Now()
		c.wire.fate = func(_ int, name string, deliver func()) error {
			if name == "batch" && time.Since(began) < timing.Trust() {
				return errReset
			}
			deliver()
			return nil
		}
		found, err := c.All(t.Context(), c.wants("a", "b"))
		if took := time.Since(began); err != nil || took < seek.TryFor/2 || took > seek.TryFor {
			t.Fatalf("%v, after %v", err, took)
		}
		for _, h := range found.Held {
			if left := h.Lease().Remaining(); left < timing.Trust() {
				t.Errorf("trusted for %v", left)
			}
		}
		c.left()
	})
}

func TestATransactionWhoseRecordsMayNotBeReadIsUndone(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		c := w.client("me")
		c.wire.fate = func(_ int, name string, deliver func()) error {
			if name == "batch" {
				return &smithy.GenericAPIError{Code: "AccessDeniedException", Fault: smithy.FaultClient}
			}
			deliver()
			return nil
		}
		_, err := c.All(t.Context(), c.wants("a", "b"))
		if sent := c.wire.requests(); !errors.As(err, new(*failedError)) || !slices.Equal(sent[:2], []string{"transact", "batch"}) {
			t.Errorf("%v, sent %v", err, sent)
		}
		c.left()
		if got := w.owners("a", "b"); len(c.grants) > 0 || !slices.Equal(got, []string{"", ""}) {
			t.Errorf("held by %q", got)
		}
	})
}

func TestAllKeysGrantedToACallerWhoHasJustLeftAreGivenBack(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		c := w.client("me")
		ctx, leave := context.WithCancel(t.Context())
		wants := c.wants("a", "b")
		hold := wants[1].Hold
		wants[1].Hold = func(ctx context.Context, g seek.Grant) seek.Holding {
			leave()
			time.Sleep(time.Second) // by then the call has given up
			return hold(ctx, g)
		}
		if _, err := c.All(ctx, wants); !errors.Is(err, context.Canceled) {
			t.Errorf("%v", err)
		}
		c.left()
		if got := w.owners("a", "b"); len(c.grants) != 2 || !slices.Equal(got, []string{"", ""}) {
			t.Errorf("of %d grants, held by %q", len(c.grants), got)
		}
	})
}

func TestWhileAllKeysAreTakenOneByOneTheTurnsOfThoseToComeAreOthers(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		c := w.client("me")
		var other *holding
		c.wire.fate = func(_ int, name string, deliver func()) error {
			if name == "transact" { // somebody has been quicker, and nothing tells
				other = w.client("other").one("a")
				return &smithy.GenericAPIError{Code: "AccessDeniedException", Fault: smithy.FaultClient}
			}
			deliver()
			return nil
		}
		granted := make(chan error)
		go func() {
			_, err := c.All(t.Context(), c.wants("a", "b"))
			granted <- err
		}()
		time.Sleep(timing.Lease / 4) // it waits for a, and holds nothing
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if found, err := c.One(ctx, c.want("b")); err != nil {
			t.Errorf("nobody holds b: %v", err)
		} else {
			found.Held[0].(*holding).release()
		}
		other.release()
		if err := <-granted; err != nil {
			t.Error(err)
		}
		c.left()
	})
}

func TestAllKeysAreGrantedUnderOneSessionThoughItHasEndedMeanwhile(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		c := w.client("me")
		c.Sessions = sessions{c}
		if _, err := c.All(t.Context(), c.wants("a", "b", "c")); err != nil {
			t.Fatal(err)
		}
		for _, g := range c.grants {
			if last := c.grants[len(c.grants)-1]; g.Session != last.Session || g.Record.Session != last.Record.Session {
				t.Errorf("%s is under another session than %s", g.Record.Key.Partition, last.Record.Key.Partition)
			}
		}
		c.left()
	})
}

func TestACallForAllKeysPassesEachTurnOnOnce(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		c := w.client("me")
		c.wire.fate = func(_ int, name string, deliver func()) error {
			if name == "transact" {
				w.client("other").one("a")
				return &smithy.GenericAPIError{Code: "AccessDeniedException", Fault: smithy.FaultClient}
			}
			deliver()
			return nil
		}
		ctx, leave := context.WithTimeout(t.Context(), timing.Lease/2)
		defer leave()
		var first, second func() bool
		time.AfterFunc(time.Second, func() { first, second = c.join("b"), c.join("b") }) // whose turn has been passed on
		if _, err := c.All(ctx, c.wants("a", "b")); !errors.As(err, new(*heldError)) {
			t.Errorf("%v", err)
		}
		c.left()
		synctest.Wait() // for those who have joined, as the race detector sees it
		if !first() || second() {
			t.Error("not the first in its line has the turn alone")
		}
	})
}
