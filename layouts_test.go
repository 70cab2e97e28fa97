package leasehold_test

import (
	"context"
	"errors"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/lab"
	"github.com/leasehold-go/leasehold/internal/layouttest"
	"github.com/leasehold-go/leasehold/layout"
	"github.com/leasehold-go/leasehold/localdynamo"
	"github.com/leasehold-go/leasehold/localdynamo/boltstore"
)

func TestEveryLayoutInMemory(t *testing.T) {
	for _, s := range layouttest.Subjects() {
		t.Run(s.Name, func(t *testing.T) {
			t.Parallel()
			layouttest.Exercise(t, inVirtualTime(func(*testing.T) *localdynamo.Engine { return localdynamo.New() }), s)
		})
	}
}

func TestEveryLayoutInAFile(t *testing.T) {
	for _, s := range layouttest.Brief() {
		t.Run(s.Name, func(t *testing.T) {
			t.Parallel()
			layouttest.Exercise(t, inVirtualTime(func(t *testing.T) *localdynamo.Engine {
				store, err := boltstore.Open(filepath.Join(t.TempDir(), "locks.db"))
				if err != nil {
					t.Fatal(err)
				}
				return localdynamo.New(localdynamo.WithStore(store))
			}), s)
		})
	}
}

// inVirtualTime runs every check in a bubble with an engine of its own.
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

func TestWhatALayoutCannotDoIsRefusedBeforeAnythingIsSent(t *testing.T) {
	attributes := leasehold.WithAttributes(map[string]types.AttributeValue{"reason": lab.Str("month end")})
	for _, c := range []struct {
		layout  layout.Layout
		feature string
		ask     leasehold.AcquireOption
	}{
		{layout.Native{}, "sort key", leasehold.WithSortKey("eu")},
		{layout.AWSLabs{}, "sort key", leasehold.WithSortKey("eu")},
		{layout.Dynamolock{}, "sort key", leasehold.WithSortKey("eu")},
		{layout.DynamoDLM{NoSlots: true}, "sort key", leasehold.WithSortKey("1")},
		{layout.DyndbMutex{}, "sort key", leasehold.WithSortKey("eu")},
		{layout.PythonDynamoDBLock{}, "data", leasehold.WithData([]byte("x"))},
		{layout.PythonDynamoDBLock{}, "data", leasehold.WithInitialData([]byte("x"))},
		{layout.DynamoDLM{}, "data", leasehold.WithData([]byte("x"))},
		{layout.DyndbMutex{}, "data", leasehold.WithData([]byte("x"))},
		{layout.DynamoDLM{}, "attributes", attributes},
		{layout.DyndbMutex{}, "attributes", attributes},
		{layout.PythonDynamoDBLock{}, "KeepOnRelease", leasehold.KeepOnRelease()},
		{layout.DynamoDLM{}, "KeepOnRelease", leasehold.KeepOnRelease()},
	} {
		t.Run(c.layout.Name()+", "+c.feature, func(t *testing.T) {
			lab.InBubble(t, func(t *testing.T, w *lab.World) {
				client, wire := w.Client(lab.ConfigOf("locks", c.layout))
				defer client.Close(t.Context())
				_, err := client.Acquire(t.Context(), "job", c.ask)
				var unsupported *leasehold.UnsupportedError
				if !errors.As(err, &unsupported) || *unsupported != (leasehold.UnsupportedError{Table: "locks", Layout: c.layout.Name(), Feature: c.feature}) ||
					!errors.Is(err, errors.ErrUnsupported) {
					t.Errorf("acquire: %v", err)
				}
				err = client.Do(t.Context(), "job", func(context.Context, *leasehold.Lock) error { return nil }, c.ask)
				if !errors.As(err, &unsupported) || !errors.Is(err, leasehold.ErrNotRun) {
					t.Errorf("do: %v", err)
				}
				if sent := wire.Sent(); len(sent) != 0 {
					t.Errorf("%d requests were sent", len(sent))
				}
			})
		})
	}
}

func TestRetentionIsRefusedWhereNoReleasedRecordCouldExpire(t *testing.T) {
	for _, l := range []layout.Layout{layout.AWSLabs{}, layout.Dynamolock{}, layout.PythonDynamoDBLock{}, layout.DynamoDLM{}} {
		cfg := lab.ConfigOf("locks", l)
		cfg.Retention = time.Hour
		var unsupported *leasehold.UnsupportedError
		if _, err := leasehold.New(lab.New(t).DB, cfg); !errors.As(err, &unsupported) || *unsupported != (leasehold.UnsupportedError{Table: "locks", Layout: l.Name(), Feature: "Retention"}) {
			t.Errorf("%s: %v", l.Name(), err)
		}
	}
}
