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

// signals are those sent to this process, from before a wait until after CMD.
type signals struct {
	c chan os.Signal
}

// catchSignals begins to receive what would otherwise end or stop the process.
// What the process was started to ignore, as nohup(1) does with HUP, stays
// ignored.
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

// bind returns a copy of ctx that ends with a signal that would end the process.
// The signal is there to be received again afterwards: what it was to end may
// have succeeded in the same moment, and then it is CMD's.
func (s *signals) bind(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	done := make(chan struct{})
	var ended os.Signal
	go func() {
		defer close(done)
		for {
			select {
			case sig := <-s.c:
				if number, ok := sig.(syscall.Signal); ok && ends(number) {
					ended = sig
					cancel(&signalError{number})
					return
				}
				pauseSelf(sig)
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
		default: // as many others are waiting to be received
		}
		ended = nil
	}
}

// parseSignal reads TERM, SIGTERM or 15.
func parseSignal(s string) (syscall.Signal, error) {
	if n, err := strconv.Atoi(s); err == nil {
		if n > 0 && n < 65 {
			return syscall.Signal(n), nil
		}
		return 0, fmt.Errorf("there is no signal %d", n)
	}
	name := "SIG" + strings.TrimPrefix(strings.ToUpper(s), "SIG")
	if n := signalNumber(name); n != 0 {
		return n, nil
	}
	return 0, fmt.Errorf("there is no signal %q", s)
}
