package adapters

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/robfig/cron/v3"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/lab"
	"github.com/leasehold-go/leasehold/locktest"
)

// journal is a cron logger that counts skipped jobs and keeps the last error.
type journal struct {
	skipped atomic.Int32
	failed  atomic.Pointer[error]
}

func (j *journal) Info(msg string, _ ...any) {
	if msg == "skip" {
		j.skipped.Add(1)
	}
}

func (j *journal) Error(err error, _ string, _ ...any) { j.failed.Store(&err) }

func TestCronJobsRunInOneProcessAtATime(t *testing.T) {
	inBubble(t, func(t *testing.T, env *locktest.Env) {
		var runs, inside atomic.Int32
		var said journal
		var processes []*cron.Cron
		for range 3 {
			c := cron.New(cron.WithChain(Locked(t.Context(), env.Client(leasehold.Config{}), "reports", &said)))
			lab.Must(c.AddFunc("@every 1h", func() {
				if inside.Add(1) > 1 {
					t.Error("two at a time")
				}
				time.Sleep(40 * time.Minute)
				inside.Add(-1)
				runs.Add(1)
			}))(t)
			c.Start()
			processes = append(processes, c)
		}
		lab.Elapse(2*time.Hour + 50*time.Minute)
		for _, c := range processes {
			<-c.Stop().Done()
		}
		if runs.Load() != 2 || said.skipped.Load() != 4 {
			t.Errorf("%d runs in two hours, and %d were skipped", runs.Load(), said.skipped.Load())
		}
		if err := said.failed.Load(); err != nil {
			t.Error(*err)
		}
	})
}

func TestCronJobIsNotifiedOfLostLock(t *testing.T) {
	inBubble(t, func(t *testing.T, env *locktest.Env) {
		var said journal
		c := cron.New()
		stopped := make(chan error, 1)
		c.Schedule(cron.Every(time.Hour), LockedJob(t.Context(), env.Client(leasehold.Config{}), "reports", &said, func(ctx context.Context, _ *leasehold.Lock) error {
			env.Steal("reports")
			<-ctx.Done()
			stopped <- context.Cause(ctx)
			return nil
		}))
		c.Start()
		if err := <-stopped; !errors.Is(err, leasehold.ErrLost) {
			t.Errorf("stopped by %v", err)
		}
		<-c.Stop().Done()
		if err := said.failed.Load(); err == nil || !errors.Is(*err, leasehold.ErrLost) {
			t.Errorf("logged %v", err)
		}
	})
}
