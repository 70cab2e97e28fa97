package lab

import (
	"sync/atomic"
	"time"

	"github.com/leasehold-go/leasehold/internal/decide"
	"github.com/leasehold-go/leasehold/internal/machine"
)

// Jumps simulates a suspended machine, or a change of its wall clock. For each clock of the
// machine, it contains the number of nanoseconds by which the clock is ahead of time.Now. While a
// machine is suspended, its boot clock runs, but its monotonic clock and its timers do not.
type Jumps struct{ Mono, Boot, Wall atomic.Int64 }

// Edit adds the jumps to the clocks of a client's machine. Pass this method to World.Client.
func (j *Jumps) Edit(m *machine.Machine) {
	now := m.Now
	m.Now = func() decide.Instant {
		at := now()
		at.Mono += time.Duration(j.Mono.Load())
		at.Boot += time.Duration(j.Boot.Load())
		return at
	}
	wall := m.Wall
	m.Wall = func() time.Time { return wall().Add(time.Duration(j.Wall.Load())) }
}
