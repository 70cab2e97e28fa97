package election_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/lab"
	"github.com/leasehold-go/leasehold/layout"
)

func TestObserveUsesLeaseOfLeaderToDetectDeath(t *testing.T) {
	short := lab.Config()
	short.Lease = 4 * time.Second
	shared := short
	shared.SharedLease = true
	lab.Each(t, map[string]leasehold.Config{"renewed one by one": short, "under a shared lease": shared}, func(t *testing.T, w *lab.World, cfg leasehold.Config) {
		e, _, wire := elects(w, cfg)
		// The two clients have different leases. Only the leader's lease must count.
		watching, _, _ := elects(w, lab.Config())
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
			t.Fatalf("yielded %v, want no leader", news)
		}
		// The observer counts the lease from its first read of the leader's last renewal. That
		// renewal was at most one second before the leader's death. The observer's read was at most
		// one second (polls) after the renewal.
		lab.WantRange(t, "found dead after", news[0].at.Sub(died), 3*time.Second-polls, 4*time.Second+polls)
	})
}

func TestObserveYieldsNoLeaderAfterClientOfLeaderIsClosed(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		e, c, _ := elects(w, lab.SharedConfig())
		watching, _, wire := elects(w, lab.Config())
		campaign(w, e, "a")
		o := observe(t, watching)
		lab.Elapse(10 * time.Second) // the observer has begun to read twice a second
		wire.Sent()
		lab.Elapse(time.Minute)
		o.next()
		// Observe reads the lock's record and the session's row, each about twice a second. The limit
		// allows one more read a second.
		lab.WantRange(t, "reads in a minute", len(wire.Sent()), 0, 60*5)
		lab.OK(t, c.Close(t.Context())) // Close marks the session's row as ended and leaves the lock's record as it is
		lab.Elapse(polls)
		o.shows(nobody)
	})
}

func TestObserveAddsMaxSkewToRecordedExpiry(t *testing.T) {
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
		lab.Elapse(5 * time.Second) // let requests in flight arrive before the record is read
		r := lab.Must(c.Get(t.Context(), seat))(t)
		lab.Elapse(2 * time.Minute)
		news := o.next()
		if len(news) != 1 || news[0].Leader != nobody {
			t.Fatalf("yielded %v, want no leader", news)
		}
		// The observer waits for 3 s after the expiry: MaxSkew (2 s), and one second
		// because the times in records are rounded to seconds.
		lab.WantRange(t, "found dead after the expiry", news[0].at.Sub(r.ExpiresAt), 3*time.Second, 3*time.Second+polls)
	})
}

func TestObserveYieldsLeaderAgainIfItRenewsAfterPresumedDeath(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		e, _, _ := elects(w, lab.Config())
		term := campaign(w, e, "a")
		began := time.Now()
		fast, _ := w.Client(lab.Config(), lab.Clocks(func() (mono, boot time.Duration) { // a clock that runs ten times as fast as real time
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
			lab.Want(t, "yielded leader", got.Leader, want)
		}
		// The observer's clock runs ten times too fast: it counts the leader's lease of 20 s in 2 s. The
		// leader renews every 5 s. So the observer finds the leader dead 2 s after each renewal, and live
		// again after the next renewal.
		if len(news) < 5 {
			t.Errorf("yielded %v", news)
		}
		w.Release(term)
	})
}

// A late reply shows the record as it was when the request was sent. In this test, the leader
// renews after that request, so the reply does not prove that the leader is dead.
func TestObserveReportsNoDeathIfReplyToReadIsDelayed(t *testing.T) {
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
			return lab.Slow(at(20200 * time.Millisecond))(r) // the reply arrives after the leader's lease of 20 s has passed
		})
		term := lab.Must(e.Campaign(t.Context(), "a", leasehold.WithoutRenewal()))(t)
		o := observe(t, watching)
		lab.Elapse(17900 * time.Millisecond)
		lab.OK(t, term.Renew(t.Context()))
		lab.Elapse(10 * time.Second)
		o.shows(leaderOf(term, "a"))
		lab.Want(t, "late replies", late, 1)
		w.Release(term)
	})
}

func TestObserveDoesNotYieldCandidateWhoseCampaignFailed(t *testing.T) {
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
			return nil, lab.ErrReset // all other requests fail, so that the client cannot release the term
		})
		lab.WantFailed(t, "campaign", lab.ErrorOf(e.Campaign(w.Within(20*time.Millisecond), "a")))
		lab.Elapse(5 * time.Second)
		o := observe(t, e)
		o.shows(nobody)
		_ = c.Close(t.Context())
	})
}

func TestObserveReportsNoDeathWhileSessionIsRenewed(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		e, _, wire := elects(w, lab.SharedConfig())
		cfg := lab.Config()
		cfg.PollMax = time.Minute // long pauses between polls: the test lets three hours pass in few steps
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
		lab.OK(t, term.Err())
		w.Release(term)
	})
}
