package hold_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/lab"
)

func TestGroupCommitIsAppliedOnlyWhileAllLocksAreHeld(t *testing.T) {
	for _, broken := range []string{"", "x", "y", "z"} {
		t.Run("broken: "+broken, func(t *testing.T) {
			lab.InBubble(t, func(t *testing.T, w *lab.World) {
				c, wire := w.Work().Client(lab.Config())
				g := w.AcquireAll(c, leasehold.Keys("y", "z", "x"))
				if broken != "" {
					w.Steal(broken)
				}
				wire.Sent()
				err := g.Commit(t.Context(), lab.Writes(lab.Note("a", "1")))
				if n := lab.Commits(wire.Sent()); n != 1 {
					t.Errorf("%d transactions", n)
				}
				if broken == "" {
					if err != nil || g.Err() != nil {
						t.Errorf("while all are held: %v, %v", err, g.Err())
					}
					w.WantLog("1")
					_ = g.Release(t.Context())
					return
				}
				var lost *leasehold.LostError
				if !errors.As(err, &lost) || lost.Key.Partition != broken || g.Err() == nil {
					t.Errorf("error %v, the group: %v", err, g.Err())
				}
				w.WantLog()
				for _, l := range g.Locks() {
					if held := l.Err() == nil; held == (l.Key().Partition == broken) {
						t.Errorf("%v: %v", l.Key(), l.Err())
					}
				}
				_ = g.Release(t.Context())
			})
		})
	}
}

func TestGroupCommitWithFailedWriteLeavesLocksHeld(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, _ := w.Work().Client(lab.Config())
		g := w.AcquireAll(c, leasehold.Keys("x", "y"))
		err := g.Commit(t.Context(), lab.Writes(lab.Note("b", "1"), lab.NoteIf("a", "1")))
		var failed *leasehold.CommitError
		if !errors.As(err, &failed) || len(failed.Reasons) != 2 || *failed.Reasons[1].Code != "ConditionalCheckFailed" || g.Err() != nil {
			t.Errorf("error %v, the group: %v", err, g.Err())
		}
		if err := g.Release(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

func TestGroupCommitAndReleaseIsOneRequest(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, wire := w.Work().Client(lab.Config())
		g := w.AcquireAll(c, leasehold.Keys("x", "y"))
		wire.Sent()
		if err := g.CommitAndRelease(t.Context(), lab.Writes(lab.Note("a", "1")), leasehold.WithData([]byte("done"))); err != nil {
			t.Fatal(err)
		}
		if sent := wire.Sent(); len(sent) != 1 || !w.IsReleased("x") || !w.IsReleased("y") {
			t.Errorf("%d requests; released: %v, %v", len(sent), w.IsReleased("x"), w.IsReleased("y"))
		}
		if b, ok := w.Item("y")["data"].(*types.AttributeValueMemberB); !ok || string(b.Value) != "done" {
			t.Errorf("stored %v", w.Item("y")["data"])
		}
		w.WantLog("1")
		if !errors.Is(g.Err(), leasehold.ErrReleased) {
			t.Errorf("the group: %v", g.Err())
		}
		w.Release(w.Acquire(c, "x")) // fails if the local queue is blocked
	})
}

func TestGroupIsReleasedAfterAnyCommitOutcome(t *testing.T) {
	for name, tc := range map[string]struct {
		prepare func(w *lab.World, wire *lab.Wire)
		want    error
		free    []string
		landed  bool
	}{
		"a write fails": {
			prepare: func(*lab.World, *lab.Wire) {}, free: []string{"x", "y"},
		},
		"one was broken": {
			prepare: func(w *lab.World, _ *lab.Wire) { w.Open("a"); w.Steal("x") }, want: leasehold.ErrLost, free: []string{"y"},
		},
		"every reply to the commit is lost": {
			prepare: func(w *lab.World, wire *lab.Wire) {
				w.Open("a")
				wire.SetFault(func(r *lab.Request) (*http.Response, error) {
					if r.Commits() {
						return lab.LoseReply(r)
					}
					return r.Send()
				})
			},
			want: leasehold.ErrUnknownOutcome, free: []string{"x", "y"}, landed: true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			lab.InBubble(t, func(t *testing.T, w *lab.World) {
				c, wire := w.Work().Client(lab.Config())
				g := w.AcquireAll(c, leasehold.Keys("x", "y"))
				tc.prepare(w, wire)
				ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
				defer cancel()
				err := g.CommitAndRelease(ctx, lab.Writes(lab.NoteIf("a", "1")))
				var failed *leasehold.CommitError
				if tc.want == nil && !errors.As(err, &failed) || tc.want != nil && !errors.Is(err, tc.want) {
					t.Errorf("error %v", err)
				}
				lab.Elapse(10 * time.Second)
				for _, key := range tc.free {
					if !w.IsReleased(key) {
						t.Errorf("%s is left held", key)
					}
				}
				if landed := len(w.Log("a")) == 1; landed != tc.landed {
					t.Errorf("landed: %v", landed)
				}
			})
		})
	}
}

func TestGroupCommitAndReleaseDoesNotReleaseLostLock(t *testing.T) {
	for _, keys := range [][]leasehold.Key{leasehold.Keys("x"), leasehold.Keys("x", "y")} {
		t.Run(fmt.Sprintf("%d locks", len(keys)), func(t *testing.T) {
			lab.InBubble(t, func(t *testing.T, w *lab.World) {
				c, wire := w.Work().Client(lab.Config())
				g := w.AcquireAll(c, keys)
				w.Steal("x")
				wire.Sent()
				err := g.CommitAndRelease(t.Context(), lab.Writes(lab.Note("a", "1")))
				var lost *leasehold.LostError
				if !errors.As(err, &lost) || lost.Key.Partition != "x" || lost.By == nil || errors.Is(err, leasehold.ErrReleased) {
					t.Errorf("error %v", err)
				}
				if sent := wire.Sent(); len(sent) != len(keys) {
					t.Errorf("sent %v", lab.Ops(sent))
				}
				if len(keys) > 1 && !w.IsReleased("y") {
					t.Error("y is left held")
				}
				w.WantLog()
			})
		})
	}
}

func TestGroupCommitAndReleaseEndsTrustBeforeItIsSent(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, wire := w.Work().Client(lab.Config())
		g := w.AcquireAll(c, leasehold.Keys("x", "y"))
		var trusted bool
		wire.SetFault(func(r *lab.Request) (*http.Response, error) {
			if r.Commits() {
				trusted = slices.ContainsFunc(g.Locks(), func(l *leasehold.Lock) bool { return l.Err() == nil })
			}
			return r.Send()
		})
		if err := g.CommitAndRelease(t.Context(), lab.Writes(lab.Note("a", "1"))); err != nil || trusted {
			t.Errorf("trusted while the release was sent: %v; %v", trusted, err)
		}
	})
}

func TestGroupCommitAllowsFewerWritesWithMoreLocks(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, wire := w.Work().Client(lab.Config())
		g := w.AcquireAll(c, leasehold.Keys("x", "y"))
		wire.Sent()
		many := make([]types.TransactWriteItem, 99)
		for i := range many {
			many[i] = lab.Note("a", "1")
		}
		if err := g.Commit(t.Context(), many); err == nil {
			t.Error("99 writes beside two guards")
		}
		own := types.TransactWriteItem{Delete: &types.Delete{TableName: aws.String("locks"), Key: lab.Key("y")}}
		if err := g.Commit(t.Context(), lab.Writes(own)); err == nil {
			t.Error("a write to the record of one of the locks")
		}
		if len(wire.Sent()) != 0 || g.Err() != nil {
			t.Errorf("something was sent, or lost: %v", g.Err())
		}
		_ = g.Release(t.Context())
	})
}

func TestGroupCommitAndReleaseContinuesAfterContextOfGroupEnds(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, wire := w.Work().Client(lab.Config())
		wire.SetFault(lab.Once(lab.Call.Commits, lab.LoseReply))
		err := w.AcquireAll(c, leasehold.Keys("x", "y")).Do(t.Context(), func(ctx context.Context, g *leasehold.Group) error {
			err := g.CommitAndRelease(ctx, lab.Writes(lab.Note("a", "1"))) // a context bound to the group has the same cause
			if !errors.Is(context.Cause(ctx), leasehold.ErrReleased) {
				t.Errorf("the function's context goes on: %v", context.Cause(ctx))
			}
			return err
		})
		if err != nil {
			t.Errorf("do: %v", err)
		}
		w.WantLog("1")
	})
}

func TestGroupCommitAndReleaseReturnsWhenCallersContextEnds(t *testing.T) {
	for name, commit := range map[string]func(ctx context.Context, g *leasehold.Group) error{
		"of all": func(ctx context.Context, g *leasehold.Group) error {
			return g.CommitAndRelease(ctx, lab.Writes(lab.Note("a", "1")))
		},
		"of one of them": func(ctx context.Context, g *leasehold.Group) error {
			return g.Locks()[0].CommitAndRelease(ctx, lab.Writes(lab.Note("a", "1")))
		},
	} {
		t.Run(name, func(t *testing.T) {
			lab.InBubble(t, func(t *testing.T, w *lab.World) {
				c, wire := w.Work().Client(lab.Config())
				outer, cancel := context.WithCancel(t.Context())
				defer cancel()
				time.AfterFunc(5*time.Second, cancel)
				err := w.AcquireAll(c, leasehold.Keys("x", "y")).Do(outer, func(ctx context.Context, g *leasehold.Group) error {
					wire.SetFault(lab.Cut)
					began := time.Now()
					err := commit(ctx, g)
					if took := time.Since(began); took != 5*time.Second {
						t.Errorf("returned after %v", took)
					}
					return err
				})
				if !errors.Is(err, leasehold.ErrUnknownOutcome) {
					t.Errorf("do: %v", err)
				}
				wire.SetFault(nil)
				lab.Elapse(time.Minute)
			})
		})
	}
}

func TestGroupReleaseWaitsForCommitsInProgress(t *testing.T) {
	commits := map[string]func(ctx context.Context, g *leasehold.Group) error{
		"of all": func(ctx context.Context, g *leasehold.Group) error {
			return g.Commit(ctx, lab.Writes(lab.Note("a", "1")))
		},
		"of one of them": func(ctx context.Context, g *leasehold.Group) error {
			return g.Locks()[1].Commit(ctx, lab.Writes(lab.Note("a", "1")))
		},
	}
	releases := map[string]func(ctx context.Context, g *leasehold.Group) error{
		"Release":          func(ctx context.Context, g *leasehold.Group) error { return g.Release(ctx) },
		"CommitAndRelease": func(ctx context.Context, g *leasehold.Group) error { return g.CommitAndRelease(ctx, nil) },
	}
	for of, commit := range commits {
		for by, release := range releases {
			t.Run(by+" for that "+of, func(t *testing.T) {
				lab.InBubble(t, func(t *testing.T, w *lab.World) {
					c, wire := w.Work().Client(lab.Config())
					g := w.AcquireAll(c, leasehold.Keys("y", "x"))
					wire.SetFault(lab.Once(lab.Call.Commits, func(r *lab.Request) (*http.Response, error) {
						time.Sleep(time.Second) // the request takes a second to arrive
						return r.Send()
					}))
					committed := make(chan error, 1)
					go func() { committed <- commit(t.Context(), g) }()
					lab.Elapse(0)
					began := time.Now()
					if err := release(t.Context(), g); err != nil {
						t.Errorf("release: %v", err)
					}
					if took := time.Since(began); took != time.Second {
						t.Errorf("released after %v", took)
					}
					if err := <-committed; err != nil {
						t.Errorf("commit: %v", err)
					}
					w.WantLog("1")
				})
			})
		}
	}
}

func TestGroupCommitAndReleaseWithoutReplyIsNotCalledLoss(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, wire := w.Work().Client(lab.Config())
		g := w.AcquireAll(c, leasehold.Keys("x", "y"))
		landed := false
		wire.SetFault(func(r *lab.Request) (*http.Response, error) {
			switch {
			case r.Op == "TransactWriteItems" && !landed:
				landed = true
				return lab.LoseReply(r)
			case r.Commits():
				return nil, lab.ErrReset
			}
			return r.Send()
		})
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		err := g.CommitAndRelease(ctx, lab.Writes(lab.Note("a", "1")))
		if !errors.Is(err, leasehold.ErrUnknownOutcome) || errors.Is(err, leasehold.ErrLost) {
			t.Errorf("commit: %v", err)
		}
		if err := g.Release(t.Context()); err != nil {
			t.Errorf("released again: %v", err)
		}
		w.WantLog("1")
	})
}

func TestGroupCommitAndReleaseIsAppliedDespiteFailedRenewal(t *testing.T) {
	lost := func(*lab.Request) (*http.Response, error) {
		return nil, lab.ErrReset
	}
	for name, renewal := range map[string]lab.Fault{
		"landed unseen": lab.LoseReply,
		"never arrived": lost,
		"is under way":  lab.Slow(time.Second),
		"under way, unseen": func(r *lab.Request) (*http.Response, error) {
			_, _ = r.Send()
			return lab.Cut(r)
		},
	} {
		for _, all := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, of all %v", name, all), func(t *testing.T) {
				lab.InBubble(t, func(t *testing.T, w *lab.World) {
					c, wire := w.Work().Client(lab.Config())
					g := w.AcquireAll(c, leasehold.Keys("x", "y"), leasehold.WithoutRenewal())
					ctx, cancel := context.WithCancel(t.Context())
					defer cancel()
					wire.SetFault(lab.Once(lab.Call.Renews, renewal))
					var wg sync.WaitGroup
					wg.Go(func() { _ = g.Locks()[0].Renew(ctx) })
					lab.Elapse(0)
					cancel()
					commit := g.CommitAndRelease
					if !all {
						commit = g.Locks()[0].CommitAndRelease
					}
					if err := commit(t.Context(), lab.Writes(lab.Note("a", "1"))); err != nil {
						t.Errorf("commit: %v", err)
					}
					w.WantLog("1")
					if !w.IsReleased("x") {
						t.Error("left held")
					}
					wg.Wait()
					_ = g.Release(t.Context())
				})
			})
		}
	}
}

func TestGroupCommitAndReleaseLeavesSharedGrantHeld(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, _ := w.Work().Client(lab.Config())
		outer := w.Acquire(c, "x")
		g, err := c.AcquireAll(outer.Context(), leasehold.Keys("x", "y"), leasehold.Reentrant())
		if err != nil {
			t.Fatal(err)
		}
		if err := g.CommitAndRelease(t.Context(), lab.Writes(lab.Note("a", "1"))); err != nil {
			t.Fatal(err)
		}
		w.WantLog("1")
		if outer.Err() != nil || w.IsReleased("x") || !w.IsReleased("y") {
			t.Errorf("the outer handle: %v; released: %v, %v", outer.Err(), w.IsReleased("x"), w.IsReleased("y"))
		}
		if err := g.CommitAndRelease(t.Context(), lab.Writes(lab.Note("a", "2"))); !errors.Is(err, leasehold.ErrReleased) {
			t.Errorf("committed again: %v", err)
		}
		w.Release(outer)
		w.WantLog("1")
	})
}

func TestGroupCommitAndReleaseReportsEachLockOnce(t *testing.T) {
	for name, write := range map[string]types.TransactWriteItem{"landed": lab.Note("a", "1"), "failed": lab.NoteIf("a", "1")} {
		for _, shared := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, shared lease %v", name, shared), func(t *testing.T) {
				lab.InBubble(t, func(t *testing.T, w *lab.World) {
					var mu sync.Mutex
					var events []string
					cfg := lab.Config()
					cfg.SharedLease = shared
					cfg.OnEvent = func(_ context.Context, e leasehold.Event) {
						if e.Kind != leasehold.EventGranted {
							mu.Lock()
							defer mu.Unlock()
							events = append(events, string(e.Kind)+" "+e.Key.Partition)
						}
					}
					c, _ := w.Work().Client(cfg)
					g := w.AcquireAll(c, leasehold.Keys("x", "y"))
					_ = g.CommitAndRelease(t.Context(), lab.Writes(write))
					_ = g.Release(t.Context())
					_ = c.Close(t.Context())
					slices.Sort(events)
					if want := []string{string(leasehold.EventCommitted) + " x", string(leasehold.EventReleased) + " x", string(leasehold.EventReleased) + " y"}; !slices.Equal(events, want) {
						t.Errorf("events %q", events)
					}
				})
			})
		}
	}
}

func TestGroupCommitAndReleaseIsNotSentIfAnyLockIsLost(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		began := time.Now()
		var xEnds, yEnds <-chan struct{}
		c, _ := w.Work().Client(lab.Config(), lab.Clocks(func() (mono, boot time.Duration) {
			mono = time.Since(began)
			select {
			case <-yEnds: // y is lost: show the true time again, so that x can be released
				return mono, mono
			default:
			}
			select {
			case <-xEnds: // x was given up: show a time an hour ahead, so that y expires
				return mono, mono + time.Hour
			default:
				return mono, mono
			}
		}))
		g := w.AcquireAll(c, leasehold.Keys("x", "y"), leasehold.WithoutRenewal())
		xEnds, yEnds = g.Locks()[0].Context().Done(), g.Locks()[1].Context().Done()
		if err := g.CommitAndRelease(t.Context(), lab.Writes(lab.Note("a", "1"))); !errors.Is(err, leasehold.ErrLost) {
			t.Errorf("commit: %v", err)
		}
		w.WantLog()
		if !w.IsReleased("x") {
			t.Error("x is left held")
		}
	})
}
