package process

import (
	"os"
	"syscall"
	"testing"
)

func TestASignalThatComesTooLateToEndAWaitIsNotLost(t *testing.T) {
	s := &Signals{C: make(chan os.Signal, 1)}
	ctx, release := s.Bind(t.Context())
	s.C <- syscall.SIGTERM
	<-ctx.Done()
	release() // the lock was granted nevertheless
	release()
	if len(s.C) != 1 {
		t.Fatalf("%d signals are left", len(s.C))
	}
	if sig := <-s.C; sig != syscall.SIGTERM {
		t.Errorf("%v is left", sig)
	}
}

func TestSignalsAreReadByNameAndNumber(t *testing.T) {
	for _, in := range []string{"TERM", "SIGTERM", "term", "15"} {
		if got, err := ParseSignal(in); err != nil || int(got) != 15 {
			t.Errorf("%q: %v, %v", in, got, err)
		}
	}
	for _, in := range []string{"", "NONSENSE", "0", "65", "-1"} {
		if got, err := ParseSignal(in); err == nil {
			t.Errorf("%q: %v", in, got)
		}
	}
}
