package simulation

import (
	"sync"
	"time"
)

// clocks are the three clocks of one process. Two of them run at the rate of the process.
// One of these two almost stops while the machine is suspended. It does not stop entirely,
// because the timers of a bubble continue to run during the suspend. A timer that fires too
// early by that clock is set again. The third clock is the wall clock, which is set at
// random.
type clocks struct {
	rate  float64
	began time.Time

	mu            sync.Mutex
	ahead         time.Duration // time by which the clock that runs during suspends is ahead
	wall          time.Duration // time by which the wall clock is ahead
	slept         time.Duration // time for which suspends before the last one have stopped the clock
	since, asleep time.Time     // beginning and end of the last suspend
}

func (k *clocks) read() (mono, boot time.Duration) {
	k.mu.Lock()
	defer k.mu.Unlock()
	now := time.Now()
	boot = time.Duration(k.rate*float64(now.Sub(k.began))) + k.ahead
	return time.Duration(k.rate * float64(now.Sub(k.began)-k.stoodStill(now))), boot
}

// stoodStill returns for how long, in total, suspends have stopped the clock until now. The
// caller must hold k.mu.
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

// jump simulates a suspend that no other process notices. It moves the clock that runs
// during suspends ahead by d.
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

// suspend slows one of the clocks to a crawl for d.
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
