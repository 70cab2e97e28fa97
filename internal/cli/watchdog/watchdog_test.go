package watchdog

import (
	"fmt"
	"io"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold-go/leasehold/internal/lab"
)

// recordedWatchdog is a watchdog that uses the clock of a synctest bubble. It sends no signals.
// Instead it appends each signal, with its time, to the field "did".
type recordedWatchdog struct {
	orders *io.PipeWriter
	did    []string
	done   chan struct{}
	began  time.Time
}

const dogGroup = 4711

func watchRecorded(grace time.Duration) *recordedWatchdog {
	in, orders := io.Pipe()
	k := &recordedWatchdog{orders: orders, done: make(chan struct{}), began: time.Now()}
	clock := func() time.Duration { return time.Hour + time.Since(k.began) }
	w := &watchdog{
		signal: syscall.SIGTERM, grace: grace, clock: clock, reports: io.Discard,
		kill: func(_ Descent, group int, sig syscall.Signal) {
			if group != dogGroup {
				panic(fmt.Sprintf("group %d", group))
			}
			k.did = append(k.did, fmt.Sprintf("%v %v", time.Since(k.began), map[syscall.Signal]string{syscall.SIGTERM: "TERM", syscall.SIGKILL: "KILL"}[sig]))
		},
	}
	go func() {
		defer close(k.done)
		w.run(in)
	}()
	return k
}

// order sends an order to the watchdog. If the order is OrderTrust, trust in the lock ends when the
// duration "at" has passed since the start of the watchdog.
func (k *recordedWatchdog) order(what string, at time.Duration) {
	n := int64(dogGroup)
	if what == OrderTrust {
		n = int64(time.Hour + at)
	}
	fmt.Fprintf(k.orders, "%s %d\n", what, n)
}

func (k *recordedWatchdog) end(how string) {
	if how != "" {
		fmt.Fprintln(k.orders, how)
	}
	_ = k.orders.Close()
	<-k.done
}

func TestWatchdogStopsCMDWhenLockExpiresOrSupervisorDies(t *testing.T) {
	type step struct {
		after time.Duration // time since the previous step
		order string        // the last is OrderDone, or "" for the death of the supervisor
		at    time.Duration // when trust in the lock ends, for OrderTrust
	}
	trust, group := step{0, OrderTrust, 18 * time.Second}, step{0, OrderGroup, 0}
	type variant struct {
		steps []step
		want  []string
	}
	lab.Variants(t, map[string]variant{
		"trust runs out": {[]step{trust, group, {30 * time.Second, OrderDone, 0}}, []string{"17s TERM", "18s KILL"}},
		"trust is renewed": {[]step{
			trust, group, {16 * time.Second, OrderTrust, 34 * time.Second}, {16 * time.Second, OrderDone, 0},
		}, nil},
		"a renewal after the signal comes too late": {[]step{
			trust, group, {17500 * time.Millisecond, OrderTrust, 35 * time.Second}, {30 * time.Second, OrderDone, 0},
		}, []string{"17s TERM", "18s KILL"}},
		"the lock is lost early": {[]step{
			trust, group, {5 * time.Second, OrderStop, 0}, {30 * time.Second, OrderDone, 0},
		}, []string{"5s TERM", "6s KILL"}},
		"the lock is lost within the grace": {[]step{
			{0, OrderTrust, 1500 * time.Millisecond}, group, {400 * time.Millisecond, OrderStop, 0}, {250 * time.Millisecond, OrderStop, 0},
			{30 * time.Second, OrderDone, 0},
		}, []string{"400ms TERM", "1.4s KILL"}},
		"CMD ends within the grace":            {[]step{trust, group, {17500 * time.Millisecond, OrderDone, 0}}, []string{"17s TERM"}},
		"the supervisor dies":                  {[]step{trust, group, {2 * time.Second, "", 0}}, []string{"2s KILL"}},
		"the supervisor dies before CMD began": {[]step{trust, {0, "", 0}}, nil},
		"CMD begins when trust has ended": {[]step{
			trust, {20 * time.Second, OrderGroup, 0}, {time.Second, OrderDone, 0},
		}, []string{"20s KILL"}},
	}, func(t *testing.T, c variant) {
		synctest.Test(t, func(t *testing.T) {
			k := watchRecorded(time.Second)
			for _, s := range c.steps {
				time.Sleep(s.after)
				switch s.order {
				case OrderDone, "":
					k.end(s.order)
				default:
					k.order(s.order, s.at)
				}
			}
			lab.Want(t, "signals", k.did, c.want)
		})
	})
}
