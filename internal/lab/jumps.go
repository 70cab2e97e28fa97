package lab

import (
	"sync/atomic"
	"time"

	"github.com/leasehold-go/leasehold/internal/decide"
	"github.com/leasehold-go/leasehold/internal/machine"
)

// Jumps changes the readings of a machine's three clocks. Each field is the number of nanoseconds
// that is added to one clock. To simulate a suspension, add its length only to Boot: a suspension
// stops the monotonic clock and the timers.
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
