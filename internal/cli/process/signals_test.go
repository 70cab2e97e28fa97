package process

import (
	"os"
	"syscall"
	"testing"
)

func TestSignalAfterGrantStaysInChannel(t *testing.T) {
	s := &Signals{C: make(chan os.Signal, 1)}
	ctx, release := s.Bind(t.Context())
	s.C <- syscall.SIGTERM
	<-ctx.Done()
	release() // puts the signal back; the caller does this if the lock was granted although the signal had come
	release()
	if len(s.C) != 1 {
		t.Fatalf("%d signals are left", len(s.C))
	}
	if sig := <-s.C; sig != syscall.SIGTERM {
		t.Errorf("%v is left", sig)
	}
}

// A service manager sends its signals to CMD and to leasehold at the same moment.
func TestSignalDuringExitOfCMDIsKeptForNextWait(t *testing.T) {
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
			t.Errorf("%v: told to end: %v, %d are left", c.sent, told, len(s.C))
		}
	}
}

func TestSignalNamesAndNumbersAreParsed(t *testing.T) {
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
