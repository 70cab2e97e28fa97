package cli

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/localdynamo"
	"github.com/leasehold-go/leasehold/table"
)

// recordedWatchdog is a watchdog on a bubble's clock, and a record of its actions and their
// times.
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
		signal: syscall.SIGTERM, grace: grace, clock: clock, report: func(string) {},
		kill: func(_ descent, group int, sig syscall.Signal) {
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

// order writes an order. The value of trust is the time since the start.
func (k *recordedWatchdog) order(what string, at time.Duration) {
	n := int64(dogGroup)
	if what == orderTrust {
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

func TestTheWatchdogSignalsAGraceBeforeTrustEndsAndKillsWhenItEnds(t *testing.T) {
	for _, c := range []struct {
		name string
		play func(*recordedWatchdog)
		want []string
	}{
		{"trust runs out", func(k *recordedWatchdog) {
			k.order(orderTrust, 18*time.Second)
			k.order(orderGroup, 0)
			time.Sleep(30 * time.Second)
			k.end(orderDone)
		}, []string{"17s TERM", "18s KILL"}},
		{"trust is renewed", func(k *recordedWatchdog) {
			k.order(orderTrust, 18*time.Second)
			k.order(orderGroup, 0)
			time.Sleep(16 * time.Second)
			k.order(orderTrust, 34*time.Second)
			time.Sleep(16 * time.Second)
			k.end(orderDone)
		}, nil},
		{"a renewal after the signal comes too late", func(k *recordedWatchdog) {
			k.order(orderTrust, 18*time.Second)
			k.order(orderGroup, 0)
			time.Sleep(17500 * time.Millisecond)
			k.order(orderTrust, 35*time.Second)
			time.Sleep(30 * time.Second)
			k.end(orderDone)
		}, []string{"17s TERM", "18s KILL"}},
		{"the lock is lost early", func(k *recordedWatchdog) {
			k.order(orderTrust, 18*time.Second)
			k.order(orderGroup, 0)
			time.Sleep(5 * time.Second)
			k.order(orderLost, 0)
			time.Sleep(30 * time.Second)
			k.end(orderDone)
		}, []string{"5s TERM", "6s KILL"}},
		{"the lock is lost within the grace", func(k *recordedWatchdog) {
			k.order(orderTrust, 1500*time.Millisecond)
			k.order(orderGroup, 0)
			time.Sleep(400 * time.Millisecond)
			k.order(orderLost, 0)
			time.Sleep(250 * time.Millisecond)
			k.order(orderLost, 0)
			time.Sleep(30 * time.Second)
			k.end(orderDone)
		}, []string{"400ms TERM", "1.4s KILL"}},
		{"CMD ends within the grace", func(k *recordedWatchdog) {
			k.order(orderTrust, 18*time.Second)
			k.order(orderGroup, 0)
			time.Sleep(17500 * time.Millisecond)
			k.end(orderDone)
		}, []string{"17s TERM"}},
		{"the supervisor dies", func(k *recordedWatchdog) {
			k.order(orderTrust, 18*time.Second)
			k.order(orderGroup, 0)
			time.Sleep(2 * time.Second)
			k.end("")
		}, []string{"2s KILL"}},
		{"the supervisor dies before CMD began", func(k *recordedWatchdog) {
			k.order(orderTrust, 18*time.Second)
			k.end("")
		}, nil},
		{"CMD begins when trust has ended", func(k *recordedWatchdog) {
			k.order(orderTrust, 18*time.Second)
			time.Sleep(20 * time.Second)
			k.order(orderGroup, 0)
			time.Sleep(time.Second)
			k.end(orderDone)
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

func TestARenewalOfOneOfSeveralLocksCutsNoGraceShortAfterAnotherIsLost(t *testing.T) {
	db := localdynamo.New()
	defer db.Close()
	if err := table.Create(t.Context(), db.Client(), table.Spec{Name: "locks"}); err != nil {
		t.Fatal(err)
	}
	c, err := leasehold.New(db.Client(), leasehold.Config{Table: "locks", Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	g, err := c.AcquireAll(t.Context(), leasehold.Keys("a", "b"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = g.Release(t.Context()) }()
	var sent strings.Builder
	s := &supervision{hold: hold{locks: g.Locks(), group: g}, watchdog: &watchdogHandle{orders: textOf{&sent}}}
	s.sendTrust()
	if err := c.Break(t.Context(), g.Locks()[0].Record()); err != nil {
		t.Fatal(err)
	}
	if err := g.Locks()[0].Renew(t.Context()); !errors.Is(err, leasehold.ErrLost) {
		t.Fatalf("not lost: %v", err)
	}
	s.sendTrust()
	if orders := strings.Fields(sent.String()); len(orders) != 4 || orders[1] != orders[3] {
		t.Errorf("orders %v", orders)
	}
}

// textOf takes orders, and keeps them as text.
type textOf struct{ io.Writer }

func (textOf) Close() error { return nil }
