package cli

import (
	"os"
	"syscall"
	"testing"
)

func TestASignalThatComesTooLateToEndAWaitIsNotLost(t *testing.T) {
	s := &signals{c: make(chan os.Signal, 1)}
	ctx, release := s.bind(t.Context())
	s.c <- syscall.SIGTERM
	<-ctx.Done()
	release() // the lock was granted nevertheless
	release()
	if len(s.c) != 1 {
		t.Fatalf("%d signals are left", len(s.c))
	}
	if sig := <-s.c; sig != syscall.SIGTERM {
		t.Errorf("%v is left", sig)
	}
}
