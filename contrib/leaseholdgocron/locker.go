// Package leaseholdgocron lets several processes share the jobs of gocron. With a Locker,
// each job runs in one process at a time. With an Elector, all jobs run in the process that
// leads. The package is a separate module, so that leasehold does not depend on gocron.
//
//	locker, err := leaseholdgocron.NewLocker(locks, "jobs/")
//	s, err := gocron.NewScheduler(gocron.WithDistributedLocker(locker))
//
// or
//
//	elector, err := leaseholdgocron.NewElector(locks, "scheduler", "")
//	go elector.Run(ctx)
//	s, err := gocron.NewScheduler(gocron.WithDistributedElector(elector))
//
// gocron does not notify a job that its lock or its term was lost. With an Elector, bind
// the job's context to the Term. With a Locker, a job cannot detect the loss. If a job must
// detect it, do not use a Locker. Instead, acquire the lock in the job's function, with
// leasehold.Client.Do and leasehold.NoWait.
package leaseholdgocron

import (
	"context"
	"errors"
	"time"

	"github.com/go-co-op/gocron/v2"

	"github.com/leasehold-go/leasehold"
)

// Locker implements gocron.Locker with locks of a client, which may use any layout. It is
// safe for concurrent use.
type Locker struct {
	locks  *leasehold.Client
	prefix string
	period *time.Duration // period in which each job runs once; nil means that a job runs whenever its lock is free
}

var _ gocron.Locker = (*Locker)(nil)

// NewLocker returns a Locker whose keys are prefix plus the job's name. By default a job has the
// name of its function, such as main.report; gocron.WithName sets another name. NewLocker sends no
// request. It returns an error if the table has a sort key, but the layout has no SortValue.
func NewLocker(locks *leasehold.Client, prefix string) (*Locker, error) {
	if locks == nil {
		return nil, errors.New("leaseholdgocron: the client is nil: pass what leasehold.New returned")
	}
	// This call of Acquire only checks whether the client can acquire keys with this prefix.
	// The context of the call has already ended, so Acquire sends no request.
	ended, end := context.WithCancel(context.Background())
	end()
	if _, err := locks.Acquire(ended, prefix+"job"); !errors.Is(err, context.Canceled) {
		return nil, err
	}
	return &Locker{locks: locks, prefix: prefix}, nil
}

// Every returns a Locker with which a job runs once in each period (see leasehold.Every), if the
// processes' clocks differ by less than the period. Use the interval of the scheduler's jobs as the
// period. Start the jobs at the beginning of a period, as gocron.CronJob does. A run counts as done
// once it has ended, even with an error or a panic. A run that
// gocron.BeforeJobRunsSkipIfBeforeFuncErrors has skipped counts as done, too, because gocron calls
// Unlock for it as for any other run. In layouts other than Native, the method Lock of the returned
// Locker returns a *leasehold.UnsupportedError. If the period is below 1 s, Lock returns an error,
// too.
func (l *Locker) Every(period time.Duration) *Locker {
	return &Locker{l.locks, l.prefix, &period}
}

// Lock acquires a job's lock for one run. It does not wait for a live holder, but returns a
// *leasehold.HeldError: gocron then skips the run and calls gocron.AfterLockError. If the holder
// appears dead, Lock observes it for the length of its lease. It takes the lock over if the holder
// does not renew (see leasehold.NoWait). The client renews the lock until the run ends. Shut the
// scheduler down before you close the client: Close releases the lock of a job that still runs.
// A run whose lock Close has released does not count as done in a Locker that Every returned.
//
// A lock prevents simultaneous runs, but not repeated ones. If a run is shorter than the
// difference between the clocks of two processes, it may end before the second process
// calls Lock. The lock is then free, so the job runs again. The Locker that Every returns
// prevents this: its method Lock returns a *leasehold.DoneError if the job has already run
// in this period.
func (l *Locker) Lock(ctx context.Context, job string) (gocron.Lock, error) {
	opts := []leasehold.AcquireOption{leasehold.NoWait()}
	var ends []leasehold.ReleaseOption
	if l.period != nil {
		opts, ends = append(opts, leasehold.Every(*l.period)), append(ends, leasehold.MarkDone())
	}
	lock, err := l.locks.Acquire(ctx, l.prefix+job, opts...)
	if err != nil {
		return nil, err
	}
	return held{lock, ends}, nil
}

// held is the gocron.Lock that Lock returns: it keeps the lock during one run of a job.
type held struct {
	lock *leasehold.Lock
	ends []leasehold.ReleaseOption
}

// Unlock releases the lock, even if gocron's context has ended. It returns
// leasehold.ErrLost if the lock had already been lost. gocron ignores this error, but the
// leasehold client logs the loss.
func (h held) Unlock(ctx context.Context) error { return h.lock.Release(ctx, h.ends...) }
