package leaseholdgocron_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-co-op/gocron/v2"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/contrib/leaseholdgocron"
	"github.com/leasehold-go/leasehold/internal/lab"
	"github.com/leasehold-go/leasehold/layout"
	"github.com/leasehold-go/leasehold/locktest"
)

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
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Errorf("run: %v", err)
		}
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
		if led, other := runs[first].Load(), runs[1-first].Load(); led != 3 || other != 0 {
			t.Errorf("the leader ran it %d times in three minutes, the other %d times", led, other)
		}
		env.Disconnect(clients[first])
		lab.Elapse(3 * time.Minute)
		if led, other := runs[first].Load(), runs[1-first].Load(); led != 3 || other != 3 {
			t.Errorf("three minutes after the leader's death: %d, and the next leader %d times", led, other)
		}
	})
}

func TestElectorIsLeaderOnlyDuringItsTerm(t *testing.T) {
	inBubble(t, func(t *testing.T, env *locktest.Env) {
		locks := env.Client(leasehold.Config{})
		e := lab.Must(leaseholdgocron.NewElector(locks, "scheduler", ""))(t)
		if err := e.IsLeader(t.Context()); !errors.Is(err, leaseholdgocron.ErrNotLeader) {
			t.Errorf("before Run: %v", err)
		}
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
		if err := e.IsLeader(t.Context()); !errors.Is(err, leaseholdgocron.ErrNotLeader) {
			t.Errorf("after its term: %v", err)
		}
		if _, leads := e.Term(); leads {
			t.Error("a term after its end")
		}
		resign()
	})
}

func TestNewElectorRefusesInvalidArguments(t *testing.T) {
	if _, err := leaseholdgocron.NewElector(nil, "scheduler", ""); err == nil {
		t.Error("a nil client was taken")
	}
	inBubble(t, func(t *testing.T, env *locktest.Env) {
		e := lab.Must(leaseholdgocron.NewElector(env.Client(leasehold.Config{Layout: layout.DynamoDLM{}}), "scheduler", "10.0.0.7:8080"))(t)
		if err := e.Run(t.Context()); !errors.Is(err, errors.ErrUnsupported) {
			t.Errorf("a value that the layout cannot carry: %v", err)
		}
	})
}
