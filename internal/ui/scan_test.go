package ui

import (
	"fmt"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/holders"
	"github.com/leasehold-go/leasehold/internal/lab"
	"github.com/leasehold-go/leasehold/internal/liveness"
	"github.com/leasehold-go/leasehold/internal/protocol"
	"github.com/leasehold-go/leasehold/internal/records"
	"github.com/leasehold-go/leasehold/layout"
)

func TestUIPageShowsLockChanges(t *testing.T) {
	onPage(t, func(t *testing.T, w *lab.World, b *bench) {
		lab.Elapse(2 * time.Second)
		lock := acquire(w, "job", leasehold.WithData([]byte("10.0.0.7")))
		lab.Elapse(time.Second)
		r := b.row("job")
		if r.State != Held || r.Owner != lock.Record().Owner || r.Token != lock.Token() || r.Lease != 20_000 {
			t.Errorf("held: %+v", r)
		}
		b.show("job", "")
		before := r.Until
		lab.Elapse(6 * time.Second)
		if r := b.row("job"); r.Until <= before || r.Renewals == 0 || b.beats == 0 {
			t.Errorf("renewed: %+v, %d beats", r, b.beats)
		}
		w.Release(lock)
		lab.Elapse(time.Second)
		b.isShown("released", "job", Released)
		w.Delete("job")
		lab.Elapse(2 * time.Second)
		lab.Want(t, "id after the deletion", b.row("job").ID, 0)
		b.tells("grant; release; deletion")
		lab.Want(t, "spans", len(b.lock.Spans), 1)
		lab.Want(t, "value of the span", b.lock.Spans[0].Value, "10.0.0.7")
	})
}

func TestUIPageShowsHolderDeathAndTakeover(t *testing.T) {
	onPage(t, func(t *testing.T, w *lab.World, b *bench) {
		w.Detach(acquire(w, "job", leasehold.WithLease(10*time.Second)))
		lab.Elapse(time.Second)
		b.show("job", "")
		lab.Elapse(8 * time.Second)
		if r := b.row("job"); r.State != Held && r.State != Expiring {
			t.Errorf("before the lease expired: %+v", r)
		}
		lab.Elapse(3 * time.Second)
		b.isShown("after the lease expired", "job", Dead)
		lock := acquire(w, "job")
		lab.Elapse(time.Second)
		b.tells("grant; death; takeover")
		last := b.lock.Events[len(b.lock.Events)-1]
		if last.Token != lock.Token() || last.FromToken != lock.Token()-1 || last.FromOwner == last.Owner {
			t.Errorf("takeover: %+v", last)
		}
		w.Release(lock)
	})
}

func TestUIHoldTimeOfDeadHolderStopsAtLeaseExpiry(t *testing.T) {
	const lease, dead = 4 * time.Second, 172 * time.Second
	credited := func(t *testing.T, r rowView, most time.Duration) {
		t.Helper()
		if held := time.Duration(r.Held) * time.Millisecond; r.State != Dead || held < lease || held > most {
			t.Errorf("the hold time is %v, want %v to %v: %+v", held, lease, most, r)
		}
	}
	t.Run("page opened before the grant", func(t *testing.T) {
		onPage(t, func(t *testing.T, w *lab.World, b *bench) {
			w.Detach(acquire(w, "job", leasehold.WithLease(lease)))
			lab.Elapse(dead)
			credited(t, b.row("job"), lease+time.Millisecond)
		})
	})
	type variant struct {
		cfg   leasehold.Config
		lives time.Duration
	}
	lab.Variants(t, map[string]variant{
		"renewed, page opened later":         {lab.Config(), 10 * time.Second},
		"under a session, page opened later": {lab.SharedConfig(), time.Second},
	}, func(t *testing.T, c variant) {
		lab.InBubble(t, func(t *testing.T, w *lab.World) {
			c.cfg.Lease = lease
			locks, wire := mortal(t, w, c.cfg)
			w.Acquire(locks, "job")
			lab.Elapse(c.lives)
			wire.SetFault(lab.Cut)
			lab.Elapse(dead)
			b := serve(t, w, layout.Native{})
			lab.Elapse(2 * lease)
			credited(t, b.row("job"), c.lives+lease)
		})
	})
	t.Run("by the holder's clock", func(t *testing.T) {
		l := layout.DynamoDLM{MaxSkew: time.Second}
		lab.InLayout(t, l, func(t *testing.T, w *lab.World, cfg leasehold.Config) {
			c, _ := w.Client(cfg)
			w.Detach(w.Acquire(c, "job", leasehold.WithLease(lease)))
			lab.Elapse(dead)
			b := serve(t, w, l)
			lab.Elapse(time.Second)
			// In this layout, a holder is dead once MaxSkew and one more second have passed since
			// the expiry in its record.
			credited(t, b.row("job"), lease+2*time.Second)
		})
	})
}

func TestUIPageShowsLocksInAllLayouts(t *testing.T) {
	for _, name := range layout.Names() {
		l := lab.Must(layout.Parse(name))(t)
		t.Run(name, func(t *testing.T) {
			lab.InLayout(t, l, func(t *testing.T, w *lab.World, cfg leasehold.Config) {
				b := serve(t, w, l)
				lab.Elapse(time.Second)
				holder, _ := w.Client(cfg)
				var opts []leasehold.AcquireOption
				proto, _ := records.Of(l)
				if proto.Schema().Sort != "" && proto.Complete(protocol.Key{}).Sort == "" {
					opts = append(opts, leasehold.WithSortKey("s"))
				}
				lock := w.Acquire(holder, "job", opts...)
				lab.Elapse(2 * time.Second)
				r := b.row("job")
				if r.State != Held || r.Token != lock.Token() || r.Until <= b.status.Now || r.Sort != lock.Key().Sort {
					t.Errorf("held: %+v", r)
				}
				b.show(r.Key, r.Sort)
				w.Detach(lock)
				lab.Elapse(40 * time.Second)
				b.isShown("dead", "job", Dead)
				b.server.cfg.AllowBreak = true
				b.breaks(breakRequest{b.look(r.Key, r.Sort), r.Key, "it is stuck"}, http.StatusOK, "broken")
				b.tells("grant; death; break: it is stuck")
			})
		})
	}
}

func TestUIPageShowsDeadSessionOnlyWhileSessionHasLocks(t *testing.T) {
	onPage(t, func(t *testing.T, w *lab.World, b *bench) {
		c, wire := mortal(t, w, lab.SharedConfig())
		w.Acquire(c, "customer/7")
		lab.Elapse(2 * time.Second)
		under := b.row("customer/7")
		row := "leasehold/session/" + under.Session
		session := b.row(row)
		if under.Session == "" || under.State != Held || session.Kind != holders.KindSession || session.Until <= b.status.Now || under.Until != 0 {
			t.Errorf("lock %+v under session %+v", under, session)
		}
		b.show("customer/7", "")
		wire.SetFault(lab.Cut)
		lab.Elapse(25 * time.Second)
		b.isShown("the lock", "customer/7", Dead)
		b.tells("grant; death")
		b.isShown("the session while it has a lock", row, Dead)
		lock := acquire(w, "customer/7")
		lab.Elapse(2 * time.Second)
		lab.Want(t, "id of a dead session without locks", b.row(row).ID, 0)
		b.show(row, "")
		lab.Want(t, "the details have a row", b.lock.Row != nil, true)
		w.Release(lock)
	})
}

func TestUIShowsTimeFromWhichHistoryOfLockIsComplete(t *testing.T) {
	onPage(t, func(t *testing.T, w *lab.World, b *bench) {
		c, _ := w.Client(lab.Config())
		w.Release(w.Acquire(c, "job"))
		lab.Elapse(2 * time.Second)
		b.show("job", "")
		lab.Want(t, "known since", b.lock.Known, b.hello.Started)
		for range mostEvents {
			w.Acquire(c, "job")
			lab.Elapse(time.Second)
			_ = c.Close(t.Context())
			c, _ = w.Client(lab.Config())
			lab.Elapse(time.Second)
			b.listen()
		}
		b.show("job", "")
		if first := max(b.lock.Events[0].At, b.lock.Spans[0].From); b.lock.Known != first || first <= b.hello.Started {
			t.Errorf("the history begins at %d, but its first entry is from %d", b.lock.Known, first)
		}
	})
}

func TestUIReadRateDoesNotGrowWithNumberOfOpenPages(t *testing.T) {
	onPage(t, func(t *testing.T, w *lab.World, b *bench) {
		for range 5 {
			l := b.server.scan.join(b.server.hello)
			defer b.server.scan.leave(l)
		}
		b.wire.Sent()
		lab.Elapse(20 * time.Second)
		lab.WantRange(t, "requests in 20 s for 6 pages", len(b.wire.Sent()), 19, 21)
	})
}

func TestUIPageCanLowerButNotRaiseScanRate(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, _ := w.Client(lab.Config())
		for i := range 600 {
			w.Detach(w.Acquire(c, fmt.Sprint("job/", i), leasehold.WithLease(time.Hour)))
		}
		b := serve(t, w, layout.Native{}, func(c *Config) { c.Rate = 10 })
		b.wire.Meter.Reset()
		lab.Elapse(60 * time.Second)
		took := b.wire.Meter.Reset().Read / 60
		if s := b.heard(); took > 10.5 || took < 8 || s.Reading > 12 || s.Rate != 10 {
			t.Errorf("%.1f read units per second, want at most 10; the page shows %+v", took, s)
		}
		lab.Want(t, "rows", len(b.rows), 600)
		lab.Want(t, "the list is whole", b.status.Whole, true)
		var out struct{}
		b.post("/rate", map[string]float64{"rate": 0}, &out)
		lab.Elapse(2 * time.Second)
		b.wire.Meter.Reset()
		lab.Elapse(2 * time.Minute)
		lab.Want(t, "read units while the scan is stopped", b.wire.Meter.Reset().Read, 0)
		b.post("/rate", map[string]float64{"rate": 1e9}, &out)
		lab.Elapse(time.Second)
		lab.Want(t, "rate that a page set", b.heard().Rate, 10)
	})
}

func TestUIScanFindsNewLocksWhileLockDetailsAreOpen(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, _ := w.Client(lab.Config())
		w.Detach(w.Acquire(c, "job", leasehold.WithLease(time.Hour)))
		b := serve(t, w, layout.Native{}, func(c *Config) { c.Rate = 1 })
		lab.Elapse(5 * time.Second)
		b.show("job", "")
		lab.Elapse(5 * time.Second)
		w.Detach(w.Acquire(c, "other", leasehold.WithLease(time.Hour)))
		lab.Elapse(time.Minute)
		b.isShown("after a minute with a page that shows another lock", "other", Held)
	})
}

func TestUIPageShowsErrorIfReadsOfTableFail(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		b := serve(t, w, layout.Native{}, func(c *Config) { c.Explain = func(error) string { return "the network is down" } })
		lab.Elapse(2 * time.Second)
		b.wire.SetFault(lab.Refused("AccessDeniedException"))
		lab.Elapse(20 * time.Second)
		if s := b.heard(); s.Trouble != "the network is down" || s.Now-s.Answered < 18_000 {
			t.Errorf("%+v", s)
		}
		b.wire.SetFault(nil)
		lab.Elapse(15 * time.Second)
		lab.Want(t, "trouble", b.heard().Trouble, "")
	})
}

func TestUIPageShowsErrorIfReplyOfDynamoDBIsOverdue(t *testing.T) {
	onPage(t, func(t *testing.T, w *lab.World, b *bench) {
		lab.Elapse(2 * time.Second)
		last := b.heard().Answered
		answer := b.hang()
		lab.Elapse(silence + time.Second - 100*time.Millisecond) // the scan begins a pass over the table each second
		lab.Want(t, "trouble before three seconds", b.heard().Trouble, "")
		lab.Elapse(100 * time.Millisecond)
		if s := b.heard(); s.Trouble != unanswered || s.Answered-last > 1000 || s.Now-s.Answered < 3000 {
			t.Errorf("after three seconds: %+v; the last reply was at %d", s, last)
		}
		known := b.status.Answered
		lab.Elapse(30 * time.Second)
		lab.Want(t, "trouble half a minute later", b.heard().Trouble, unanswered)
		lab.Want(t, "time of the last reply", b.status.Answered, known)
		answer()
		lab.Elapse(0)
		lab.Want(t, "trouble after a reply", b.heard().Trouble, "")
		lab.Want(t, "time of the last reply", b.status.Answered, b.status.Now)
	})
}

func TestUIShowsLockAsExpiringOnlyIfReadsFindNoRenewal(t *testing.T) {
	onPage(t, func(t *testing.T, w *lab.World, b *bench) {
		lock := acquire(w, "job")
		lab.Elapse(2 * time.Second)
		answer := b.hang()
		lab.Elapse(18 * time.Second) // more than two thirds of the lease pass, and no reply reaches the page
		b.isShown("while reads get no reply", "job", Held)
		answer()
		lab.Elapse(2 * time.Second)
		if r := b.row("job"); r.State != Held || r.Renewals == 0 {
			t.Errorf("after a reply: %+v", r)
		}
		w.Detach(lock)
		lab.Elapse(18 * time.Second)
		b.isShown("no longer renewed", "job", Expiring)
	})
}

func TestUILockStateUsesRequestTimeNotReplyTime(t *testing.T) {
	onPage(t, func(t *testing.T, w *lab.World, b *bench) {
		lock := acquire(w, "job")
		item, _, err := b.source.Item(t.Context(), lock.Key())
		lab.OK(t, err)
		now := time.Now()
		at := func(asked, answered time.Duration) liveness.Reading {
			return liveness.Reading{Asked: now.Add(asked), Answered: now.Add(answered)}
		}
		board := newBoard(b.server.scan.board.proto, liveness.Rule{})
		for _, c := range []struct {
			look liveness.Reading
			want State
		}{
			{at(0, 0), Held},
			{at(time.Second, 18*time.Second), Held}, // the request is old when its reply comes: the holder may have renewed after it, so the state stays Held
			{at(18*time.Second, 18*time.Second), Expiring},
		} {
			board.see(item, c.look)
			lab.Want(t, fmt.Sprintf("asked at %v, answered at %v", c.look.Asked, c.look.Answered), board.row(board.entries[lock.Key()], clock{now}).State, c.want)
		}
		w.Release(lock)
	})
}

func TestUIServerSendsAllRowsOfLargeTableToPage(t *testing.T) {
	t.Parallel()
	s := newScanner(Config{}, nil, liveness.Rule{}, time.Now())
	for i := range backlog * rowsAtOnce {
		s.board.entries[protocol.Key{Partition: fmt.Sprint(i)}] = &entry{toldOf: true}
	}
	page := s.join(hello{})
	select {
	case <-page.done:
		t.Error("the server has disconnected the page, which must connect again")
	default:
	}
}

func TestUIServerDisconnectsSlowPage(t *testing.T) {
	onPage(t, func(t *testing.T, w *lab.World, b *bench) {
		lab.Elapse((backlog + 60) * time.Second)
		select {
		case <-b.page.done:
		default:
			t.Errorf("the page is still connected, %d messages behind", len(b.page.out))
		}
		synctest.Wait()
	})
}
