package lab

import (
	"sync/atomic"
	"time"

	"github.com/leasehold-go/leasehold/internal/decide"
	"github.com/leasehold-go/leasehold/internal/machine"
)

// Jumps contains, for each clock of a machine, how far the clock is ahead of package time.
// While a machine is suspended, its boot clock runs, but its monotonic clock and its timers
// do not. The wall clock may be set.
type Jumps struct{ Mono, Boot, Wall atomic.Int64 }

// Edit adds the jumps to the clocks of a client's machine. It is an Edit for World.Client.
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
