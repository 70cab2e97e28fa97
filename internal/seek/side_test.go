package seek_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/aws/smithy-go"

	"github.com/leasehold-go/leasehold/internal/protocol"
	"github.com/leasehold-go/leasehold/internal/seek"
)

// as wants one side of a read/write lock.
func (w *world) as(mode protocol.Mode) func(*seek.Want) {
	return func(want *seek.Want) {
		want.Mode, want.Side = mode, w.proto.(protocol.ReadWriting).ReadWrite(mode, want.NoWait)
	}
}

// entries are who holds a read/write lock.
func (w *world) entries(key string) []protocol.Record {
	w.Helper()
	all, err := w.proto.(protocol.ReadWriting).Entries(w.item(key))
	if err != nil {
		w.Fatal(err)
	}
	return all
}

func TestReadersShareAKeyAndAWriterWaitsForThemAll(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a, b := w.client("a").one("job", w.as(protocol.ModeRead)), w.client("b").one("job", w.as(protocol.ModeRead))
		c, began := w.client("writer"), time.Now()
		time.AfterFunc(3*time.Second, a.release)
		time.AfterFunc(5*time.Second, b.release)
		h := c.one("job", w.as(protocol.ModeWrite))
		if waited := time.Since(began); waited < 5*time.Second || waited > 8*time.Second || h.grant.Dead != nil {
			t.Errorf("granted after %v: %+v", waited, h.grant)
		}
		c.left()
	})
}

func TestAGrantThatFailsThoughTheKeyIsFreeIsRepeatedAfterAPause(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		c, began := w.client("first reader ever"), w.now()
		h := c.one("job", w.as(protocol.ModeRead))
		if sent := c.wire.requests(); !slices.Equal(sent, []string{"update", "get", "update"}) || h.grant.Sent == began {
			t.Errorf("sent %v within %v", sent, h.grant.Sent.Mono-began.Mono)
		}
	})
}

func TestAWriterThatWaitsKeepsNewReadersOut(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.client("a").one("job", w.as(protocol.ModeRead))
		writer := w.client("writer")
		ctx, cancel := context.WithCancel(t.Context())
		gone := make(chan struct{})
		go func() {
			defer close(gone)
			_, _ = writer.One(ctx, writer.want("job", w.as(protocol.ModeWrite)))
		}()
		time.Sleep(2 * time.Second) // it has posted its intent
		reader := w.client("b")
		_, err := reader.One(t.Context(), reader.want("job", noWait, w.as(protocol.ModeRead)))
		if held := (*heldError)(nil); !errors.As(err, &held) {
			t.Errorf("%v", err)
		}
		cancel()
		<-gone
		writer.left() // and takes its intent along
		reader.one("job", w.as(protocol.ModeRead))
		reader.left()
	})
}

func TestAWriterThatDoesNotWaitPostsNoIntent(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.client("a").one("job", w.as(protocol.ModeRead))
		writer := w.client("writer")
		_, err := writer.One(t.Context(), writer.want("job", noWait, w.as(protocol.ModeWrite)))
		if held := (*heldError)(nil); !errors.As(err, &held) || held.holder != "a" {
			t.Errorf("%v", err)
		}
		writer.left()
		if sent := writer.wire.requests(); !slices.Equal(sent, []string{"update"}) {
			t.Errorf("sent %v", sent)
		}
	})
}

func TestAWriterTakesOverAllDeadReadersAtOnce(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		for range 3 {
			w.client("dead").one("job", w.as(protocol.ModeRead))
		}
		c, began := w.client("writer"), time.Now()
		c.wire.limit(100)
		h := c.one("job", w.as(protocol.ModeWrite))
		if waited := time.Since(began); waited != timing.Lease {
			t.Errorf("after %v", waited)
		}
		if h.grant.Dead == nil || name(h.grant.Dead.Owner) != "dead" {
			t.Errorf("it has taken over %+v", h.grant.Dead)
		}
		c.left()
	})
}

func TestReadersRemoveReadersThatHaveBeenDeadForALease(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.client("dead").one("job", w.as(protocol.ModeRead))
		c := w.client("reader")
		for _, tc := range []struct {
			after time.Duration
			want  int
		}{{0, 2}, {2*timing.Lease - 1, 3}, {1, 2}} { // by then the first of its own is dead, too
			time.Sleep(tc.after)
			c.one("job", w.as(protocol.ModeRead))
			c.left()
			if got := len(w.entries("job")); got != tc.want {
				t.Errorf("%v later the row has %d entries, want %d", tc.after, got, tc.want)
			}
		}
	})
}

func TestAReaderTakesOverOneOfAHundredDeadReadersAndTheNextRemovesSome(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		dead := w.client("dead")
		for range 100 {
			dead.one("job", w.as(protocol.ModeRead))
		}
		c := w.client("reader")
		c.wire.limit(100)
		for _, want := range []int{100, 75} { // removed are those that have been dead for a lease
			began := time.Now()
			h := c.one("job", w.as(protocol.ModeRead))
			c.left()
			if h.grant.Dead == nil || len(w.entries("job")) != want {
				t.Errorf("the row has %d entries, want %d; granted after %v, has taken over %+v", len(w.entries("job")), want, time.Since(began), h.grant.Dead)
			}
			time.Sleep(timing.Lease)
		}
	})
}

func TestNobodyWaitsForAnAttemptOfItsOwnThatIsFoundWithLittleTrustLeft(t *testing.T) {
	for _, mode := range []protocol.Mode{protocol.ModeRead, protocol.ModeWrite} {
		inWorld(t, func(t *testing.T, w *world) {
			w.client("other").one("job", w.as(protocol.ModeRead)).release() // there is a row
			c := w.client("me")
			late := timing.Trust()/2 + time.Second
			c.wire.fate = func(n int, _ string, deliver func()) error {
				deliver()
				if n == 1 {
					time.Sleep(late)
					deliver()
				}
				return nil
			}
			began := time.Now()
			h := c.one("job", w.as(mode))
			if sent := c.wire.requests(); time.Since(began) > late+time.Second || len(sent) != 2 || h.grant.Dead != nil {
				t.Errorf("as %s granted after %v, by %v; has taken over %+v", mode, time.Since(began), sent, h.grant.Dead)
			}
			c.left()
			if got := w.entries("job"); len(got) != 1 || got[0].Grant != h.grant.Version {
				t.Errorf("as %s the row has %+v", mode, got)
			}
		})
	}
}

func TestAReaderWhoseOwnAttemptIsInTheRowWaitsForAWritersIntentAllTheSame(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.client("other").one("job", w.as(protocol.ModeRead)) // for whom the writer waits
		late := timing.Trust()/2 + time.Second
		writer := w.client("writer")
		ctx, cancel := context.WithTimeout(t.Context(), late+3*time.Second)
		defer cancel()
		c := w.client("reader")
		c.wire.fate = func(n int, _ string, deliver func()) error {
			deliver()
			switch n {
			case 1:
				writer.running.Go(func() { _, _ = writer.One(ctx, writer.want("job", w.as(protocol.ModeWrite))) })
				time.Sleep(late)
				deliver()
			case 100:
				return &smithy.GenericAPIError{Code: "AccessDeniedException", Fault: smithy.FaultClient}
			}
			return nil
		}
		c.one("job", w.as(protocol.ModeRead))
		if sent := slices.DeleteFunc(c.wire.requests(), func(name string) bool { return name == "get" }); len(sent) != 2 {
			t.Errorf("%d writes", len(sent))
		}
		c.left()
		writer.left()
	})
}

func TestAnAttemptToReadThatSomebodyElseHasRemovedIsNotNamedAgain(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.client("other").one("job", w.as(protocol.ModeRead))
		c := w.client("reader")
		c.wire.fate = func(n int, _ string, deliver func()) error {
			switch n {
			case 1: // it lands, and is answered when half of its trust is over
				deliver()
				time.Sleep(timing.Trust()/2 + time.Second)
				return errReset
			case 3: // this one is to replace it, but comes after its removal
				ours := slices.DeleteFunc(w.entries("job"), func(r protocol.Record) bool { return name(r.Owner) != "reader" })
				if len(ours) != 1 {
					t.Errorf("%d entries are its own", len(ours))
				}
				w.write(w.proto.(protocol.ReadWriting).ReadWrite(protocol.ModeRead, false).Sweep(ours[0].Key, ours))
			case 10:
				t.Error("it is not granted")
				return &smithy.GenericAPIError{Code: "AccessDeniedException", Fault: smithy.FaultClient}
			}
			deliver()
			return nil
		}
		c.one("job", w.as(protocol.ModeRead))
		if n := len(c.wire.requests()); n != 4 {
			t.Errorf("granted by request %d", n)
		}
	})
}

// A client may hold a lock through an outage, though its entry stands still.
func TestAReaderOfOnesOwnIsNeverDead(t *testing.T) {
	for name, tc := range map[string]struct {
		mode    protocol.Mode
		readers int
		granted bool // as others are dead
	}{
		"for a writer":                         {protocol.ModeWrite, 2, false},
		"for a reader who needs one to be":     {protocol.ModeRead, 100, true},
		"for a reader, of all that leave room": {protocol.ModeRead, 1, true},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				c := w.client("me")
				for range tc.readers {
					w.client("other").one("job", w.as(protocol.ModeRead))
				}
				own := w.entries("job")[0].Grant // the first who would be taken over
				c.Holds = func(_ protocol.Key, grant string) bool { return grant == own }
				c.wire.limit(200)
				ctx, cancel := context.WithTimeout(t.Context(), 4*timing.Lease)
				defer cancel()
				_, err := c.One(ctx, c.want("job", w.as(tc.mode)))
				if held := (*heldError)(nil); tc.granted && err != nil || !tc.granted && !errors.As(err, &held) {
					t.Errorf("%v", err)
				}
				c.left()
				if !slices.ContainsFunc(w.entries("job"), func(r protocol.Record) bool { return r.Grant == own }) {
					t.Error("it was taken over")
				}
			})
		})
	}
}
