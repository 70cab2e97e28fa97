package process

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/leasehold-go/leasehold/internal/cli/failure"
)

// Signals receives the signals that are sent to this process, from CatchSignals until Release.
// The command run calls CatchSignals before it waits for KEY, and Release after CMD has ended.
type Signals struct {
	C chan os.Signal

	// Orphaned is closed when the parent of this process has ended. leasehold then exits as
	// it does after SIGTERM. Orphaned is nil without --die-with-parent.
	Orphaned <-chan struct{}
}

// CatchSignals starts to catch the signals in Caught, which would otherwise end or suspend
// this process. A signal that was ignored when this process started stays ignored, as
// SIGHUP is under nohup(1).
func CatchSignals() *Signals {
	s := &Signals{C: make(chan os.Signal, 16)}
	for _, sig := range Caught {
		if !signal.Ignored(sig) {
			signal.Notify(s.C, sig)
		}
	}
	return s
}

// UntilSignal returns a copy of ctx that is cancelled when a signal arrives that would end
// this process. The caller must call the returned function.
func UntilSignal(ctx context.Context) (context.Context, context.CancelFunc) {
	signals := CatchSignals()
	ctx, cancel := signals.Bind(ctx)
	return ctx, func() {
		cancel()
		signals.Release()
	}
}

// Release stops catching signals, so that they have their default effects again.
func (s *Signals) Release() { signal.Stop(s.C) }

// Bind returns a copy of ctx that is cancelled when Orphaned is closed, or when a signal arrives
// that would end this process. The caller must call the returned function. It puts the signal back
// into C, so that a CMD that starts at the same moment receives the signal.
func (s *Signals) Bind(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	ended := make(chan os.Signal, 1) // receives that signal, if it arrives; closed when no more signals are received from C
	go func() {
		defer close(ended)
		for {
			select {
			case sig := <-s.C:
				if number := sig.(syscall.Signal); endsWait(number) {
					ended <- sig
					cancel(&failure.SignalError{Signal: number, Name: SignalName(number)})
					return
				}
				if stopsJob(sig) { // the signal of Ctrl-Z
					stopSelf()
				}
			case <-s.Orphaned: // if KEY is granted at the same moment, Run finds Orphaned closed and stops CMD
				cancel(&failure.SignalError{Signal: syscall.SIGTERM, Name: "the end of the process that started leasehold"})
				return
			case <-ctx.Done():
				return
			}
		}
	}()
	return ctx, func() {
		cancel(context.Canceled)
		for sig := range ended {
			select {
			case s.C <- sig:
			default: // C is full of other signals, so this one is dropped
			}
		}
	}
}

// end is called after CMD has ended. It reports whether C contains a signal that asks a program to
// end, and that this process has not handled yet. The signal stays in C, because it must also end
// the next wait of leasehold elect.
func (s *Signals) end() (told bool) {
	awaitSent()
	for range len(s.C) {
		sig := <-s.C               // never blocks: after CMD has ended, only this loop receives from C
		if sig == ContinueSignal { // awaitSent has sent it, or it came after CMD had ended: drop it
			continue
		}
		told = told || isEnd(sig)
		select {
		case s.C <- sig:
		default: // C is full of newer signals, so this one is dropped
		}
	}
	return told
}

// isEnd reports whether sig asks a program to end. Any other signal may have another
// meaning for CMD: with SIGUSR1, for example, some programs report their progress.
func isEnd(sig os.Signal) bool {
	return slices.Contains([]os.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGQUIT, syscall.SIGHUP}, sig)
}

// ParseSignal parses a signal name or number, such as TERM, SIGTERM or 15.
func ParseSignal(s string) (syscall.Signal, error) {
	sig := signalNumber("SIG" + strings.TrimPrefix(strings.ToUpper(s), "SIG"))
	if n, err := strconv.Atoi(s); err == nil && n > 0 && n < 65 {
		sig = syscall.Signal(n)
	}
	if sig == 0 {
		return 0, fmt.Errorf("unknown signal %q", s)
	}
	return sig, nil
}
