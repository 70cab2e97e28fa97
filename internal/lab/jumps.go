package lab

import (
	"sync/atomic"
	"time"

	"github.com/leasehold-go/leasehold/internal/decide"
	"github.com/leasehold-go/leasehold/internal/machine"
)

// Jumps simulates that a machine was suspended, or that its wall clock was changed. For each
// clock of the machine, Jumps contains the number of nanoseconds by which that clock is ahead of
// time.Now. While a machine is suspended, its boot clock runs, but its monotonic clock and its
// timers stand still.
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
