package ui

import (
	"testing"
	"time"
)

func TestPaceForgetsReadUnitsSpentBeforePeriod(t *testing.T) {
	p := pace{rate: 100}
	now := start
	for range 1000 {
		now = now.Add(time.Second)
		p.spend(2, now)
	}
	if n := len(p.spent); n > 20 {
		t.Errorf("%d requests are remembered", n)
	}
	if got := p.perSecond(now, start); got < 2 || got > 2.5 {
		t.Errorf("%v read units a second", got)
	}
	if got := p.perSecond(now.Add(time.Minute), start); got != 0 {
		t.Errorf("%v read units a second, a minute after the last", got)
	}
}
