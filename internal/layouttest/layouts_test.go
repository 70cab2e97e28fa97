package layouttest_test

import (
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/lab"
	"github.com/leasehold-go/leasehold/internal/layouttest"
	"github.com/leasehold-go/leasehold/layout"
	"github.com/leasehold-go/leasehold/localdynamo"
	"github.com/leasehold-go/leasehold/localdynamo/boltstore"
)

func TestEveryLayoutPassesLockTestsOnLocaldynamoInMemory(t *testing.T) {
	for _, s := range layouttest.Subjects() {
		t.Run(s.Name, func(t *testing.T) {
			t.Parallel()
			layouttest.Exercise(t, inVirtualTime(func(*testing.T) *localdynamo.Engine { return localdynamo.New() }), s)
		})
	}
}

func TestEveryLayoutPassesLockTestsOnLocaldynamoWithFile(t *testing.T) {
	for _, s := range layouttest.Brief() {
		t.Run(s.Name, func(t *testing.T) {
			t.Parallel()
			layouttest.Exercise(t, inVirtualTime(func(t *testing.T) *localdynamo.Engine {
				store := lab.Must(boltstore.Open(filepath.Join(t.TempDir(), "locks.db")))(t)
				return localdynamo.New(localdynamo.WithStore(store))
			}), s)
		})
	}
}

// inVirtualTime returns a layouttest.Engine that runs each check in a synctest bubble. For each
// check, it calls the function "open" to create a localdynamo.Engine.
func inVirtualTime(open func(*testing.T) *localdynamo.Engine) layouttest.Engine {
	return layouttest.Engine{
		Virtual: true,
		Run: func(t *testing.T, check func(*testing.T, layouttest.Connect)) {
			synctest.Test(t, func(t *testing.T) {
				engine := open(t)
				t.Cleanup(func() { _ = engine.Close() })
				check(t, engine.Client)
			})
		},
	}
}

func TestAcquireAllTakesOverKeysOfDeadHolderInEveryLayout(t *testing.T) {
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
					lab.WantErr(t, "a second holder", lab.ErrorOf(b.AcquireAll(t.Context(), leasehold.Keys("c", "d"), leasehold.NoWait())), leasehold.ErrHeld)
					lab.Elapse(time.Minute) // the client renews the locks during this minute
					lab.OK(t, g.Err())
					lab.OK(t, g.Release(t.Context()))
				}
				dead := w.AcquireAll(a, keys)
				wire.SetFault(lab.Cut)
				g := w.AcquireAll(b, keys)
				for i, lock := range g.Locks() {
					if dead.Locks()[i].Err() == nil {
						t.Errorf("%v: two clients trust their locks", lock.Key())
					}
					if _, took := lock.TookOver(); !took || lock.Key().Partition != keys[i].Partition {
						t.Errorf("%v: taken over: %v", lock.Key(), took)
					}
				}
				one := lab.Must(b.AcquireAny(t.Context(), leasehold.Keys("d", "e")))(t)
				w.Release(one)
				lab.OK(t, g.Release(t.Context()))
				wire.SetFault(nil)
				_ = dead.Release(t.Context())
			})
		})
	}
}

func TestSortKeyOptionAppliesOnlyToKeysWithoutSortKey(t *testing.T) {
	lab.InLayout(t, layout.Native{SortKey: "part"}, func(t *testing.T, w *lab.World, cfg leasehold.Config) {
		c, _ := w.Client(cfg)
		g := w.AcquireAll(c, []leasehold.Key{{Partition: "a", Sort: "2"}, {Partition: "a"}, {Partition: "a", Sort: "1"}}, leasehold.WithSortKey("1"))
		if l := g.Locks(); len(l) != 2 || l[0].Key().Sort != "2" || l[1].Key().Sort != "1" {
			t.Errorf("locks %v, %v, …", l[0].Key(), l[1].Key())
		}
		lab.OK(t, g.Release(t.Context()))
	})
}

func TestCommitsAreFencedInEveryLayout(t *testing.T) {
	for _, l := range []layout.Layout{
		layout.Native{}, layout.AWSLabs{}, layout.Dynamolock{}, layout.PythonDynamoDBLock{}, layout.DynamoDLM{}, layout.DyndbMutex{},
	} {
		t.Run(l.Name(), func(t *testing.T) { lab.InLayout(t, l, commits) })
	}
}

// commits checks that commits and guards in a lock table of the given layout succeed only while
// their grant is current.
func commits(t *testing.T, w *lab.World, cfg leasehold.Config) {
	w.Work()
	a, _ := w.Client(cfg)
	b, wire := w.Client(cfg)
	lock := w.Acquire(a, "job")
	guard := lock.Guards()[0]
	lab.Elapse(time.Minute) // the client renews the lock during this minute
	lab.OK(t, lock.Commit(t.Context(), lab.Writes(lab.Note("a", "1"))))
	lab.WantErr(t, "read", lab.ErrorOf(lock.Read(t.Context(), nil)), nil)
	lab.OK(t, lock.CommitAndRelease(t.Context(), lab.Writes(lab.Note("a", "2"))))
	lock = w.Acquire(b, "job")
	lab.WantFailed(t, "a guard after the end of its grant", w.Transact(guard, lab.Note("a", "stale")))
	wire.SetFault(lab.Script(lab.Delayed(time.Minute), lab.Cut, lab.Cut)) // the commit arrives a minute late, when another client holds the key
	lab.WantErr(t, "commit", lock.Commit(w.Within(time.Second), lab.Writes(lab.Note("a", "stale"))), leasehold.ErrUnknownOutcome)
	w.Release(lock)
	lock = w.Acquire(a, "job")
	lab.Elapse(2 * time.Minute)
	w.WantLog("1", "2")
	// An operator breaks the lock: the next commit reports the loss.
	lab.OK(t, b.Break(t.Context(), lock.Record(), leasehold.BreakOptions{}))
	lab.WantErr(t, "commit after a break", lock.Commit(t.Context(), lab.Writes(lab.Note("a", "stale"))), leasehold.ErrLost)
	w.WantLog("1", "2")
}
