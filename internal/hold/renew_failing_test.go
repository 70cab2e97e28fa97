package hold_test

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/lab"
)

// logged returns a config with a log, and a function that counts the lines of the log with
// a given message.
func logged() (leasehold.Config, func(message string) int) {
	var log bytes.Buffer
	cfg := lab.Config()
	cfg.Logger = slog.New(slog.NewTextHandler(&log, nil)) // lines may be logged concurrently, as the handler locks a mutex for each line
	return cfg, func(message string) int { return strings.Count(log.String(), message) }
}

func TestFailingRenewalsAreSummedUpInTheLog(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		cfg, said := logged()
		c, wire := w.Client(cfg)
		locks := w.AcquireMany(c, "job", 200)
		lab.Elapse(10 * time.Second)
		wire.SetFault(lab.Out)
		lab.Elapse(12 * time.Second)
		if n := said("level=WARN"); n != 2 { // one warning at once, and one after ten seconds
			t.Errorf("%d warnings in 12 s", n)
		}
		if said("locks=1 attempts=1 ") != 1 || said("locks=200 attempts=") != 1 || said("remaining=") != 2 {
			t.Error("not summed up with the least trust left")
		}
		wire.SetFault(nil)
		lab.Elapse(5 * time.Second)
		if n := said("renewals succeed again"); n != 1 || lab.Lost(locks) > 0 {
			t.Errorf("said %d times that renewals succeed again", n)
		}
		wire.SetFault(lab.Cut)
		lab.Elapse(20 * time.Second)
		if n := said("lock lost"); n != len(locks) {
			t.Errorf("%d lines for %d lost locks", n, len(locks))
		}
		wire.SetFault(nil)
		_ = c.Close(t.Context())
	})
}

func TestRenewalRecoveryIsLoggedDespiteReleasedLock(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		cfg, said := logged()
		c, wire := w.Client(cfg)
		released, stays := w.Acquire(c, "released"), w.Acquire(c, "stays")
		wire.SetFault(lab.Out)
		lab.Elapse(12 * time.Second)
		wire.SetFault(nil)
		w.Release(released)
		lab.Elapse(5 * time.Second)
		if said("renewals fail") == 0 || said("renewals succeed again") != 1 {
			t.Error("of the lock that stays it is not said that its renewals succeed again")
		}
		w.Release(stays)
	})
}
