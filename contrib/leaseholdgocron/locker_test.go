package leaseholdgocron_test

import (
	"context"
	"errors"
	"strings"
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

func TestJobRunsInOneProcessInEveryLayout(t *testing.T) {
	layouts := []layout.Layout{layout.Native{}, layout.AWSLabs{}, layout.Dynamolock{}, layout.PythonDynamoDBLock{}, layout.DynamoDLM{}, layout.DyndbMutex{}}
	for _, l := range layouts {
		t.Run(l.Name(), func(t *testing.T) {
			inBubble(t, func(t *testing.T, env *locktest.Env) {
				var runs, inside, skipped atomic.Int32
				var shutdowns []func() error
				for range 3 {
					locker := newLocker(t, env.Client(leasehold.Config{Layout: l}))
					shutdowns = append(shutdowns, everyMinute(t, gocron.WithDistributedLocker(locker), func() {
						if inside.Add(1) > 1 {
							t.Error("two at a time")
						}
						time.Sleep(25 * time.Second)
						inside.Add(-1)
						runs.Add(1)
					}, gocron.AfterLockError(func(_ uuid.UUID, job string, err error) {
						if !errors.Is(err, leasehold.ErrHeld) || !strings.Contains(err.Error(), "jobs/"+job) {
							t.Errorf("a run of %s was refused by %v", job, err)
						}
						skipped.Add(1)
					})))
				}
				lab.Elapse(3*time.Minute + 30*time.Second)
				if runs.Load() != 3 || skipped.Load() != 6 {
					t.Errorf("%d runs in three minutes, and %d were skipped", runs.Load(), skipped.Load())
				}
				for _, shutdown := range shutdowns {
					lab.OK(t, shutdown())
				}
			})
		})
	}
}

func TestJobOfDeadHolderRunsInAnotherProcess(t *testing.T) {
	inBubble(t, func(t *testing.T, env *locktest.Env) {
		env.Hold("jobs/report", leasehold.WithoutRenewal())
		var ran atomic.Bool
		shutdown := everyMinute(t, gocron.WithDistributedLocker(newLocker(t, env.Client(leasehold.Config{}))), func() { ran.Store(true) })
		lab.Elapse(90 * time.Second)
		if !ran.Load() {
			t.Error("its turn was skipped for a dead holder's sake")
		}
		lab.OK(t, shutdown())
	})
}

func TestShutdownDuringRunReleasesLock(t *testing.T) {
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
		if r, err := locks.Get(t.Context(), "jobs/report"); err != nil || !r.Released {
			t.Errorf("after the shutdown: %v, %v", r, err)
		}
	})
}

func TestUnlockReturnsErrorIfLockWasLost(t *testing.T) {
	inBubble(t, func(t *testing.T, env *locktest.Env) {
		lock := lab.Must(newLocker(t, env.Client(leasehold.Config{})).Lock(t.Context(), "report"))(t)
		env.Steal("jobs/report")
		if err := lock.Unlock(t.Context()); !errors.Is(err, leasehold.ErrLost) {
			t.Errorf("unlock: %v", err)
		}
	})
}

func TestTaskContextEndsWhenLockIsLost(t *testing.T) {
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
		if err := <-failed; !errors.Is(err, leasehold.ErrLost) {
			t.Errorf("the run ended with %v", err)
		}
		lab.OK(t, s.Shutdown())
	})
}

func TestNewRefusesNilClientAndBadPrefix(t *testing.T) {
	if _, err := leaseholdgocron.NewLocker(nil, ""); err == nil {
		t.Error("a nil client was taken")
	}
	inBubble(t, func(t *testing.T, env *locktest.Env) {
		if _, err := leaseholdgocron.NewLocker(env.Client(leasehold.Config{}), "leasehold/session/"); err == nil {
			t.Error("the prefix of sessions was taken")
		}
	})
}

// The clocks of the processes differ by a second, and the job takes no time. So the lock is
// free again when the second process tries to acquire it.
func TestJobRunsOncePerPeriodIfClocksDiffer(t *testing.T) {
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
			t.Errorf("ran %d times in five minutes, and was done before %d times", runs.Load(), refused.Load())
		}
		for _, shutdown := range shutdowns {
			lab.OK(t, shutdown())
		}
	})
	inBubble(t, func(t *testing.T, env *locktest.Env) {
		locker := newLocker(t, env.Client(leasehold.Config{Layout: layout.DynamoDLM{}})).Every(time.Minute)
		if _, err := locker.Lock(t.Context(), "report"); !errors.Is(err, errors.ErrUnsupported) {
			t.Errorf("a layout that cannot: %v", err)
		}
	})
}
