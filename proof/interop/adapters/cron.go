package adapters

import (
	"context"
	"errors"

	"github.com/robfig/cron/v3"

	"github.com/leasehold-go/leasehold"
)

// Locked returns a wrapper for jobs. Each run of a wrapped job first acquires the lock of key. If
// another process holds this lock, the run is skipped. If a job must stop when its lock is lost,
// use LockedJob instead.
func Locked(ctx context.Context, locks *leasehold.Client, key string, log cron.Logger) cron.JobWrapper {
	return func(job cron.Job) cron.Job {
		return LockedJob(ctx, locks, key, log, func(context.Context, *leasehold.Lock) error {
			job.Run()
			return nil
		})
	}
}

// LockedJob returns a job that calls the function run while it holds the lock. The context that
// the job passes to run is cancelled when the lock is lost or ctx is cancelled.
func LockedJob(ctx context.Context, locks *leasehold.Client, key string, log cron.Logger, run func(context.Context, *leasehold.Lock) error) cron.Job {
	return cron.FuncJob(func() {
		err := locks.Do(ctx, key, run, leasehold.NoWait())
		switch {
		case errors.Is(err, leasehold.ErrNotRun) && errors.Is(err, leasehold.ErrHeld):
			log.Info("skip", "key", key)
		case err != nil:
			log.Error(err, "failed, or lost its lock", "key", key)
		}
	})
}
