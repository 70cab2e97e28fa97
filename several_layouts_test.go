package leasehold_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/layout"
	"github.com/leasehold-go/leasehold/localdynamo"
	"github.com/leasehold-go/leasehold/table"
)

func TestSeveralKeysAreHeldTogetherInEveryLayout(t *testing.T) {
	for _, l := range []layout.Layout{
		layout.Native{SortKey: "part", SortValue: "-"}, layout.AWSLabs{}, layout.Dynamolock{},
		layout.PythonDynamoDBLock{}, layout.DynamoDLM{}, layout.DyndbMutex{},
	} {
		t.Run(l.Name(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				engine := localdynamo.New()
				t.Cleanup(func() { _ = engine.Close() })
				w := &world{t: t, engine: engine, db: engine.Client()}
				if err := table.Create(t.Context(), w.db, table.Spec{Name: "locks", Layout: l}); err != nil {
					t.Fatal(err)
				}
				cfg := config()
				cfg.Layout = l
				a, wire := w.client(cfg)
				b, _ := w.client(cfg)
				keys := leasehold.Keys("b", "a", "c")
				for range 2 {
					g := w.acquireAll(a, keys)
					if _, err := b.AcquireAll(t.Context(), leasehold.Keys("c", "d"), leasehold.NoWait()); !errors.Is(err, leasehold.ErrHeld) {
						t.Errorf("a second holder: %v", err)
					}
					elapse(time.Minute) // renewed
					if err := g.Err(); err != nil {
						t.Error(err)
					}
					if err := g.Release(t.Context()); err != nil {
						t.Error(err)
					}
				}
				dead := w.acquireAll(a, keys)
				wire.setFault(cut)
				g := w.acquireAll(b, keys)
				for i, lock := range g.Locks() {
					if dead.Locks()[i].Err() == nil {
						t.Errorf("%v: two believe", lock.Key())
					}
					if _, took := lock.TookOver(); !took || lock.Key().Partition != keys[i].Partition {
						t.Errorf("%v: taken over: %v", lock.Key(), took)
					}
				}
				one, err := b.AcquireAny(t.Context(), leasehold.Keys("d", "e"))
				if err != nil {
					t.Fatal(err)
				}
				w.release(one)
				if err := g.Release(t.Context()); err != nil {
					t.Error(err)
				}
				wire.setFault(nil)
				_ = dead.Release(t.Context())
			})
		})
	}
}

func TestSeveralKeysMayHaveSortKeys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := localdynamo.New()
		t.Cleanup(func() { _ = engine.Close() })
		w := &world{t: t, engine: engine, db: engine.Client()}
		cfg := config()
		cfg.Layout = layout.Native{SortKey: "part"}
		if err := table.Create(t.Context(), w.db, table.Spec{Name: "locks", Layout: cfg.Layout}); err != nil {
			t.Fatal(err)
		}
		c, _ := w.client(cfg)
		g := w.acquireAll(c, []leasehold.Key{{Partition: "a", Sort: "2"}, {Partition: "a"}, {Partition: "a", Sort: "1"}}, leasehold.WithSortKey("1"))
		if l := g.Locks(); len(l) != 2 || l[0].Key().Sort != "2" || l[1].Key().Sort != "1" {
			t.Errorf("locks %v, %v, …", l[0].Key(), l[1].Key())
		}
		if err := g.Release(t.Context()); err != nil {
			t.Error(err)
		}
	})
}
