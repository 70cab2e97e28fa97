package behaviour_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/lab"
	"github.com/leasehold-go/leasehold/layout"
)

func TestUncontendedLockCostsTwoWritesAndNoRead(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		metered := func() (*leasehold.Client, *lab.Wire) {
			c, wire := w.Client(lab.Config())
			wire.Meter = &lab.Meter{}
			return c, wire
		}
		c, wire := metered()
		// In the first round, the key has no record yet. In later rounds, it has one, because a
		// release keeps the record.
		for i := range 3 {
			if i == 2 {
				c, wire = metered() // this new client has not read the record
			}
			w.Release(w.Acquire(c, "job"))
			if sent := wire.Sent(); len(sent) != 2 || !sent[0].Grants() {
				t.Errorf("round %d: requests %v", i, lab.Ops(sent))
			}
			lab.Want(t, fmt.Sprintf("used in round %d", i), wire.Meter.Reset(), lab.Units{Write: 2})
		}
	})
}

func TestFirstTokenComesFromClockAndEachGrantAddsOne(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		now := time.Now().UnixMicro()
		for i := range int64(3) {
			lock := holds(w, "job")
			lab.Want(t, "token", lock.Token(), now+1+i)
			w.Release(lock)
		}
	})
}

func TestTryAcquireReturnsHolderOfHeldKeyInOneRequest(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		a, _ := w.Client(leasehold.Config{Table: "locks", Owner: "web-7/812", Logger: lab.Config().Logger})
		lock := w.Acquire(a, "nightly-report", leasehold.WithData([]byte("for October")))
		defer w.Release(lock)
		b, wire := w.Client(lab.Config())
		_, err := b.TryAcquire(t.Context(), "nightly-report")
		var held *leasehold.HeldError
		if !errors.As(err, &held) || !errors.Is(err, leasehold.ErrHeld) {
			t.Fatalf("error %v", err)
		}
		lab.WantTook(t, "time since the grant", held.Holder.GrantedAt, 0, time.Second)
		lab.Want(t, "token of the holder", held.Holder.Token, lock.Token())
		lab.Want(t, "owner of the holder", held.Holder.Owner, lock.Record().Owner)
		wantSent(t, wire, 1)
		if s := err.Error(); !strings.Contains(s, "nightly-report is held by web-7/812/") || !strings.Contains(s, "(token ") || !strings.Contains(s, `("for October")`) {
			t.Errorf("message %q", s)
		}
	})
}

func TestCallWithNoWaitTakesOverLockOfDeadHolder(t *testing.T) {
	lab.Each(t, map[string]func(ctx context.Context, c *leasehold.Client) (*leasehold.Lock, error){
		"TryAcquire": func(ctx context.Context, c *leasehold.Client) (*leasehold.Lock, error) {
			return c.TryAcquire(ctx, "job")
		},
		"AcquireAny": func(ctx context.Context, c *leasehold.Client) (*leasehold.Lock, error) {
			return c.AcquireAny(ctx, leasehold.Keys("job", "other"), leasehold.NoWait())
		},
		"AcquireAll": func(ctx context.Context, c *leasehold.Client) (*leasehold.Lock, error) {
			g, err := c.AcquireAll(ctx, leasehold.Keys("job", "other"), leasehold.NoWait())
			if err != nil {
				return nil, err
			}
			return g.Locks()[0], g.Locks()[1].Release(ctx)
		},
	}, func(t *testing.T, w *lab.World, try func(ctx context.Context, c *leasehold.Client) (*leasehold.Lock, error)) {
		w.LeavesHeld(lab.Config(), 0, "job", "other")
		lab.Elapse(time.Hour)
		fresh, _ := w.Client(lab.Config())
		began := time.Now()
		lock, err := try(t.Context(), fresh)
		if took := time.Since(began); err != nil || took < 20*time.Second || took > 21*time.Second {
			t.Fatalf("an hour after the holder died: %v after %v", err, took)
		}
		w.Release(lock)
	})
}

func TestCallWithCancelledContextSendsNoRequest(t *testing.T) {
	oneClient(t, func(t *testing.T, w *lab.World, c *leasehold.Client, wire *lab.Wire) {
		lock := w.Acquire(c, "held", leasehold.WithoutRenewal())
		defer w.Release(lock)
		ctx, cancel := context.WithCancelCause(t.Context())
		why := errors.New("shutting down")
		cancel(why)
		wire.Sent()
		for name, do := range map[string]func() error{
			"Acquire": func() error { return lab.ErrorOf(c.Acquire(ctx, "job")) },
			"Renew":   func() error { return lock.Renew(ctx) },
			"Break":   func() error { return c.Break(ctx, lock.Record(), leasehold.BreakOptions{}) },
			"Commit":  func() error { return lock.Commit(ctx, nil) },
		} {
			if err := do(); !errors.Is(err, why) || errors.Is(err, leasehold.ErrUnknownOutcome) {
				t.Errorf("%s: %v", name, err)
			}
			synctest.Wait()
			lab.Want(t, name+": requests", len(wire.Sent()), 0)
		}
	})
}

func TestAcquireWithOptionIfExistsFailsIfKeyHasNoRecord(t *testing.T) {
	oneClient(t, func(t *testing.T, w *lab.World, c *leasehold.Client, _ *lab.Wire) {
		lab.WantErr(t, "Acquire", lab.ErrorOf(c.Acquire(t.Context(), "job", leasehold.IfExists())), leasehold.ErrNotFound)
		w.Release(w.Acquire(c, "job"))
		w.Release(w.Acquire(c, "job", leasehold.IfExists()))
	})
}

func TestNextGrantKeepsDataAndAttributes(t *testing.T) {
	oneClient(t, func(t *testing.T, w *lab.World, c *leasehold.Client, _ *lab.Wire) {
		w.Release(w.Acquire(c, "job", leasehold.WithInitialData([]byte("one")),
			leasehold.WithAttributes(map[string]types.AttributeValue{"a": lab.Str("1"), "b": lab.Str("2")})))
		lock := w.Acquire(c, "job", leasehold.WithInitialData([]byte("two")))
		lab.Want(t, "data", string(lock.Record().Data), "one")
		lab.Want(t, "attributes", len(lock.Record().Attributes), 2)
		if err := lock.Renew(t.Context(), leasehold.WithData([]byte("three")),
			leasehold.WithAttributes(map[string]types.AttributeValue{"a": nil, "c": lab.Str("3")})); err != nil {
			t.Fatal(err)
		}
		if r := lock.Record(); string(r.Data) != "three" || r.Attributes["a"] != nil || r.Attributes["c"] == nil {
			t.Fatalf("record %+v", r)
		}
		w.Release(lock, leasehold.WithData([]byte("four")))
		lock = w.Acquire(c, "job", leasehold.WithAttributes(map[string]types.AttributeValue{"b": nil, "c": nil, "d": lab.Str("4")}))
		if r := lock.Record(); string(r.Data) != "four" || len(r.Attributes) != 1 || r.Attributes["d"] == nil {
			t.Fatalf("record %+v", r)
		}
		w.Release(lock, leasehold.WithData(nil), leasehold.WithAttributes(map[string]types.AttributeValue{"d": nil}))
		if item := w.Item("job"); item["data"] != nil || item["d"] != nil {
			t.Errorf("the record shows %v", item)
		}
	})
}

func TestTryAcquireRejectsDamagedRecord(t *testing.T) {
	oneClient(t, func(t *testing.T, w *lab.World, c *leasehold.Client, _ *lab.Wire) {
		for name, change := range map[string]map[string]types.AttributeValue{
			"isReleased with a wrong value": {"isReleased": lab.Str("no")},
			"no owner":                      {"ownerName": nil},
			"no version":                    {"recordVersionNumber": nil},
			"no lease":                      {"leaseDuration": nil},
			"lease of another type":         {"leaseDuration": lab.Num("20000")},
			"token of another type":         {"fencingToken": lab.Str("1"), "isReleased": lab.Str("1")},
			"token below zero":              {"fencingToken": lab.Num("-1"), "isReleased": lab.Str("1")},
			"token too large":               {"fencingToken": lab.Num("9007199254740991"), "isReleased": lab.Str("1")},
			"unknown kind":                  {"kind": lab.Str("rw"), "isReleased": lab.Str("1")},
			"our owner, no grant id":        {"grantId": nil},
		} {
			w.Release(w.Acquire(c, "job"))
			w.Update("job", map[string]types.AttributeValue{"isReleased": nil})
			w.Update("job", change)
			before := w.Item("job")
			_, err := c.TryAcquire(t.Context(), "job")
			if bad := as[*leasehold.RecordError](err); bad == nil || bad.Key.Partition != "job" {
				t.Errorf("%s: %v", name, err)
			}
			lab.Want(t, name+": attributes", len(w.Item("job")), len(before))
			w.Delete("job")
		}
	})
}

func TestAcquireRepairsDamagedRecordOfFreeKey(t *testing.T) {
	oneClient(t, func(t *testing.T, w *lab.World, c *leasehold.Client, _ *lab.Wire) {
		for name, change := range map[string]map[string]types.AttributeValue{
			"no owner":               {"ownerName": nil},
			"no version":             {"recordVersionNumber": nil},
			"no lease":               {"leaseDuration": nil},
			"lease of another type":  {"leaseDuration": lab.Num("20000")},
			"lease below zero":       {"leaseDuration": lab.Str("-5")},
			"no token":               {"fencingToken": nil},
			"our owner, no grant id": {"grantId": nil},
			"only isReleased": {
				"ownerName": nil, "recordVersionNumber": nil, "leaseDuration": nil,
				"fencingToken": nil, "grantId": nil, "grantedAt": nil, "expiresAt": nil,
			},
		} {
			w.Release(w.Acquire(c, "job"))
			w.Update("job", change)
			if r, err := c.Get(t.Context(), "job"); err != nil || !r.Released {
				t.Errorf("%s: Get returns %+v, %v", name, r, err)
			}
			lock, err := c.TryAcquire(t.Context(), "job")
			if err != nil {
				t.Errorf("%s: %v", name, err)
				continue
			}
			if r, err := c.Get(t.Context(), "job"); err != nil || r.Grant == "" || r.Grant != lock.Record().Grant {
				t.Errorf("%s: after the grant, Get returns %+v, %v", name, r, err)
			}
			w.Release(lock)
			w.Delete("job")
		}
	})
}

func TestGrantRemovesExpiresAtAttributeFromRecord(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		for _, name := range []string{"-", "ttl"} {
			w.Release(holds(w, "job"))
			lab.Want(t, "released record has expiresAt", w.Item("job")["expiresAt"] != nil, true)
			_, _, lock := w.Holding(lab.ConfigOf("locks", layout.Native{TTL: name}))
			lab.Want(t, fmt.Sprintf("TTL %q: expiresAt of a held record", name), w.Item("job")["expiresAt"], nil)
			w.Release(lock)
		}
	})
}

func TestRecordWithoutTokenGetsFirstTokenFromClock(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		w.Put(map[string]types.AttributeValue{
			"key": lab.Str("job"), "ownerName": lab.Str("java"), "leaseDuration": lab.Str("20000"), "recordVersionNumber": lab.Str("v"), "isReleased": lab.Str("1"),
		})
		c, wire := w.Client(lab.Config())
		now := time.Now().UnixMicro()
		lock := w.Acquire(c, "job")
		lab.Want(t, "token", lock.Token(), now+1)
		lab.Want(t, "requests", len(wire.Sent()), 1)
		w.Release(lock)
	})
}

func TestHeldErrorShowsDateIfGrantIsFromYesterday(t *testing.T) {
	at := time.Now().Add(-25 * time.Hour)
	err := &leasehold.HeldError{Key: leasehold.Key{Partition: "job"}, Holder: leasehold.Record{Owner: "web", GrantedAt: at}}
	lab.WantText(t, "acquire", err, at.Local().Format(time.DateTime))
}

func TestLocksThatDifferInSortKeyAreIndependent(t *testing.T) { // awslabs clients treat ("a","bc") and ("ab","c") as equal; dynamolock ignores the sort key
	lab.InLayout(t, layout.Native{SortKey: "shard", SortValue: "-"}, func(t *testing.T, w *lab.World, cfg leasehold.Config) {
		c, _ := w.Client(cfg)
		locks := []*leasehold.Lock{
			w.Acquire(c, "a", leasehold.WithSortKey("bc")),
			w.Acquire(c, "ab", leasehold.WithSortKey("c")),
			w.Acquire(c, "a", leasehold.WithSortKey("d")),
			w.Acquire(c, "a"), // without WithSortKey, the sort value of the layout applies
		}
		lab.Want(t, "key", locks[3].Key(), leasehold.Key{Partition: "a", Sort: "-"})
		lab.WantErr(t, "held", lab.ErrorOf(c.TryAcquire(t.Context(), "a", leasehold.WithSortKey("bc"))), leasehold.ErrHeld)
		n := 0
		for r, err := range c.List(t.Context(), leasehold.ListOptions{Partition: "a"}) {
			lab.WantErr(t, "listed", err, nil)
			lab.Want(t, "partition", r.Key.Partition, "a")
			n++
		}
		lab.Want(t, "records in partition a", n, 3)
		w.Release(locks[0])
		for _, l := range locks[1:] {
			lab.WantErr(t, l.Key().String(), l.Err(), nil)
			w.Release(l)
		}
	})
}

func TestAcquireWithNoWaitSucceedsIfKeyIsReleasedDuringCall(t *testing.T) {
	oneClient(t, func(_ *testing.T, w *lab.World, b *leasehold.Client, wire *lab.Wire) {
		other := holds(w, "job")
		wire.SetFault(lab.Once(lab.Call.Grants, func(r *lab.Request) (*http.Response, error) {
			res, err := lab.ShowNothing(r)
			w.Release(other) // the holder releases the key before client b reads the record
			return res, err
		}))
		w.Release(w.Acquire(b, "job", leasehold.NoWait()))
	})
}

func TestWaiterAcquiresKeyWithinOneSecondAfterRelease(t *testing.T) {
	oneClient(t, func(t *testing.T, w *lab.World, a *leasehold.Client, _ *lab.Wire) {
		b, wire := w.Client(lab.Config())
		lock := w.Acquire(a, "job")
		next := w.Queue(b, "job")
		lab.Elapse(7 * time.Second)
		released := time.Now()
		w.Release(lock)
		w.Release(<-next)
		lab.WantTook(t, "time from release to grant", released, 0, time.Second)
		for i, c := range wire.Sent()[1:] {
			if i > 0 && c.Grants() {
				// The waiter sent this grant after the release. The loop ends here, because only the
				// requests before the release must be polls.
				break
			}
			if !c.Grants() && c.Op != "GetItem" && !c.Releases() {
				t.Errorf("a waiter sent %s", c.Op)
			}
		}
	})
}

func TestAcquireReturnsImmediatelyWhenItsContextEnds(t *testing.T) {
	oneClient(t, func(t *testing.T, w *lab.World, b *leasehold.Client, _ *lab.Wire) {
		lock := holds(w, "job")
		ctx := w.Within(3 * time.Second)
		began := time.Now()
		_, err := b.Acquire(ctx, "job")
		lab.WantErr(t, "Acquire", err, context.DeadlineExceeded, leasehold.ErrHeld)
		lab.WantTook(t, "Acquire took", began, 3*time.Second, 3*time.Second+10*time.Millisecond)
		synctest.Wait()
		before := w.Item("job")
		w.Release(lock)
		lab.Elapse(time.Minute)
		lab.Want(t, "owner in the record", lab.Text(before, "ownerName"), lab.Text(w.Item("job"), "ownerName"))
		w.WantReleased("job")
		lab.Want(t, "waiting", b.Stats().Waiting, 0)
	})
}

func TestWaiterTakesOverLockOfDeadHolderAfterOneLease(t *testing.T) {
	oneLock(t, func(t *testing.T, w *lab.World, _ *leasehold.Client, wire *lab.Wire, dead *leasehold.Lock) {
		last := dead.Record()
		wire.SetFault(lab.Cut)
		began := time.Now()
		lock := holds(w, "job")
		defer w.Release(lock)
		lab.WantTook(t, "time until the takeover", began, 20*time.Second, 20*time.Second+50*time.Millisecond)
		if r, ok := lock.TookOver(); !ok || r.Owner != last.Owner || r.Token != last.Token {
			t.Errorf("took over %+v, %v", r, ok)
		}
		lab.Want(t, "token of the next grant", lock.Token(), last.Token+1)
		lab.WantErr(t, "the dead holder's error", dead.Err(), leasehold.ErrLost)
		_ = dead.Release(t.Context())
	})
}

func TestTokensRepeatAfterRecordIsRestoredFromBackup(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		granted := func() int64 {
			lab.Elapse(time.Second)
			lock := holds(w, "job")
			defer w.Release(lock)
			return lock.Token()
		}
		granted()
		backup := w.Item("job")
		second, third := granted(), granted()
		w.Put(backup)
		if token := granted(); token != second {
			t.Errorf("token %d after the restore, want %d; the last token before it was %d: docs/table.md says that tokens repeat", token, second, third)
		}
		w.Delete("job") // without a record, the key is like a key of a new table
		if token := granted(); token <= third {
			t.Errorf("token %d in an empty table, after %d", token, third)
		}
	})
}
