package simulation

import (
	"sync"
	"time"
)

// clocks are the three clocks of one process. Two of them, mono and boot, run at the rate
// of the process. While the machine is suspended, boot runs on and mono almost stops. It
// does not stop entirely, because the timers of the synctest bubble run on during the
// suspend. A timer that fires too early by mono is set again. The third clock is the wall
// clock, which is set to random times.
type clocks struct {
	rate  float64
	began time.Time

	mu            sync.Mutex
	ahead         time.Duration // time by which jump has moved the boot clock ahead
	wall          time.Duration // time by which the wall clock is ahead of the world's time
	slept         time.Duration // total time for which earlier suspends have stopped the mono clock
	since, asleep time.Time     // beginning and end of the last suspend
}

func (k *clocks) read() (mono, boot time.Duration) {
	k.mu.Lock()
	defer k.mu.Unlock()
	now := time.Now()
	boot = time.Duration(k.rate*float64(now.Sub(k.began))) + k.ahead
	return time.Duration(k.rate * float64(now.Sub(k.began)-k.stoodStill(now))), boot
}

// stoodStill returns the total time for which suspends have stopped the mono clock until
// now. The caller must hold k.mu.
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

// jump simulates a suspend that takes no time for the other processes. It moves the
// boot clock, which runs during suspends, ahead by d.
func (k *clocks) jump(d time.Duration) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.ahead += d
}

// leap moves the mono and boot clocks ahead by d at once, which real clocks
// never do.
func (k *clocks) leap(d time.Duration) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.began = k.began.Add(-d)
}

// suspend makes the mono clock almost stop for d.
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
