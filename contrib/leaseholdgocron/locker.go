// Package leaseholdgocron has gocron run each job in one process at a time, or all jobs
// in the process that leads. It is a module of its own, so that leasehold does not depend
// on gocron.
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
// A job is not told by gocron that its lock or its term was lost. Under an Elector, bind
// its context to Term. Under a Locker it cannot be told: have the task take the lock,
// with leasehold.Client.Do and leasehold.NoWait, and leave the Locker out.
package leaseholdgocron

import (
	"context"
	"errors"
	"time"

	"github.com/go-co-op/gocron/v2"

	"github.com/leasehold-go/leasehold"
)

// Locker is a gocron.Locker, for a client in any layout. It is safe for concurrent use.
type Locker struct {
	locks  *leasehold.Client
	prefix string
	period time.Duration // of which each job runs once; 0: whenever its lock is free
}

var _ gocron.Locker = (*Locker)(nil)

// NewLocker returns a Locker whose keys are prefix and the job's name, which is that of
// its function, such as main.report, unless gocron.WithName gives another. It sends
// nothing. In a table with a sort key the layout has to name its value.
func NewLocker(locks *leasehold.Client, prefix string) (*Locker, error) {
	if locks == nil {
		return nil, errors.New("leaseholdgocron: the client is nil: pass what leasehold.New returned")
	}
	// Arguments are checked before ctx: with one that has ended nothing is sent.
	ended, end := context.WithCancel(context.Background())
	end()
	if _, err := locks.Acquire(ended, prefix+"job"); !errors.Is(err, context.Canceled) {
		return nil, err
	}
	return &Locker{locks: locks, prefix: prefix}, nil
}

// Every returns a Locker under which a job runs once in each period, wherever the clocks
// of two processes differ by less: leasehold.Every. Give it the interval of the jobs that
// the scheduler runs, and have them run at its beginning, as gocron.CronJob does. A run that
// has ended has been done, whatever it returned: gocron does not tell its locks. Layout
// Native has it; elsewhere Lock returns a *leasehold.UnsupportedError.
func (l *Locker) Every(period time.Duration) *Locker {
	return &Locker{l.locks, l.prefix, period}
}

// Lock acquires a job's lock for one run. It does not wait for a holder who lives: its
// *leasehold.HeldError has gocron skip the run, and gocron.AfterLockError tells of it.
// A holder that looks dead is watched for its lease, and taken over
// (leasehold.NoWait). The lock is renewed until the run ends.
//
// A lock says not at the same time, and not once: a run that is shorter than the
// difference of two clocks has ended before the other process asks. Every says once: then
// the error for a run that was done is a *leasehold.DoneError.
func (l *Locker) Lock(ctx context.Context, job string) (gocron.Lock, error) {
	opts := []leasehold.AcquireOption{leasehold.NoWait()}
	var ends []leasehold.ReleaseOption
	if l.period != 0 {
		opts, ends = append(opts, leasehold.Every(l.period)), append(ends, leasehold.MarkDone())
	}
	lock, err := l.locks.Acquire(ctx, l.prefix+job, opts...)
	if err != nil {
		return nil, err
	}
	return held{lock, ends}, nil
}

// held is the lock of one run.
type held struct {
	lock *leasehold.Lock
	ends []leasehold.ReleaseOption
}

// Unlock frees the lock; gocron's context may have ended. leasehold.ErrLost means that
// it was lost before: gocron drops the error, and leasehold logs the loss.
func (h held) Unlock(ctx context.Context) error { return h.lock.Release(ctx, h.ends...) }
