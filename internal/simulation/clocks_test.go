package simulation

import (
	"sync"
	"time"
)

// clocks are the clocks of one process. Two run at a rate of their own, and one of these
// almost stops while the machine is suspended. (Almost: the timers of a bubble continue,
// and one that fires too early by that clock is set again, for the rest.) The wall clock is
// set at random.
type clocks struct {
	rate  float64
	began time.Time

	mu            sync.Mutex
	ahead         time.Duration // the clock that runs on
	wall          time.Duration // the wall clock is so much ahead
	slept         time.Duration // before the last suspend
	since, asleep time.Time     // the last suspend, and its end
}

func (k *clocks) read() (mono, boot time.Duration) {
	k.mu.Lock()
	defer k.mu.Unlock()
	now := time.Now()
	boot = time.Duration(k.rate*float64(now.Sub(k.began))) + k.ahead
	return time.Duration(k.rate * float64(now.Sub(k.began)-k.stoodStill(now))), boot
}

// stoodStill is for how long until now. k.mu is held.
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

// leap has both clocks go ahead by d: none does.
func (k *clocks) leap(d time.Duration) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.began = k.began.Add(-d)
}

// suspend stops one of the clocks for d.
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
