package locktest_test

import (
	"bytes"
	"context"
	"log/slog"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/lab"
	"github.com/leasehold-go/leasehold/layout"
	"github.com/leasehold-go/leasehold/locktest"
	"github.com/leasehold-go/leasehold/table"
)

// inBubble runs a test in a synctest bubble, where time is virtual, with a new Env. It
// checks that the Env reports no error at the end.
func inBubble(t *testing.T, test func(t *testing.T, env *locktest.Env)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { test(t, locktest.New(t)) })
}

// withClient is like inBubble, but also passes a client of the Env.
func withClient(t *testing.T, test func(t *testing.T, env *locktest.Env, locks *leasehold.Client)) {
	t.Helper()
	inBubble(t, func(t *testing.T, env *locktest.Env) { test(t, env, env.Client(leasehold.Config{})) })
}

func acquire(t *testing.T, locks *leasehold.Client, key string, opts ...leasehold.AcquireOption) *leasehold.Lock {
	t.Helper()
	return lab.Must(locks.Acquire(t.Context(), key, opts...))(t)
}

func release(t *testing.T, lock *leasehold.Lock) {
	t.Helper()
	lab.OK(t, lock.Release(t.Context()))
}

func TestEnvReportsErrorIfLockIsStillHeldWhenTestEnds(t *testing.T) {
	probed(t, func(t *testing.T, p *probe, env *locktest.Env) {
		locks := env.Client(leasehold.Config{Owner: "billing"})
		lock := acquire(t, locks, "close/2026-11")
		shared := lab.Must(locks.Acquire(lock.Context(), "close/2026-11", leasehold.Reentrant()))(t)
		problems := p.end()
		if len(problems) != 1 || !strings.HasPrefix(problems[0], "locktest: close/2026-11 is still held by billing/") ||
			!strings.Contains(problems[0], "release it") {
			t.Errorf("at the end: %q", problems)
		}
		for _, l := range []*leasehold.Lock{lock, shared} {
			lab.WantErr(t, "the lock left held", l.Err(), leasehold.ErrClosed)
		}
	})
}

func TestEnvReportsNoLeakIfClientHoldsNoLockOrIsDisconnected(t *testing.T) {
	lab.Variants(t, map[string]func(t *testing.T, env *locktest.Env, locks *leasehold.Client, lock *leasehold.Lock){
		"released": func(t *testing.T, _ *locktest.Env, _ *leasehold.Client, lock *leasehold.Lock) { release(t, lock) },
		"closed": func(t *testing.T, _ *locktest.Env, locks *leasehold.Client, _ *leasehold.Lock) {
			lab.OK(t, locks.Close(t.Context()))
		},
		"detached": func(t *testing.T, _ *locktest.Env, _ *leasehold.Client, lock *leasehold.Lock) {
			lab.Must(lock.Detach())(t)
		},
		"lost": func(t *testing.T, env *locktest.Env, _ *leasehold.Client, lock *leasehold.Lock) {
			env.Steal("k")
			<-lock.Context().Done()
		},
		"died": func(_ *testing.T, env *locktest.Env, locks *leasehold.Client, _ *leasehold.Lock) {
			env.Disconnect(locks)
		},
		"all died": func(_ *testing.T, env *locktest.Env, _ *leasehold.Client, _ *leasehold.Lock) { env.Disconnect() },
	}, func(t *testing.T, end func(t *testing.T, env *locktest.Env, locks *leasehold.Client, lock *leasehold.Lock)) {
		withClient(t, func(t *testing.T, env *locktest.Env, locks *leasehold.Client) {
			end(t, env, locks, acquire(t, locks, "k"))
		})
	})
}

func TestEnvCleanupGrantsNoKeyToWaiter(t *testing.T) {
	probed(t, func(t *testing.T, p *probe, env *locktest.Env) {
		env.Hold("k")
		live, dead := env.Client(leasehold.Config{}), env.Client(leasehold.Config{})
		ended := make(chan error, 2)
		for _, locks := range []*leasehold.Client{live, dead} {
			go func() {
				ended <- locks.Do(context.Background(), "k", func(context.Context, *leasehold.Lock) error {
					t.Error("a waiter was granted the key")
					return nil
				})
			}()
		}
		synctest.Wait()
		env.Disconnect(dead)
		time.Sleep(time.Minute)
		p.endsWell(t)
		for range 2 {
			lab.WantErr(t, "the waiter", <-ended, leasehold.ErrNotRun)
		}
	})
}

func TestEnvCleanupMakesWaiterReturnErrClosed(t *testing.T) {
	// The Env must close the client of the waiters before the clients of Hold, because no waiter
	// may acquire a key that becomes free. This test uses real time: in a bubble no waiter would
	// poll while the Env closes the clients.
	p := newProbe(t.Context())
	env := locktest.New(p)
	locks := env.Client(leasehold.Config{PollMax: time.Millisecond})
	var waiting sync.WaitGroup
	for i := range 20 {
		key := strconv.Itoa(i)
		env.Hold(key)
		waiting.Go(func() {
			lab.WantErr(t, "a waiter", locks.Do(context.Background(), key, nothing), leasehold.ErrClosed)
		})
	}
	for locks.Stats().Waiting < 20 {
		runtime.Gosched()
	}
	p.endsWell(t)
	waiting.Wait()
}

func TestCleanupDoesNotWaitForDisconnectedClient(t *testing.T) {
	probed(t, func(t *testing.T, p *probe, env *locktest.Env) {
		locks := env.Client(leasehold.Config{ReleaseGrace: time.Hour})
		for _, key := range []string{"a", "b"} {
			acquire(t, locks, key)
		}
		env.Disconnect(locks)
		time.Sleep(6 * time.Second) // after 6 s, every lock has a renewal request in flight
		began := time.Now()
		if problems := p.end(); len(problems) > 0 || time.Since(began) > time.Second {
			t.Errorf("after %v: %q", time.Since(began), problems)
		}
	})
}

func TestClientLogsNothingAfterTestEnds(t *testing.T) {
	probed(t, func(t *testing.T, p *probe, env *locktest.Env) {
		locks := env.Client(leasehold.Config{})
		stolen := acquire(t, locks, "stolen")
		env.Steal("stolen")
		<-stolen.Context().Done()
		synctest.Wait()
		if !strings.Contains(p.log.String(), "leasehold: lock lost") {
			t.Errorf("the test's log: %s", p.log.String())
		}
		went := make(chan struct{})
		stuck := make(chan struct{})
		go func() {
			defer close(stuck)
			_ = locks.Do(context.Background(), "stuck", func(_ context.Context, lock *leasehold.Lock) error {
				<-went // the background call returns only after the test has ended
				return lock.Err()
			})
		}()
		synctest.Wait()
		p.end() // reports that "stuck" is still held, but cannot wait for its call of Do
		close(went)
		<-stuck
		time.Sleep(time.Hour)
	})
}

func TestClientMethodOfEnvKeepsConfiguredLoggerAndOwner(t *testing.T) {
	inBubble(t, func(t *testing.T, env *locktest.Env) {
		var log bytes.Buffer
		locks := env.Client(leasehold.Config{Table: "prod", Owner: "billing", Logger: slog.New(slog.NewTextHandler(&log, nil))})
		lock := acquire(t, locks, "k")
		if owner := lock.Record().Owner; !strings.HasPrefix(owner, "billing/") {
			t.Errorf("owner %s", owner)
		}
		env.Steal("k")
		<-lock.Context().Done()
		synctest.Wait()
		if !strings.Contains(log.String(), "leasehold: lock lost") {
			t.Errorf("the client's log: %s", log.String())
		}
	})
}

func TestDBMethodOfEnvReturnsClientThatReachesAllTables(t *testing.T) {
	inBubble(t, func(t *testing.T, env *locktest.Env) {
		problems := lab.Must(table.Check(t.Context(), env.DB(), table.Spec{Name: "locks"}))(t)
		lab.Want(t, "problems of the lock table", problems, nil)
		lab.OK(t, table.Create(t.Context(), env.DB(), table.Spec{Name: "books", Layout: layout.AWSLabs{PartitionKey: "isbn"}}))
		locks := env.Client(leasehold.Config{})
		lock := acquire(t, locks, "k")
		lab.OK(t, lock.Commit(t.Context(), []types.TransactWriteItem{{Put: &types.Put{
			TableName: aws.String("books"), Item: map[string]types.AttributeValue{"isbn": &types.AttributeValueMemberS{Value: "1"}},
		}}}))
		env.Disconnect()
		out := lab.Must(env.DB().Scan(t.Context(), &dynamodb.ScanInput{TableName: aws.String("books")}))(t)
		lab.Want(t, "committed items", len(out.Items), 1)
	})
}

func TestSameKeyCanBeHeldInTwoEnvs(t *testing.T) {
	inBubble(t, func(t *testing.T, env *locktest.Env) {
		env.Hold("k")
		locktest.New(t).Hold("k")
	})
}

func TestHoldAndStealMethodsOfEnvWorkInEveryLayout(t *testing.T) {
	for _, l := range []layout.Layout{
		layout.AWSLabs{}, layout.Dynamolock{}, layout.PythonDynamoDBLock{}, layout.DynamoDLM{}, layout.DyndbMutex{},
		layout.Native{PartitionKey: "id", SortKey: "range", SortValue: "-"},
	} {
		t.Run(l.Name(), func(t *testing.T) {
			inBubble(t, func(t *testing.T, env *locktest.Env) {
				locks := env.Client(leasehold.Config{Layout: l})
				lock := acquire(t, locks, "k")
				stolen := env.Steal("k")
				if stolen.Token() <= lock.Token() {
					t.Errorf("token %d after %d", stolen.Token(), lock.Token())
				}
				lab.WantErr(t, "commit", lock.Commit(t.Context(), nil), leasehold.ErrLost)
				release(t, stolen)
				env.Hold("k")
				_, err := env.Client(leasehold.Config{}).TryAcquire(t.Context(), "k")
				lab.WantErr(t, "client without a layout", err, leasehold.ErrHeld)
			})
		})
	}
}

func TestClientMethodOfEnvMakesTestFailIfLayoutsDiffer(t *testing.T) {
	probed(t, func(t *testing.T, p *probe, env *locktest.Env) {
		env.Client(leasehold.Config{})
		p.fails(t, func() { env.Client(leasehold.Config{Layout: layout.DynamoDLM{}}) }, "set the Layout that all clients use in the first client")
		p.end()
	})
}

func TestClientMethodOfEnvMakesTestFailIfConfigIsInvalid(t *testing.T) {
	probed(t, func(t *testing.T, p *probe, env *locktest.Env) {
		p.fails(t, func() { env.Client(leasehold.Config{Lease: time.Millisecond}) }, "Lease is 1ms")
		env.Disconnect() // Disconnect must work even if an earlier call of Client has failed
		p.endsWell(t)
	})
}

func TestEnvGrantsAndStealsLocksOutsideSynctestBubble(t *testing.T) {
	env := locktest.New(t)
	locks := env.Client(leasehold.Config{})
	env.Hold("held")
	lab.WantErr(t, "acquire", lab.ErrorOf(locks.TryAcquire(t.Context(), "held")), leasehold.ErrHeld)
	lock := acquire(t, locks, "stolen")
	env.Steal("stolen")
	lab.WantErr(t, "renew", lock.Renew(t.Context()), leasehold.ErrLost)
	acquire(t, locks, "dead")
	env.Disconnect(locks)
}

func TestLeaseInSynctestBubbleDoesNotExpireInRealTime(t *testing.T) {
	long := time.After(1100 * time.Millisecond) // a timer in real time, because it was created outside the bubble
	inBubble(t, func(t *testing.T, env *locktest.Env) {
		lock := acquire(t, env.Client(leasehold.Config{Lease: time.Second}), "k")
		<-long
		lab.OK(t, lock.Err())
		release(t, lock)
	})
}
