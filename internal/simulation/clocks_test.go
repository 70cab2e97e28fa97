package simulation

import (
	"sync"
	"time"
)

// clocks are the three clocks of one process. Two of them run at the rate of the process,
// and one of these two almost stops while the machine is suspended. It never stops
// entirely, because the timers of a bubble continue: a timer that fires too early by that
// clock is set again. The wall clock is set at random.
type clocks struct {
	rate  float64
	began time.Time

	mu            sync.Mutex
	ahead         time.Duration // how far the clock that runs during suspends is ahead
	wall          time.Duration // how far the wall clock is ahead
	slept         time.Duration // time in suspends before the last one
	since, asleep time.Time     // beginning and end of the last suspend
}

func (k *clocks) read() (mono, boot time.Duration) {
	k.mu.Lock()
	defer k.mu.Unlock()
	now := time.Now()
	boot = time.Duration(k.rate*float64(now.Sub(k.began))) + k.ahead
	return time.Duration(k.rate * float64(now.Sub(k.began)-k.stoodStill(now))), boot
}

// stoodStill returns how long the clock has stopped until now. The caller must hold k.mu.
func (k *clocks) stoodStill(now time.Time) time.Duration {
	if now.After(k.asleep) {
		now = k.asleep
	}
	return k.slept + now.Sub(k.since)*19/20
}

func (k *clocks) readWall() time.Time { return time.Now().Add(k.wallAhead()) }

func (k *clocks) wallAhead() time.Duration {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.wall
}

func (k *clocks) setWall(ahead time.Duration) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.wall = ahead
}

// jump is a suspend that no other process notices.
func (k *clocks) jump(d time.Duration) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.ahead += d
}

// leap moves both clocks ahead by d, which real clocks never do.
func (k *clocks) leap(d time.Duration) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.began = k.began.Add(-d)
}

// suspend almost stops one of the clocks for d.
func (k *clocks) suspend(d time.Duration) {
	k.mu.Lock()
	defer k.mu.Unlock()
	now := time.Now()
	if now.Before(k.asleep) {
		return
	}
	k.slept = k.stoodStill(now)
	k.since, k.asleep = now, now.Add(d)
}
