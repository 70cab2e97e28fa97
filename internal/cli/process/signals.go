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

// Signals receives the signals sent to this process, from before the wait for
// KEY until CMD has ended.
type Signals struct {
	C chan os.Signal

	// Orphaned is closed when the parent of this process has ended. This process then ends
	// as if it had received SIGTERM. Orphaned is nil if this process should outlive its
	// parent.
	Orphaned <-chan struct{}
}

// CatchSignals catches signals that would otherwise end or stop the process. Signals that were
// ignored when the process started stay ignored, such as HUP under nohup(1).
func CatchSignals() *Signals {
	s := &Signals{C: make(chan os.Signal, 16)}
	for _, sig := range Caught {
		if !signal.Ignored(sig) {
			signal.Notify(s.C, sig)
		}
	}
	return s
}

// UntilSignal returns a copy of ctx that is also cancelled when a signal arrives that would
// end the process.
func UntilSignal(ctx context.Context) (context.Context, context.CancelFunc) {
	signals := CatchSignals()
	ctx, cancel := signals.Bind(ctx)
	return ctx, func() {
		cancel()
		signals.Release()
	}
}

// Release restores the default effects of signals.
func (s *Signals) Release() { signal.Stop(s.C) }

// Bind returns a copy of ctx that is also cancelled when a signal arrives that would end
// the process, or when Orphaned is closed. The returned function puts that signal back into
// C: if KEY was granted at the same moment, CMD must receive the signal.
func (s *Signals) Bind(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	done := make(chan struct{})
	var ended os.Signal
	go func() {
		defer close(done)
		for {
			select {
			case sig := <-s.C:
				if number := sig.(syscall.Signal); endsWait(number) {
					ended = sig
					cancel(&failure.SignalError{Signal: number, Name: SignalName(number)})
					return
				}
				if stopsJob(sig) { // Ctrl-Z
					stopSelf()
				}
			case <-s.Orphaned: // Orphaned stays closed: if CMD is started nevertheless, Run sees the closed channel and stops CMD
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
		default: // the signal is dropped, as the channel is full of other signals
		}
		ended = nil
	}
}

// end reports whether C contains a signal that ends programs and was not passed on to CMD.
// CMD may have received the same signal directly. This process may then notice CMD's end
// before it reads the signal. end leaves the signal in C for the next wait.
func (s *Signals) end() (told bool) {
	awaitSent()
	for range len(s.C) {
		sig := <-s.C               // never blocks, as no other code receives from C once CMD has ended
		if sig == ContinueSignal { // skipped: awaitSent has sent this signal, or it arrived after CMD had ended
			continue
		}
		told = told || isEnd(sig)
		select {
		case s.C <- sig:
		default: // the signal is dropped, as the channel is full of newer signals
		}
	}
	return told
}

// isEnd reports whether a signal asks a program to end. Other signals end only a program
// that does not handle them. For example, CMD may handle USR1 to report its progress.
func isEnd(sig os.Signal) bool {
	return slices.Contains([]os.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGQUIT, syscall.SIGHUP}, sig)
}

// ParseSignal parses TERM, SIGTERM or 15.
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
