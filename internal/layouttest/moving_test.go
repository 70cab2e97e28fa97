package layouttest_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/lab"
	"github.com/leasehold-go/leasehold/layout"
	"github.com/leasehold-go/leasehold/table"
)

// These tests follow the procedures of docs/migrating, which move a fleet of processes to another
// layout in stages. While a stage is rolled out, processes of the previous stage still run. Even
// then, only one process may work at a time.

// stage is one stage of a move to another layout: the configurations of the locks that a process
// holds while it works. The process acquires the locks in the order of the configurations.
type stage []leasehold.Config

// section is a critical section: work that only one process may do at a time.
type section struct {
	inside, done atomic.Int32 // number of processes inside now, and number of times that the work was done
	overlaps     atomic.Int32 // number of entries while another process was inside

	mu     sync.Mutex
	tokens map[string][]int64 // tokens by table, in the order in which their holders entered the section
}

func (s *section) work(ctx context.Context, held []grantIn) error {
	if s.inside.Add(1) != 1 {
		s.overlaps.Add(1)
	}
	s.mu.Lock()
	for _, g := range held {
		s.tokens[g.table] = append(s.tokens[g.table], g.token)
	}
	s.mu.Unlock()
	select {
	case <-time.After(time.Duration(rand.Int64N(int64(2 * time.Second)))):
		s.done.Add(1)
	case <-ctx.Done(): // the lock is lost, or its trust is about to end
	}
	s.inside.Add(-1)
	return context.Cause(ctx)
}

// grantIn is a grant, with the name of its lock table.
type grantIn struct {
	table string
	token int64
}

// nested acquires the locks in order, calls the function "work" while all of them are held, and
// releases them in reverse order.
func nested(ctx context.Context, st stage, locks []*leasehold.Client, held []grantIn, work func(context.Context, []grantIn) error) error {
	if len(locks) == 0 {
		return work(ctx, held)
	}
	return locks[0].Do(ctx, "job", func(ctx context.Context, lock *leasehold.Lock) error {
		return nested(ctx, st[1:], locks[1:], append(held, grantIn{st[0].Table, lock.Token()}), work)
	})
}

const (
	rounds  = 4 // number of rounds of work of each process
	perHalf = 2 // number of processes of each stage that keep their network
)

// sideBySide runs processes of all given stages at the same time, and returns the critical
// section that they all enter. One process of each stage loses its network during its work.
func sideBySide(t *testing.T, w *lab.World, stages ...stage) *section {
	t.Helper()
	s := section{tokens: map[string][]int64{}}
	var all sync.WaitGroup
	process := func(st stage, dies bool) {
		var locks []*leasehold.Client
		var wires []*lab.Wire
		for _, cfg := range st {
			c, wire := w.Client(cfg)
			locks, wires = append(locks, c), append(wires, wire)
		}
		all.Go(func() {
			for range rounds {
				err := nested(t.Context(), st, locks, nil, func(ctx context.Context, held []grantIn) error {
					if dies {
						for _, wire := range wires {
							wire.SetFault(lab.Cut)
						}
					}
					return s.work(ctx, held)
				})
				if dies {
					return // this process simulates a death, so it checks no error and closes no client
				}
				if err != nil {
					t.Error(err)
				}
			}
			for _, c := range locks {
				lab.OK(t, c.Close(t.Context()))
			}
		})
		if dies {
			t.Cleanup(func() {
				gone, cancel := context.WithCancelCause(context.Background())
				cancel(errors.New("the process has died"))
				for _, c := range locks {
					_ = c.Close(gone)
				}
			})
		}
	}
	for _, st := range stages {
		process(st, true)
		for range perHalf {
			process(st, false)
		}
	}
	all.Wait()
	if n := int(s.done.Load()); n < len(stages)*perHalf*rounds {
		t.Errorf("the work was done %d times", n)
	}
	return &s
}

// mustExclude fails the test if two processes were in the section at once, or if the tokens of a
// table do not increase.
func (s *section) mustExclude(t *testing.T) {
	t.Helper()
	lab.Want(t, "entries while another process was inside", s.overlaps.Load(), 0)
	for name, tokens := range s.tokens {
		if !slices.IsSorted(tokens) || len(slices.Compact(slices.Clone(tokens))) != len(tokens) {
			t.Errorf("tokens of table %s do not grow: %v", name, tokens)
		}
	}
}

// testMovingInPlace tests a move from layout l to the native layout within one table.
// Clients of both layouts can read each other's records.
func testMovingInPlace(t *testing.T, l layout.Layout) {
	lab.Each(t, map[string]bool{"kept on release": false, "deleted on release": true}, func(t *testing.T, w *lab.World, deletes bool) {
		old := lab.ConfigOf("locks", l)
		old.DeleteOnRelease = deletes
		sideBySide(t, w, stage{old}, stage{lab.ConfigOf("locks", layout.Native{})}).mustExclude(t)
	})
}

func TestMoveFromAWSLabsLayoutNeverAllowsTwoHolders(t *testing.T) {
	testMovingInPlace(t, layout.AWSLabs{})
}

func TestMoveFromDynamolockLayoutNeverAllowsTwoHolders(t *testing.T) {
	testMovingInPlace(t, layout.Dynamolock{})
}

// threeStages returns the stages of a move from a table with layout l to a table with layout
// native. The first stage locks the key in the old table, the second stage in both tables, and the
// third stage in the new table.
func threeStages(t *testing.T, w *lab.World, l layout.Layout) []stage {
	t.Helper()
	lab.OK(t, table.Create(t.Context(), w.DB, table.Spec{Name: "old", Layout: l}))
	old, native := lab.ConfigOf("old", l), lab.ConfigOf("locks", layout.Native{})
	return []stage{{old}, {old, native}, {native}}
}

func TestThreeStageMoveToLayoutNativeNeverAllowsTwoHolders(t *testing.T) {
	// These layouts cannot use the native layout's table, because they need a different key schema.
	for _, l := range []layout.Layout{layout.PythonDynamoDBLock{}, layout.DynamoDLM{}, layout.DyndbMutex{}} {
		t.Run(l.Name(), func(t *testing.T) {
			lab.Each(t, map[string]int{"old beside both": 0, "both beside native": 1}, func(t *testing.T, w *lab.World, from int) {
				sideBySide(t, w, threeStages(t, w, l)[from:from+2]...).mustExclude(t)
			})
		})
	}
}

func TestLayoutMoveThatSkipsSecondOfThreeStagesAllowsTwoHolders(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		stages := threeStages(t, w, layout.PythonDynamoDBLock{})
		if s := sideBySide(t, w, stages[0], stages[2]); s.overlaps.Load() == 0 {
			t.Error("no two processes met: these tests cannot detect two holders")
		}
	})
}

// ttlOn turns TTL on for the lock table, as table.Create does for the native layout.
func ttlOn(t *testing.T, w *lab.World) {
	t.Helper()
	lab.Must(w.DB.UpdateTimeToLive(t.Context(), &dynamodb.UpdateTimeToLiveInput{
		TableName:               aws.String("locks"),
		TimeToLiveSpecification: &types.TimeToLiveSpecification{AttributeName: aws.String("expiresAt"), Enabled: aws.Bool(true)},
	}))(t)
}

// A native client that releases a key leaves an expiry time in the record. A grant by a client with
// layout awslabs or dynamolock removes this time. So TTL can stay on while such clients and native
// clients use one table.
func TestTTLDoesNotDeleteRecordHeldInLayoutAWSLabsOrDynamolock(t *testing.T) {
	for _, l := range []layout.Layout{layout.AWSLabs{}, layout.Dynamolock{}} {
		t.Run(l.Name(), func(t *testing.T) {
			lab.InBubble(t, func(t *testing.T, w *lab.World) {
				ttlOn(t, w)
				native, _ := w.Client(lab.ConfigOf("locks", layout.Native{}))
				defer native.Close(t.Context())
				shared, _ := w.Client(lab.ConfigOf("locks", l))
				defer shared.Close(t.Context())
				first := w.Acquire(native, "job")
				w.Release(first)
				if w.Item("job")["expiresAt"] == nil {
					t.Fatal("a native release leaves no expiry time")
				}
				lock := w.Acquire(shared, "job", leasehold.WithLease(60*24*time.Hour)) // the client renews the lock every 15 days
				lab.Elapse(30 * 24 * time.Hour)
				if err := lock.Err(); err != nil || lock.Token() <= first.Token() {
					t.Errorf("error %v, token %d after %d", err, lock.Token(), first.Token())
				}
				w.Release(lock)
			})
		})
	}
}

// When a native client with a shared lease closes, it only marks its session as dead. Clients with
// layout awslabs ignore sessions, so a fleet must not use shared leases until all its processes use
// layout native.
func TestClientWithLayoutAWSLabsWaitsAnHourForKeyOfClosedSession(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		cfg := lab.ConfigOf("locks", layout.Native{})
		cfg.SharedLease = true
		native, _ := w.Client(cfg)
		w.Acquire(native, "job")
		if err := native.Close(t.Context()); err != nil { // releases the key for native clients only; for an awslabs client the key still appears held
			t.Fatal(err)
		}
		before, _ := w.Client(lab.ConfigOf("locks", layout.AWSLabs{}))
		began := time.Now()
		w.Release(w.Acquire(before, "job"))
		if waited := time.Since(began); waited < time.Hour-time.Minute {
			t.Errorf("the key was free after %v, but docs/migrating says an hour", waited)
		}
	})
}

func TestDoneMarkIsLostIfClientWithLayoutAWSLabsDeletesRecord(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		native, _ := w.Client(lab.ConfigOf("locks", layout.Native{}))
		done := 0
		do := func() {
			t.Helper()
			err := native.Do(t.Context(), "job", func(context.Context, *leasehold.Lock) error { done++; return nil }, leasehold.Once("label"))
			if err != nil && !errors.Is(err, leasehold.ErrDone) {
				t.Error(err)
			}
		}
		do()
		before := lab.ConfigOf("locks", layout.AWSLabs{})
		keeps, _ := w.Client(before)
		w.Release(w.Acquire(keeps, "job"))
		if do(); done != 1 {
			t.Errorf("done %d times after a client that keeps the record", done)
		}
		before.DeleteOnRelease = true
		deletes, _ := w.Client(before)
		w.Release(w.Acquire(deletes, "job"))
		if do(); done != 2 {
			t.Errorf("done %d times after a client that deletes the record, but docs/migrating says that the mark is lost", done)
		}
	})
}
