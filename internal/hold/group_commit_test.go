package hold_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/lab"
)

func TestCommitOfGroupFailsIfAnyLockIsLost(t *testing.T) {
	lab.Each(t, map[string]string{
		"all are held": "", "x is lost": "x", "y is lost": "y", "z is lost": "z",
	}, func(t *testing.T, w *lab.World, broken string) {
		c, wire := w.Work().Client(lab.Config())
		g := w.AcquireAll(c, leasehold.Keys("y", "z", "x"))
		if broken != "" {
			w.Steal(broken)
		}
		wire.Sent()
		err := g.Commit(t.Context(), noted("1"))
		lab.Want(t, "transactions", lab.Commits(wire.Sent()), 1)
		var lost *leasehold.LostError
		if errors.As(err, &lost) != (broken != "") || lost != nil && lost.Key.Partition != broken || (g.Err() == nil) != (err == nil) {
			t.Errorf("error %v, Err of the group: %v", err, g.Err())
		}
		lab.Want(t, "applied", len(w.Log("a")) == 1, broken == "")
		for _, l := range g.Locks() {
			if held := l.Err() == nil; held == (l.Key().Partition == broken) {
				t.Errorf("%v: %v", l.Key(), l.Err())
			}
		}
		_ = g.Release(t.Context())
	})
}

func TestLocksOfGroupStayHeldIfWriteInCommitFails(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, _ := w.Work().Client(lab.Config())
		g := w.AcquireAll(c, leasehold.Keys("x", "y"))
		err := g.Commit(t.Context(), lab.Writes(lab.Note("b", "1"), lab.NoteIf("a", "1")))
		var failed *leasehold.CommitError
		if !errors.As(err, &failed) || len(failed.Reasons) != 2 || *failed.Reasons[1].Code != "ConditionalCheckFailed" || g.Err() != nil {
			t.Errorf("error %v, Err of the group: %v", err, g.Err())
		}
		lab.WantErr(t, "release", g.Release(t.Context()), nil)
	})
}

func TestCommitAndReleaseOfGroupSendsOneRequest(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, wire := w.Work().Client(lab.Config())
		g := w.AcquireAll(c, leasehold.Keys("x", "y"))
		wire.Sent()
		lab.OK(t, g.CommitAndRelease(t.Context(), noted("1"), leasehold.WithData([]byte("done"))))
		if sent := wire.Sent(); len(sent) != 1 || !w.IsReleased("x") || !w.IsReleased("y") {
			t.Errorf("%d requests; released: %v, %v", len(sent), w.IsReleased("x"), w.IsReleased("y"))
		}
		if b, ok := w.Item("y")["data"].(*types.AttributeValueMemberB); !ok || string(b.Value) != "done" {
			t.Errorf("stored %v", w.Item("y")["data"])
		}
		w.WantLog("1")
		lab.WantErr(t, "the group", g.Err(), leasehold.ErrReleased)
		w.Release(w.Acquire(c, "x")) // this call blocks forever if the client's own queue for x is still blocked
	})
}

func TestFailedCommitAndReleaseOfGroupStillFreesKeys(t *testing.T) {
	type row struct {
		prepare func(w *lab.World, wire *lab.Wire)
		want    error
		landed  bool
	}
	lab.Each(t, map[string]row{
		"a write fails": {prepare: func(*lab.World, *lab.Wire) {}},
		"every reply to the commit is lost": {
			prepare: func(w *lab.World, wire *lab.Wire) {
				w.Open("a")
				wire.SetFault(lab.On(lab.Call.Commits, lab.LoseReply))
			},
			want: leasehold.ErrUnknownOutcome, landed: true,
		},
	}, func(t *testing.T, w *lab.World, tc row) {
		c, wire := w.Work().Client(lab.Config())
		g := w.AcquireAll(c, leasehold.Keys("x", "y"))
		tc.prepare(w, wire)
		err := g.CommitAndRelease(w.Within(10*time.Second), lab.Writes(lab.NoteIf("a", "1")))
		if tc.want == nil && !errors.As(err, new(*leasehold.CommitError)) || tc.want != nil && !errors.Is(err, tc.want) {
			t.Errorf("error %v", err)
		}
		if tc.landed {
			isUnknownAlone(t, err)
			lab.WantErr(t, "second release", g.Release(t.Context()), nil)
		}
		lab.Elapse(10 * time.Second)
		lab.Want(t, "held", w.HeldAmong(leasehold.Keys("x", "y")), nil)
		lab.Want(t, "applied", len(w.Log("a")) == 1, tc.landed)
	})
}

func TestCommitAndReleaseOfGroupWritesNothingIfOneLockIsLost(t *testing.T) {
	lab.Each(t, map[string][]leasehold.Key{
		"one lock": leasehold.Keys("x"), "two locks": leasehold.Keys("x", "y"),
	}, func(t *testing.T, w *lab.World, keys []leasehold.Key) {
		c, wire := w.Work().Client(lab.Config())
		g := w.AcquireAll(c, keys)
		w.Steal("x")
		wire.Sent()
		err := g.CommitAndRelease(t.Context(), noted("1"))
		var lost *leasehold.LostError
		if !errors.As(err, &lost) || lost.Key.Partition != "x" || lost.By == nil || errors.Is(err, leasehold.ErrReleased) {
			t.Errorf("error %v", err)
		}
		lab.Want(t, "requests", len(wire.Sent()), len(keys))
		if len(keys) > 1 && !w.IsReleased("y") {
			t.Error("y was not released")
		}
		w.WantLog()
	})
}

func TestCommitOfLockGroupSendsNothingIfWritesAreInvalid(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, wire := w.Work().Client(lab.Config())
		g := w.AcquireAll(c, leasehold.Keys("x", "y"))
		wire.Sent()
		lab.WantFailed(t, "99 writes beside two guards", g.Commit(t.Context(), slices.Repeat(noted("1"), 99)))
		own := types.TransactWriteItem{Delete: &types.Delete{TableName: aws.String("locks"), Key: lab.Key("y")}}
		lab.WantFailed(t, "a write to the record of a lock", g.Commit(t.Context(), lab.Writes(own)))
		lab.Want(t, "requests", len(wire.Sent()), 0)
		lab.WantErr(t, "group", g.Err(), nil)
		_ = g.Release(t.Context())
	})
}

func TestReleaseOfGroupWaitsForCommitInProgress(t *testing.T) {
	for by, release := range map[string]func(ctx context.Context, g *leasehold.Group) error{
		"Release":          func(ctx context.Context, g *leasehold.Group) error { return g.Release(ctx) },
		"CommitAndRelease": func(ctx context.Context, g *leasehold.Group) error { return g.CommitAndRelease(ctx, noted("2")) },
		"CommitAndRelease of one": func(ctx context.Context, g *leasehold.Group) error {
			return g.Locks()[0].CommitAndRelease(ctx, noted("2"))
		},
	} {
		t.Run(by, func(t *testing.T) {
			lab.Each(t, allOrOne, func(t *testing.T, w *lab.World, of func(*leasehold.Group) held) {
				c, wire := w.Work().Client(lab.Config())
				g := w.AcquireAll(c, leasehold.Keys("y", "x"))
				wire.SetFault(lab.Once(lab.Call.Commits, lab.ArriveAfter(time.Second)))
				committed := lab.Go(func() error { return of(g).Commit(t.Context(), noted("1")) })
				began := time.Now()
				lab.WantErr(t, "release", release(t.Context(), g), nil)
				lab.Want(t, "released after", time.Since(began), time.Second)
				lab.WantErr(t, "commit", <-committed, nil)
				if got := w.Log("a"); got[0] != "1" || (len(got) == 2) != (by != "Release") {
					t.Errorf("log %q", got)
				}
				_ = g.Release(t.Context())
			})
		})
	}
}

func TestCommitSucceedsDespiteUnansweredRenewal(t *testing.T) {
	for name, renewal := range map[string]lab.Fault{
		"connection reset after": lab.LoseReply, "connection reset before": lab.Drop, "slow reply": lab.Slow(time.Second), "no reply": lab.Unheard,
	} {
		t.Run(name, func(t *testing.T) {
			lab.Each(t, allOrOne, func(t *testing.T, w *lab.World, of func(*leasehold.Group) held) {
				c, wire := w.Work().Client(lab.Config())
				g := w.AcquireAll(c, leasehold.Keys("x", "y"), leasehold.WithoutRenewal())
				ctx, cancel := context.WithCancel(t.Context())
				wire.SetFault(lab.Once(lab.Call.Renews, renewal))
				renewed := lab.Go(func() error { return g.Locks()[0].Renew(ctx) })
				cancel()
				lab.WantErr(t, "commit and release", of(g).CommitAndRelease(t.Context(), noted("1")), nil)
				w.WantReleased("x")
				w.WantLog("1")
				<-renewed
				_ = g.Release(t.Context())
			})
		})
	}
}

func TestCommitAndReleaseEmitsOneReleasedEventPerLock(t *testing.T) {
	for name, write := range map[string]types.TransactWriteItem{"applied": lab.Note("a", "1"), "failed": lab.NoteIf("a", "1")} {
		t.Run(name, func(t *testing.T) {
			lab.Each(t, lab.Leases(), func(t *testing.T, w *lab.World, cfg leasehold.Config) {
				events := lab.Events(&cfg)
				c, _ := w.Work().Client(cfg)
				g := w.AcquireAll(c, leasehold.Keys("x", "y"))
				_ = g.CommitAndRelease(t.Context(), lab.Writes(write))
				_ = g.Release(t.Context())
				_ = c.Close(t.Context())
				var told []string
				for _, e := range events() {
					if e.Kind != leasehold.EventGranted {
						told = append(told, string(e.Kind)+" "+e.Key.Partition)
					}
				}
				slices.Sort(told)
				lab.Want(t, "events", told, []string{"committed x", "released x", "released y"})
			})
		})
	}
}

func TestCommitAndReleaseOfGroupFailsIfLockExpires(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		began := time.Now()
		var xEnds, yEnds <-chan struct{}
		c, _ := w.Work().Client(lab.Config(), lab.Clocks(func() (mono, boot time.Duration) {
			mono = time.Since(began)
			select {
			// Third and last phase: the client has noticed that y is lost. Both clocks agree, so
			// that x can be released.
			case <-yEnds:
				return mono, mono
			default:
			}
			select {
			// Second phase: the release of x has ended the trust in x. The boot clock is an hour
			// ahead, so that y expires.
			case <-xEnds:
				return mono, mono + time.Hour
			default:
				return mono, mono
			}
		}))
		g := w.AcquireAll(c, leasehold.Keys("x", "y"), leasehold.WithoutRenewal())
		xEnds, yEnds = g.Locks()[0].Context().Done(), g.Locks()[1].Context().Done()
		lab.WantErr(t, "commit", g.CommitAndRelease(t.Context(), noted("1")), leasehold.ErrLost)
		w.WantLog()
		w.WantReleased("x")
	})
}
