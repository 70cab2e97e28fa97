package election_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/lab"
	"github.com/leasehold-go/leasehold/layout"
)

func TestObserversAreToldOfTheLeaderNowAndOfEveryChange(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		e, _, _ := elects(w, lab.Config())
		other, _, _ := elects(w, lab.Config())
		watching, _, wire := elects(w, lab.Config())
		o := observe(t, watching)
		o.shows(nobody)
		lab.Elapse(time.Minute)
		o.shows()

		first := campaign(w, e, "a")
		lab.Elapse(polls)
		o.shows(leaderOf(first, "a"))
		lab.Elapse(time.Minute) // renewals are no change
		o.shows()
		if err := first.Renew(t.Context(), leasehold.WithData([]byte("b"))); err != nil {
			t.Fatal(err)
		}
		lab.Elapse(polls)
		o.shows(leaderOf(first, "b"))

		late := observe(t, watching) // at once what is
		late.shows(leaderOf(first, "b"))
		if err := late.end(); err != nil {
			t.Error(err)
		}

		w.Release(first)
		lab.Elapse(polls)
		o.shows(nobody)
		second := campaign(w, other, "b")
		lab.Elapse(polls)
		o.shows(leaderOf(second, "b"))
		w.Release(second)
		third := campaign(w, e, "b")
		lab.Elapse(polls)
		news := o.next()
		if len(news) == 0 || news[len(news)-1].Leader != leaderOf(third, "b") {
			t.Errorf("yielded %v, want %v", news, leaderOf(third, "b"))
		}
		w.Release(third)
		if err := o.end(); err != nil {
			t.Errorf("the end of its context is no error: %v", err)
		}
		for _, c := range wire.Sent() {
			if c.Op != "GetItem" {
				t.Errorf("an observer sent %s", c.Op)
			}
		}
	})
}

// A term of the same leader with the same number: a peer's, which has none.
func TestANewTermOfTheSameLeaderIsAChange(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		e, _, _ := elects(w, lab.Config())
		term := campaign(w, e, "a")
		o := observe(t, e)
		o.shows(leaderOf(term, "a"))
		w.Update(seat, map[string]types.AttributeValue{"grantId": lab.Str("another")})
		lab.Elapse(polls)
		o.shows(leaderOf(term, "a"))
		_ = o.end()
	})
}

func TestADeadLeaderIsFoundAfterItsLease(t *testing.T) {
	short := lab.Config()
	short.Lease = 4 * time.Second
	shared := short
	shared.SharedLease = true
	for name, cfg := range map[string]leasehold.Config{"renewed one by one": short, "under a shared lease": shared} {
		t.Run(name, func(t *testing.T) {
			lab.InBubble(t, func(t *testing.T, w *lab.World) {
				e, _, wire := elects(w, cfg)
				watching, _, _ := elects(w, lab.Config()) // its own lease is another
				term := campaign(w, e, "a")
				o := observe(t, watching)
				o.shows(leaderOf(term, "a"))
				lab.Elapse(time.Minute)
				o.shows()
				wire.SetFault(lab.Cut)
				died := time.Now()
				lab.Elapse(2 * time.Minute)
				news := o.next()
				if len(news) != 1 || news[0].Leader != nobody {
					t.Fatalf("yielded %v, want nobody", news)
				}
				// The version that stands still was seen up to a renewal and a poll before.
				if after := news[0].at.Sub(died); after < 3*time.Second-polls || after > 4*time.Second+polls {
					t.Errorf("found dead after %v", after)
				}
				_ = o.end()
			})
		})
	}
}

func TestASessionThatWasEndedIsNoLeaders(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		cfg := lab.Config()
		cfg.SharedLease = true
		e, c, _ := elects(w, cfg)
		watching, _, wire := elects(w, lab.Config())
		campaign(w, e, "a")
		o := observe(t, watching)
		lab.Elapse(time.Minute)
		o.next()
		if n := len(wire.Sent()); n > 60*5 {
			t.Errorf("%d reads in a minute", n)
		}
		if err := c.Close(t.Context()); err != nil { // which marks the session alone
			t.Fatal(err)
		}
		lab.Elapse(polls)
		o.shows(nobody)
		_ = o.end()
	})
}

func TestALeaderIsDeadByTheWallClockWhereRecordsSayWhen(t *testing.T) {
	lab.InLayout(t, layout.DynamoDLM{MaxSkew: 2 * time.Second}, func(t *testing.T, w *lab.World, cfg leasehold.Config) {
		e, _, wire := elects(w, cfg)
		term := campaign(w, e, "")
		watching, c, remote := elects(w, cfg)
		remote.SetFault(lab.Slow(10 * time.Millisecond))
		o := observe(t, watching)
		lab.Elapse(10 * time.Millisecond)
		o.shows(leaderOf(term, ""))
		lab.Elapse(time.Minute)
		o.shows()
		wire.SetFault(lab.Cut)
		lab.Elapse(5 * time.Second) // what was on its way has arrived
		r, err := c.Get(t.Context(), seat)
		if err != nil {
			t.Fatal(err)
		}
		lab.Elapse(2 * time.Minute)
		news := o.next()
		if len(news) != 1 || news[0].Leader != nobody {
			t.Fatalf("yielded %v, want nobody", news)
		}
		// The most by which clocks differ, and the second to which records round.
		if late := news[0].at.Sub(r.ExpiresAt); late < 3*time.Second || late > 3*time.Second+polls {
			t.Errorf("found dead %v after its expiry", late)
		}
		_ = o.end()
	})
}

func TestALeaderThatWasFoundDeadAndRenewsIsYieldedAgain(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		e, _, _ := elects(w, lab.Config())
		term := campaign(w, e, "a")
		began := time.Now()
		fast, _ := w.Client(lab.Config(), lab.Clocks(func() (mono, boot time.Duration) { // ten times too fast
			since := 10 * time.Since(began)
			return since, since
		}))
		o := observe(t, newElection(w, fast))
		lab.Elapse(time.Minute)
		news := o.next()
		for i, got := range news {
			want := nobody
			if i%2 == 0 {
				want = leaderOf(term, "a")
			}
			if got.Leader != want {
				t.Errorf("yielded %v", news)
			}
		}
		if len(news) < 5 { // a renewal every 5 s, and 20 s of its clock are 2 s
			t.Errorf("yielded %v", news)
		}
		_ = o.end()
		w.Release(term)
	})
}

// A client remembers what it has observed of so many keys; an observer
// remembers its own.
func TestADeadLeaderIsFoundThoughManyOtherKeysAreObserved(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		e, _, wire := elects(w, lab.Config())
		campaign(w, e, "a")
		wire.SetFault(lab.Cut)
		watching, c, _ := elects(w, lab.Config())
		o := observe(t, watching)
		o.next()
		others := make([]leasehold.Observation, 10_000)
		for range 25 {
			for i := range others {
				others[i] = leasehold.Observation{Key: leasehold.Key{Partition: fmt.Sprint("other/", i)}, Version: "v", Lease: time.Minute, Since: time.Now()}
			}
			if err := c.ImportObservations(time.Millisecond, others...); err != nil {
				t.Fatal(err)
			}
			lab.Elapse(time.Second)
		}
		o.shows(nobody)
		_ = o.end()
	})
}

// A reply says what was when it was asked for, not what is when it comes.
func TestALateReplyMakesNoLeaderDead(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		e, _, _ := elects(w, lab.Config())
		cfg := lab.Config()
		cfg.PollMax = 100 * time.Millisecond
		watching, _, wire := elects(w, cfg)
		elected := time.Now()
		at := func(d time.Duration) time.Duration { return time.Until(elected.Add(d)) }
		late := 0
		wire.SetFault(func(r *lab.Request) (*http.Response, error) {
			if at(17300*time.Millisecond) > 0 || at(17850*time.Millisecond) <= 0 {
				return r.Send()
			}
			late++
			return lab.Slow(at(20200 * time.Millisecond))(r) // of a lease of 20 s
		})
		term, err := e.Campaign(t.Context(), "a", leasehold.WithoutRenewal())
		if err != nil {
			t.Fatal(err)
		}
		o := observe(t, watching)
		lab.Elapse(17900 * time.Millisecond)
		if err := term.Renew(t.Context()); err != nil {
			t.Fatal(err)
		}
		lab.Elapse(10 * time.Second)
		o.shows(leaderOf(term, "a"))
		if late != 1 {
			t.Errorf("%d replies were late", late)
		}
		_ = o.end()
		w.Release(term)
	})
}

func TestATermThatNobodyBelievesInIsNoLeader(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		e, c, wire := elects(w, lab.Config())
		wire.SetFault(func(r *lab.Request) (*http.Response, error) {
			switch {
			case r.Grants():
				_, _ = r.Send()
				return nil, lab.ErrReset
			case r.Op == "GetItem":
				return r.Send()
			}
			return nil, lab.ErrReset // it cannot be given back either
		})
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		defer cancel()
		if _, err := e.Campaign(ctx, "a"); err == nil {
			t.Fatal("elected without an answer")
		}
		lab.Elapse(5 * time.Second)
		o := observe(t, e)
		o.shows(nobody)
		_ = o.end()
		_ = c.Close(t.Context())
	})
}

func TestObserversWaitForDynamoDBForAsLongAsItTakes(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		e, _, _ := elects(w, lab.Config())
		watching, _, wire := elects(w, lab.Config())
		o := observe(t, watching)
		o.shows(nobody)
		for _, fault := range []lab.Fault{
			lab.Cut,
			func(*lab.Request) (*http.Response, error) {
				return nil, lab.ErrReset
			},
			func(*lab.Request) (*http.Response, error) {
				return lab.Refusal(400, "ProvisionedThroughputExceededException"), nil
			},
		} {
			wire.SetFault(fault)
			term := campaign(w, e, "a")
			wire.Sent()
			lab.Elapse(time.Minute)
			o.shows()
			if n := len(wire.Sent()); n > 100 {
				t.Errorf("%d requests in a minute", n)
			}
			wire.SetFault(nil)
			lab.Elapse(5 * time.Second)
			o.shows(leaderOf(term, "a"))
			w.Release(term)
			lab.Elapse(polls)
			o.shows(nobody)
		}
		if err := o.end(); err != nil {
			t.Error(err)
		}
	})
}

func TestObservingEndsWithAnErrorThatStays(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		e, c, wire := elects(w, lab.Config())
		o := observe(t, e)
		wire.SetFault(func(*lab.Request) (*http.Response, error) {
			return lab.Refusal(400, "AccessDeniedException"), nil
		})
		lab.Elapse(polls)
		<-o.over
		var op *leasehold.OpError
		if !errors.As(o.err, &op) || op.Key.Partition != seat {
			t.Errorf("access denied: %v", o.err)
		}
		wire.SetFault(nil)

		w.Put(map[string]types.AttributeValue{"key": lab.Str(seat), "ownerName": lab.Str("someone")})
		o = observe(t, e)
		<-o.over
		var bad *leasehold.RecordError
		if !errors.As(o.err, &bad) {
			t.Errorf("a damaged record: %v", o.err)
		}
		w.Delete(seat)

		o = observe(t, e)
		o.shows(nobody)
		closed := time.Now()
		if err := c.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		<-o.over
		if took := time.Since(closed); !errors.Is(o.err, leasehold.ErrClosed) || took != 0 {
			t.Errorf("a closed client: %v after %v", o.err, took)
		}
		for l, err := range e.Observe(t.Context()) {
			if !errors.Is(err, leasehold.ErrClosed) || l != nobody {
				t.Errorf("a client that was closed before: %v, %v", l, err)
			}
		}
	})
}

// Whoever has seen enough leaves the loop, and leaves nothing behind.
func TestObservingMayBeBrokenOff(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		e, _, wire := elects(w, lab.Config())
		for _, err := range e.Observe(t.Context()) {
			if err != nil {
				t.Error(err)
			}
			break
		}
		wire.Sent()
		lab.Elapse(time.Minute)
		if n := len(wire.Sent()); n != 0 {
			t.Errorf("%d requests after the loop", n)
		}
	})
}

func TestASeatThatHardlyChangesIsReadTwiceASecond(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		e, _, _ := elects(w, lab.Config())
		watching, _, wire := elects(w, lab.Config())
		o := observe(t, watching)
		for _, is := range []string{"empty", "taken", "dead"} {
			var term *leasehold.Lock
			if is == "taken" {
				term = campaign(w, e, "a")
			}
			if is == "dead" {
				w.Update(seat, map[string]types.AttributeValue{"isReleased": nil, "recordVersionNumber": lab.Str("stands still")})
			}
			lab.Elapse(time.Minute)
			wire.Sent()
			lab.Elapse(10 * time.Minute)
			if n := len(wire.Sent()); n < 1000 || n > 1500 {
				t.Errorf("%s: %d requests in ten minutes", is, n)
			}
			if term != nil {
				w.Release(term)
			}
		}
		_ = o.end()
	})
}

// What observers of this client learn is no news to its candidates.
func TestAnObserverDoesNotDisturbTheCandidateOfItsClient(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		leader, _, wire := elects(w, lab.Config())
		campaign(w, leader, "a")
		e, _, _ := elects(w, lab.Config())
		o := observe(t, e)
		lab.Elapse(time.Minute)
		wire.SetFault(lab.Cut)
		began := time.Now()
		term := campaign(w, e, "b")
		if took := time.Since(began); took > 20*time.Second+polls {
			t.Errorf("elected after %v", took)
		}
		lab.Elapse(polls)
		news := o.next()
		if len(news) == 0 || news[len(news)-1].Leader != leaderOf(term, "b") {
			t.Errorf("yielded %v", news)
		}
		_ = o.end()
		w.Release(term)
	})
}

func TestALeaderWhoseRecordStoodStillLeadsWhileItsSessionLives(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		e, _, wire := elects(w, lab.SharedConfig())
		cfg := lab.Config()
		cfg.PollMin, cfg.PollMax = time.Minute, time.Minute // three hours in few steps
		watching, _, _ := elects(w, cfg)
		term := campaign(w, e, "a")
		o := observe(t, watching)
		o.shows(leaderOf(term, "a"))
		wire.SetFault(func(r *lab.Request) (*http.Response, error) {
			if r.Renews() && !r.RenewsSession() {
				return lab.Cut(r)
			}
			return r.Send()
		})
		lab.Elapse(3 * time.Hour)
		o.shows()
		if err := term.Err(); err != nil {
			t.Error(err)
		}
		_ = o.end()
		w.Release(term)
	})
}
