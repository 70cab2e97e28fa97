//go:build unix

package process

import (
	"syscall"
	"testing"
	"time"
)

// A busy machine delivers a signal late: CMD, which received the same signal, has ended by
// then.
func TestSignalSentBeforeEndOfCMDIsKnownAtItsEnd(t *testing.T) {
	s := CatchSignals()
	defer s.Release()
	for range 100 {
		if err := syscall.Kill(syscall.Getpid(), syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		told := s.end()
		select {
		case sig := <-s.C:
			if !told || sig != syscall.SIGTERM || len(s.C) != 0 {
				t.Fatalf("told to end: %v; the next wait gets %v and %d more", told, sig, len(s.C))
			}
		case <-time.After(10 * time.Second):
			t.Fatal("the signal never came")
		}
	}
}
