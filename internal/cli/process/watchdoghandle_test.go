package process

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/leasehold-go/leasehold/internal/cli/say"
)

// several is a Lock that stands for locks on several keys. until is the earliest
// trusted-until time of these locks, lost ones included.
type several struct {
	until time.Time
	lost  error
}

func (*several) String() string            { return "a and b" }
func (*several) Are() string               { return "a and b are" }
func (*several) Context() context.Context  { return context.Background() }
func (s *several) Err() error              { return s.lost }
func (s *several) TrustedUntil() time.Time { return s.until }
func (*several) Event(string) say.Event    { return say.Event{} }

func TestRenewalDoesNotExtendGraceAfterLossOfAnotherLock(t *testing.T) {
	var sent strings.Builder
	held := &several{until: time.Now().Add(time.Minute)}
	s := &supervision{lock: held, watchdog: &watchdogHandle{orders: textOf{&sent}}}
	s.sendTrust()
	held.until, held.lost = time.Now(), errors.New("a is lost")
	s.sendTrust()
	if orders := strings.Fields(sent.String()); len(orders) != 4 || orders[1] != orders[3] {
		t.Errorf("orders %v", orders)
	}
}

// textOf stands for the pipe to a watchdog. It copies the supervisor's orders to its
// Writer.
type textOf struct{ io.Writer }

func (textOf) Close() error { return nil }
