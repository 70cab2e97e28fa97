package watchdog

import (
	"fmt"
	"io"
	"slices"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// recordedWatchdog is a watchdog with the clock of a synctest bubble. It records its
// actions and their times.
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

// order writes an order. For OrderTrust, at is the end of trust, counted from the start.
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

func TestWatchdogSignalsCMDBeforeTrustEndsAndKillsItAtEnd(t *testing.T) {
	for _, c := range []struct {
		name string
		play func(*recordedWatchdog)
		want []string
	}{
		{"trust runs out", func(k *recordedWatchdog) {
			k.order(OrderTrust, 18*time.Second)
			k.order(OrderGroup, 0)
			time.Sleep(30 * time.Second)
			k.end(OrderDone)
		}, []string{"17s TERM", "18s KILL"}},
		{"trust is renewed", func(k *recordedWatchdog) {
			k.order(OrderTrust, 18*time.Second)
			k.order(OrderGroup, 0)
			time.Sleep(16 * time.Second)
			k.order(OrderTrust, 34*time.Second)
			time.Sleep(16 * time.Second)
			k.end(OrderDone)
		}, nil},
		{"a renewal after the signal comes too late", func(k *recordedWatchdog) {
			k.order(OrderTrust, 18*time.Second)
			k.order(OrderGroup, 0)
			time.Sleep(17500 * time.Millisecond)
			k.order(OrderTrust, 35*time.Second)
			time.Sleep(30 * time.Second)
			k.end(OrderDone)
		}, []string{"17s TERM", "18s KILL"}},
		{"the lock is lost early", func(k *recordedWatchdog) {
			k.order(OrderTrust, 18*time.Second)
			k.order(OrderGroup, 0)
			time.Sleep(5 * time.Second)
			k.order(OrderStop, 0)
			time.Sleep(30 * time.Second)
			k.end(OrderDone)
		}, []string{"5s TERM", "6s KILL"}},
		{"the lock is lost within the grace", func(k *recordedWatchdog) {
			k.order(OrderTrust, 1500*time.Millisecond)
			k.order(OrderGroup, 0)
			time.Sleep(400 * time.Millisecond)
			k.order(OrderStop, 0)
			time.Sleep(250 * time.Millisecond)
			k.order(OrderStop, 0)
			time.Sleep(30 * time.Second)
			k.end(OrderDone)
		}, []string{"400ms TERM", "1.4s KILL"}},
		{"CMD ends within the grace", func(k *recordedWatchdog) {
			k.order(OrderTrust, 18*time.Second)
			k.order(OrderGroup, 0)
			time.Sleep(17500 * time.Millisecond)
			k.end(OrderDone)
		}, []string{"17s TERM"}},
		{"the supervisor dies", func(k *recordedWatchdog) {
			k.order(OrderTrust, 18*time.Second)
			k.order(OrderGroup, 0)
			time.Sleep(2 * time.Second)
			k.end("")
		}, []string{"2s KILL"}},
		{"the supervisor dies before CMD began", func(k *recordedWatchdog) {
			k.order(OrderTrust, 18*time.Second)
			k.end("")
		}, nil},
		{"CMD begins when trust has ended", func(k *recordedWatchdog) {
			k.order(OrderTrust, 18*time.Second)
			time.Sleep(20 * time.Second)
			k.order(OrderGroup, 0)
			time.Sleep(time.Second)
			k.end(OrderDone)
		}, []string{"20s KILL"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				k := watchRecorded(time.Second)
				c.play(k)
				if !slices.Equal(k.did, c.want) {
					t.Errorf("it did %v, not %v", k.did, c.want)
				}
			})
		})
	}
}
