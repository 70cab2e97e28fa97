package process

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"

	"github.com/leasehold-go/leasehold/internal/cli/failure"
)

// Signals receives the signals sent to this process, from before the wait for
// KEY until CMD has ended.
type Signals struct {
	C chan os.Signal

	// Orphaned is closed when the parent of this process has ended, which then ends like
	// by TERM; nil if it goes on.
	Orphaned <-chan struct{}
}

// CatchSignals catches signals that would otherwise end or stop the process.
// Signals that the process was started to ignore stay ignored, such as HUP under
// nohup(1).
func CatchSignals() *Signals {
	s := &Signals{C: make(chan os.Signal, 16)}
	for _, sig := range Caught {
		if !signal.Ignored(sig) {
			signal.Notify(s.C, sig)
		}
	}
	return s
}

// UntilSignal returns a copy of ctx that ends when a signal arrives that would end the
// process.
func UntilSignal(ctx context.Context) (context.Context, context.CancelFunc) {
	signals := CatchSignals()
	ctx, cancel := signals.Bind(ctx)
	return ctx, func() {
		cancel()
		signals.Release()
	}
}

// Release lets signals do again what they do by themselves.
func (s *Signals) Release() { signal.Stop(s.C) }

// Bind returns a copy of ctx that ends when a signal arrives that would end the
// process, or when Orphaned is closed. The returned function puts that signal back: KEY may have been
// granted at the same moment, and then the signal is for CMD.
func (s *Signals) Bind(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	done := make(chan struct{})
	var ended os.Signal
	go func() {
		defer close(done)
		for {
			select {
			case sig := <-s.C:
				if number, ok := sig.(syscall.Signal); ok && endsWait(number) {
					ended = sig
					cancel(&failure.SignalError{Signal: number, Name: SignalName(number)})
					return
				}
				pause(sig)
			case <-s.Orphaned: // which stays closed, for CMD too
				cancel(&failure.SignalError{Signal: syscall.SIGTERM, Name: "the end of the process that started leasehold"})
				return
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
		case s.C <- ended:
		default: // the channel is full of other signals
		}
		ended = nil
	}
}

// end reports whether a signal that tells to end has come and was not passed on: that CMD
// had ended was seen first, though the same signal may have ended it. Who waits next
// still gets it.
func (s *Signals) end() (told bool) {
	awaitSent()
	for range len(s.C) {
		select {
		case sig := <-s.C:
			if sig == ContinueSignal { // of awaitSent, or too late for CMD
				continue
			}
			told = told || isEnd(sig)
			select {
			case s.C <- sig:
			default: // the channel is full of newer ones
			}
		default:
		}
	}
	return told
}

// isEnd reports whether a signal tells a program to end. Others end only programs that do not
// expect them: CMD may report its progress on USR1.
func isEnd(sig os.Signal) bool {
	switch sig {
	case syscall.SIGINT, syscall.SIGTERM, syscall.SIGQUIT, syscall.SIGHUP:
		return true
	}
	return false
}

// pause stops this process on Ctrl-Z until it is continued.
func pause(sig os.Signal) {
	if stopsJob(sig) {
		stopSelf()
	}
}

// ParseSignal reads TERM, SIGTERM or 15.
func ParseSignal(s string) (syscall.Signal, error) {
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
