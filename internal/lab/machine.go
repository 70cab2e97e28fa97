package lab

import (
	"time"

	"github.com/leasehold-go/leasehold/internal/decide"
	"github.com/leasehold-go/leasehold/internal/machine"
)

// Edit changes the simulated machine of a client: its clocks, its source of random numbers or
// its limits.
type Edit func(*machine.Machine)

// Clocks returns an Edit that sets the clocks of a client's machine. The function "now" returns
// the readings of the monotonic clock and of the boot clock. The boot clock also runs while the
// machine is suspended.
func Clocks(now func() (mono, boot time.Duration)) Edit {
	return func(m *machine.Machine) {
		m.Now = func() decide.Instant {
			mono, boot := now()
			return decide.Instant{Mono: mono, Boot: boot}
		}
	}
}

// Wall returns an Edit that sets the wall clock of a client's machine.
func Wall(now func() time.Time) Edit {
	return func(m *machine.Machine) { m.Wall = now }
}

// Chance returns an Edit that sets the source of a client's random numbers. The function "draw"
// returns a number in [0, 1).
func Chance(draw func() float64) Edit {
	return func(m *machine.Machine) { m.Chance = draw }
}

// Renewals returns an Edit that limits a client to n renewals in flight.
func Renewals(n int) Edit {
	return func(m *machine.Machine) { m.Renewals = n }
}

// Memory returns an Edit with which a client remembers the record versions of at most n keys. Keys
// that the client is observing do not count.
func Memory(n int) Edit {
	return func(m *machine.Machine) { m.Memory = n }
}
