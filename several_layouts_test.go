package leasehold_test

import (
	"errors"
	"testing"
	"time"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/lab"
	"github.com/leasehold-go/leasehold/layout"
)

func TestSeveralKeysAreHeldTogetherInEveryLayout(t *testing.T) {
	for _, l := range []layout.Layout{
		layout.Native{SortKey: "part", SortValue: "-"}, layout.AWSLabs{}, layout.Dynamolock{},
		layout.PythonDynamoDBLock{}, layout.DynamoDLM{}, layout.DyndbMutex{},
	} {
		t.Run(l.Name(), func(t *testing.T) {
			lab.InLayout(t, l, func(t *testing.T, w *lab.World, cfg leasehold.Config) {
				a, wire := w.Client(cfg)
				b, _ := w.Client(cfg)
				keys := leasehold.Keys("b", "a", "c")
				for range 2 {
					g := w.AcquireAll(a, keys)
					if _, err := b.AcquireAll(t.Context(), leasehold.Keys("c", "d"), leasehold.NoWait()); !errors.Is(err, leasehold.ErrHeld) {
						t.Errorf("a second holder: %v", err)
					}
					lab.Elapse(time.Minute) // renewed
					if err := g.Err(); err != nil {
						t.Error(err)
					}
					if err := g.Release(t.Context()); err != nil {
						t.Error(err)
					}
				}
				dead := w.AcquireAll(a, keys)
				wire.SetFault(lab.Cut)
				g := w.AcquireAll(b, keys)
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
				w.Release(one)
				if err := g.Release(t.Context()); err != nil {
					t.Error(err)
				}
				wire.SetFault(nil)
				_ = dead.Release(t.Context())
			})
		})
	}
}

func TestSeveralKeysMayHaveSortKeys(t *testing.T) {
	lab.InLayout(t, layout.Native{SortKey: "part"}, func(t *testing.T, w *lab.World, cfg leasehold.Config) {
		c, _ := w.Client(cfg)
		g := w.AcquireAll(c, []leasehold.Key{{Partition: "a", Sort: "2"}, {Partition: "a"}, {Partition: "a", Sort: "1"}}, leasehold.WithSortKey("1"))
		if l := g.Locks(); len(l) != 2 || l[0].Key().Sort != "2" || l[1].Key().Sort != "1" {
			t.Errorf("locks %v, %v, …", l[0].Key(), l[1].Key())
		}
		if err := g.Release(t.Context()); err != nil {
			t.Error(err)
		}
	})
}
