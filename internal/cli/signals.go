package cli

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
)

// signals receives the signals sent to this process, from before the wait for
// KEY until CMD has ended.
type signals struct {
	c chan os.Signal

	// What to do with the terminal before Ctrl-Z stops this process during a wait,
	// and after it was continued; nil: nothing.
	beforeStop, afterStop func()
}

// catchSignals catches signals that would otherwise end or stop the process.
// Signals that the process was started to ignore stay ignored, such as HUP under
// nohup(1).
func catchSignals() *signals {
	s := &signals{c: make(chan os.Signal, 16)}
	for _, sig := range caughtSignals {
		if !signal.Ignored(sig) {
			signal.Notify(s.c, sig)
		}
	}
	return s
}

func (s *signals) release() { signal.Stop(s.c) }

// bind returns a copy of ctx that ends when a signal arrives that would end the
// process. The returned function puts that signal back: KEY may have been
// granted at the same moment, and then the signal is for CMD.
func (s *signals) bind(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	done := make(chan struct{})
	var ended os.Signal
	go func() {
		defer close(done)
		for {
			select {
			case sig := <-s.c:
				if number, ok := sig.(syscall.Signal); ok && endsWait(number) {
					ended = sig
					cancel(&signalError{number})
					return
				}
				s.pause(sig)
			case <-ctx.Done():
				return
			}
		}
	}()
	return ctx, func() {
		cancel(context.Canceled)
		<-done
		if ended == nil {
			return
		}
		select {
		case s.c <- ended:
		default: // the channel is full of other signals
		}
		ended = nil
	}
}

// pause stops this process on Ctrl-Z until it is continued.
func (s *signals) pause(sig os.Signal) {
	if !stopsJob(sig) {
		return
	}
	if s.beforeStop != nil {
		s.beforeStop()
		defer s.afterStop()
	}
	stopSelf()
}

// parseSignal reads TERM, SIGTERM or 15.
func parseSignal(s string) (syscall.Signal, error) {
	if n, err := strconv.Atoi(s); err == nil {
		if n > 0 && n < 65 {
			return syscall.Signal(n), nil
		}
		return 0, fmt.Errorf("unknown signal %d", n)
	}
	name := "SIG" + strings.TrimPrefix(strings.ToUpper(s), "SIG")
	if n := signalNumber(name); n != 0 {
		return n, nil
	}
	return 0, fmt.Errorf("unknown signal %q", s)
}
