package leaseholdgocron_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-co-op/gocron/v2"
	"github.com/google/uuid"
	"go.uber.org/goleak"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/contrib/leaseholdgocron"
	"github.com/leasehold-go/leasehold/internal/lab"
	"github.com/leasehold-go/leasehold/layout"
	"github.com/leasehold-go/leasehold/locktest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// inBubble runs a test in a synctest bubble, where time is virtual.
func inBubble(t *testing.T, test func(t *testing.T, env *locktest.Env)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { test(t, locktest.New(t)) })
}

// everyMinute starts a scheduler that runs task once a minute as the job "report". The
// returned function shuts the scheduler down.
func everyMinute(t *testing.T, with gocron.SchedulerOption, task any, events ...gocron.EventListener) (shutdown func() error) {
	t.Helper()
	s := lab.Must(gocron.NewScheduler(with, gocron.WithStopTimeout(time.Minute)))(t)
	lab.Must(s.NewJob(gocron.DurationJob(time.Minute), gocron.NewTask(task), gocron.WithName("report"), gocron.WithEventListeners(events...)))(t)
	s.Start()
	return s.Shutdown
}

func newLocker(t *testing.T, locks *leasehold.Client) *leaseholdgocron.Locker {
	t.Helper()
	return lab.Must(leaseholdgocron.NewLocker(locks, "jobs/"))(t)
}

func TestLockerPreventsSimultaneousRunsOfJob(t *testing.T) {
	layouts := []layout.Layout{layout.Native{}, layout.AWSLabs{}, layout.Dynamolock{}, layout.PythonDynamoDBLock{}, layout.DynamoDLM{}, layout.DyndbMutex{}}
	for _, l := range layouts {
		t.Run(l.Name(), func(t *testing.T) {
			inBubble(t, func(t *testing.T, env *locktest.Env) {
				var runs, inside, skipped atomic.Int32
				var shutdowns []func() error
				for range 3 {
					locker := newLocker(t, env.Client(leasehold.Config{Layout: l}))
					shutdowns = append(shutdowns, everyMinute(t, gocron.WithDistributedLocker(locker), func() {
						lab.Want(t, "runs at a time", inside.Add(1), 1)
						time.Sleep(25 * time.Second)
						inside.Add(-1)
						runs.Add(1)
					}, gocron.AfterLockError(func(_ uuid.UUID, job string, err error) {
						lab.WantErr(t, "a skipped run", err, leasehold.ErrHeld)
						lab.WantText(t, "a skipped run", err, "jobs/"+job)
						skipped.Add(1)
					})))
				}
				lab.Elapse(3*time.Minute + 30*time.Second)
				lab.Want(t, "runs and skipped runs in three minutes", [2]int32{runs.Load(), skipped.Load()}, [2]int32{3, 6})
				for _, shutdown := range shutdowns {
					lab.OK(t, shutdown())
				}
			})
		})
	}
}

func TestLockerTakesOverJobFromDeadHolder(t *testing.T) {
	inBubble(t, func(t *testing.T, env *locktest.Env) {
		env.Hold("jobs/report", leasehold.WithoutRenewal())
		var ran atomic.Bool
		shutdown := everyMinute(t, gocron.WithDistributedLocker(newLocker(t, env.Client(leasehold.Config{}))), func() { ran.Store(true) })
		lab.Elapse(90 * time.Second)
		lab.Want(t, "job ran despite the dead holder", ran.Load(), true)
		lab.OK(t, shutdown())
	})
}

func TestLockIsReleasedIfGocronShutsDownDuringJob(t *testing.T) {
	inBubble(t, func(t *testing.T, env *locktest.Env) {
		began := make(chan struct{})
		locks := env.Client(leasehold.Config{})
		shutdown := everyMinute(t, gocron.WithDistributedLocker(newLocker(t, locks)), func(ctx context.Context) {
			close(began)
			<-ctx.Done()
		})
		<-began
		lab.OK(t, shutdown())
		synctest.Wait()
		lab.Want(t, "released after the shutdown", lab.Must(locks.Get(t.Context(), "jobs/report"))(t).Released, true)
	})
}

func TestUnlockOfLostLockReturnsErrLost(t *testing.T) {
	inBubble(t, func(t *testing.T, env *locktest.Env) {
		lock := lab.Must(newLocker(t, env.Client(leasehold.Config{})).Lock(t.Context(), "report"))(t)
		env.Steal("jobs/report")
		lab.WantErr(t, "unlock", lock.Unlock(t.Context()), leasehold.ErrLost)
	})
}

func TestDoMethodCancelsJobContextIfLockIsLost(t *testing.T) {
	inBubble(t, func(t *testing.T, env *locktest.Env) {
		locks := env.Client(leasehold.Config{})
		failed := make(chan error, 1)
		s := lab.Must(gocron.NewScheduler())(t)
		_, err := s.NewJob(gocron.DurationJob(time.Minute), gocron.NewTask(func(ctx context.Context) error {
			return locks.Do(ctx, "jobs/report", func(ctx context.Context, _ *leasehold.Lock) error {
				env.Steal("jobs/report")
				<-ctx.Done() // this line blocks the test forever if the loss of the lock does not end the context
				return context.Cause(ctx)
			}, leasehold.NoWait())
		}), gocron.WithEventListeners(gocron.AfterJobRunsWithError(func(_ uuid.UUID, _ string, err error) { failed <- err })))
		lab.OK(t, err)
		s.Start()
		lab.WantErr(t, "the run", <-failed, leasehold.ErrLost)
		lab.OK(t, s.Shutdown())
	})
}

func TestNewLockerRejectsNilClientAndInvalidPrefix(t *testing.T) {
	lab.WantFailed(t, "NewLocker with a nil client", lab.ErrorOf(leaseholdgocron.NewLocker(nil, "")))
	inBubble(t, func(t *testing.T, env *locktest.Env) {
		_, err := leaseholdgocron.NewLocker(env.Client(leasehold.Config{}), "leasehold/session/")
		lab.WantFailed(t, "NewLocker with the prefix of sessions", err)
	})
}

// The processes start the job one to three seconds apart, as if their clocks differed. The job
// takes no time, so its lock is free again when the next process starts the job. Every must
// prevent a second run.
func TestJobRunsOncePerPeriodDespiteClockSkew(t *testing.T) {
	inBubble(t, func(t *testing.T, env *locktest.Env) {
		var runs, refused atomic.Int32
		var shutdowns []func() error
		for i := range 3 {
			time.Sleep(time.Duration(i) * time.Second)
			locker := newLocker(t, env.Client(leasehold.Config{})).Every(time.Minute)
			done := gocron.AfterLockError(func(_ uuid.UUID, _ string, err error) {
				if errors.Is(err, leasehold.ErrDone) {
					refused.Add(1)
				}
			})
			shutdowns = append(shutdowns, everyMinute(t, gocron.WithDistributedLocker(locker), func() { runs.Add(1) }, done))
		}
		lab.Elapse(5 * time.Minute)
		if runs.Load() != 5 || refused.Load() < 9 {
			t.Errorf("%d runs in five minutes, and %d were skipped as done", runs.Load(), refused.Load())
		}
		for _, shutdown := range shutdowns {
			lab.OK(t, shutdown())
		}
	})
	inBubble(t, func(t *testing.T, env *locktest.Env) {
		_, err := newLocker(t, env.Client(leasehold.Config{})).Every(0).Lock(t.Context(), "report")
		lab.WantFailed(t, "a period of zero", err)
	})
	inBubble(t, func(t *testing.T, env *locktest.Env) {
		locker := newLocker(t, env.Client(leasehold.Config{Layout: layout.DynamoDLM{}})).Every(time.Minute)
		lab.WantErr(t, "a layout without done marks", lab.ErrorOf(locker.Lock(t.Context(), "report")), errors.ErrUnsupported)
	})
}

// candidate makes the client campaign for the leadership in a new goroutine. The returned
// function ends the campaign.
func candidate(t *testing.T, locks *leasehold.Client) (*leaseholdgocron.Elector, func()) {
	t.Helper()
	e := lab.Must(leaseholdgocron.NewElector(locks, "scheduler", ""))(t)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- e.Run(ctx) }()
	return e, func() {
		t.Helper()
		cancel()
		lab.WantErr(t, "run", <-done, context.Canceled)
	}
}

func TestJobsRunOnlyInLeaderProcess(t *testing.T) {
	inBubble(t, func(t *testing.T, env *locktest.Env) {
		clients := []*leasehold.Client{env.Client(leasehold.Config{}), env.Client(leasehold.Config{})}
		var runs [2]atomic.Int32
		var electors [2]*leaseholdgocron.Elector
		for i, locks := range clients {
			e, resign := candidate(t, locks)
			defer resign()
			electors[i] = e
			shutdown := everyMinute(t, gocron.WithDistributedElector(e), func() { runs[i].Add(1) })
			defer func() { lab.OK(t, shutdown()) }()
		}
		lab.Elapse(3*time.Minute + time.Second)
		first := 0
		if electors[1].IsLeader(t.Context()) == nil {
			first = 1
		}
		lab.Want(t, "runs by the leader and by the other process", [2]int32{runs[first].Load(), runs[1-first].Load()}, [2]int32{3, 0})
		env.Disconnect(clients[first])
		lab.Elapse(3 * time.Minute)
		lab.Want(t, "runs by the dead leader and by the next", [2]int32{runs[first].Load(), runs[1-first].Load()}, [2]int32{3, 3})
	})
}

func TestIsLeaderSucceedsOnlyDuringTerm(t *testing.T) {
	inBubble(t, func(t *testing.T, env *locktest.Env) {
		locks := env.Client(leasehold.Config{})
		e := lab.Must(leaseholdgocron.NewElector(locks, "scheduler", ""))(t)
		lab.WantErr(t, "before Run", e.IsLeader(t.Context()), leaseholdgocron.ErrNotLeader)
		if term, leads := e.Term(); term != nil || leads {
			t.Errorf("before Run: a term, %v", leads)
		}
		e, resign := candidate(t, locks)
		lab.Elapse(time.Minute)
		lab.OK(t, e.IsLeader(t.Context()))
		term, leads := e.Term()
		if !leads {
			t.Fatal("no term")
		}
		ctx, cancel := term.Bind(t.Context())
		defer cancel()
		env.Steal("scheduler")
		<-ctx.Done() // this line blocks the test forever if the loss of the leadership does not end the context
		lab.WantErr(t, "after its term", e.IsLeader(t.Context()), leaseholdgocron.ErrNotLeader)
		_, leads = e.Term()
		lab.Want(t, "it leads after its term", leads, false)
		resign()
	})
}

func TestElectorRejectsNilClientAndUnstorableLeaderValue(t *testing.T) {
	lab.WantFailed(t, "NewElector with a nil client", lab.ErrorOf(leaseholdgocron.NewElector(nil, "scheduler", "")))
	inBubble(t, func(t *testing.T, env *locktest.Env) {
		e := lab.Must(leaseholdgocron.NewElector(env.Client(leasehold.Config{Layout: layout.DynamoDLM{}}), "scheduler", "10.0.0.7:8080"))(t)
		lab.WantErr(t, "a value that the layout cannot store", e.Run(t.Context()), errors.ErrUnsupported)
	})
}
