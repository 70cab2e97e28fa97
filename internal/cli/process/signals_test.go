package process

import (
	"context"
	"errors"
	"io"
	"os"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold-go/leasehold/internal/cli/say"
	"github.com/leasehold-go/leasehold/internal/lab"
)

func TestSignalThatCancelsContextIsPutBackInSignalChannel(t *testing.T) {
	s := &Signals{C: make(chan os.Signal, 1)}
	ctx, release := s.Bind(t.Context())
	s.C <- syscall.SIGTERM
	<-ctx.Done()
	release() // puts the signal back; callers call it even if the lock was granted, so that CMD receives the signal
	release()
	lab.Want(t, "signals left", len(s.C), 1)
	lab.Want(t, "signal left", <-s.C, os.Signal(syscall.SIGTERM))
}

// A service manager may send a signal to CMD and to leasehold at the same time. After CMD has
// exited, end looks for this signal in C. It must leave the signal there, where the next wait for
// KEY reads it.
func TestSignalsStayInChannelAfterCheckForTerminationSignal(t *testing.T) {
	for _, c := range []struct {
		sent []os.Signal
		told bool
	}{
		{nil, false},
		{[]os.Signal{syscall.SIGALRM}, false},
		{[]os.Signal{syscall.SIGALRM, syscall.SIGTERM}, true},
		{[]os.Signal{syscall.SIGHUP, syscall.SIGALRM}, true},
	} {
		s := &Signals{C: make(chan os.Signal, 2)}
		for _, sig := range c.sent {
			s.C <- sig
		}
		if told := s.end(); told != c.told || len(s.C) != len(c.sent) {
			t.Errorf("%v: end returned %v, %d are left", c.sent, told, len(s.C))
		}
	}
}

func TestParseSignalAcceptsNamesAndNumbers(t *testing.T) {
	for _, in := range []string{"TERM", "SIGTERM", "term", "15"} {
		lab.Want(t, in, lab.Must(ParseSignal(in))(t), syscall.SIGTERM)
	}
	for _, in := range []string{"", "NONSENSE", "0", "65", "-1"} {
		lab.WantFailed(t, in, lab.ErrorOf(ParseSignal(in)))
	}
}

// leasehold reaps orphans when it reads the process list. Each exit of an orphan schedules such a
// read. If orphans exit one after another without a pause, they must not postpone the read again
// and again.
func TestProcessListIsReadEvenIfOrphansKeepExiting(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := &background{look: time.NewTimer(lookEvery)}
		b.look.Stop()
		looked := false
		for range 100 {
			b.lookIn(lookAfterEnd)
			time.Sleep(lookAfterEnd / 2)
			select {
			case <-b.look.C:
				looked = true
			default:
			}
		}
		lab.Want(t, "the process list was read", looked, true)
	})
}

// several is a Lock that represents the locks on two keys, a and b. Both locks are trusted until
// the time in the field "until". The field "lost" is the error of a lost lock, or nil.
type several struct {
	until time.Time
	lost  error
}

func (*several) String() string            { return "a and b" }
func (*several) Are() string               { return "a and b are" }
func (*several) Context() context.Context  { return context.Background() }
func (s *several) Err() error              { return s.lost }
func (s *several) TrustedUntil() time.Time { return s.until }
func (*several) Event(string) say.Event    { return say.Event{} }

func TestWatchdogDeadlineStaysUnchangedIfLockIsLost(t *testing.T) {
	var sent strings.Builder
	held := &several{until: time.Now().Add(time.Minute)}
	s := &supervision{lock: held, watchdog: &watchdogHandle{orders: textOf{&sent}}}
	s.sendTrust()
	held.until, held.lost = time.Now(), errors.New("a is lost")
	s.sendTrust()
	if orders := strings.Fields(sent.String()); len(orders) != 4 || orders[1] != orders[3] {
		t.Errorf("orders %v", orders)
	}
}

// textOf replaces the pipe to a watchdog. It copies the supervisor's orders to its Writer.
type textOf struct{ io.Writer }

func (textOf) Close() error { return nil }
