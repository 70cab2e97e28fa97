package lab

import (
	"time"

	"github.com/leasehold-go/leasehold/internal/decide"
	"github.com/leasehold-go/leasehold/internal/machine"
)

// Edit changes the machine that a client runs on.
type Edit func(*machine.Machine)

// Clocks gives a client clocks of its own. now returns the readings of the monotonic clock,
// and of the clock that does not stop while the machine is suspended.
func Clocks(now func() (mono, boot time.Duration)) Edit {
	return func(m *machine.Machine) {
		m.Now = func() decide.Instant {
			mono, boot := now()
			return decide.Instant{Mono: mono, Boot: boot}
		}
	}
}

// Wall gives a client a wall clock of its own.
func Wall(now func() time.Time) Edit {
	return func(m *machine.Machine) { m.Wall = now }
}

// Chance makes a client take its random numbers in [0, 1) from draw.
func Chance(draw func() float64) Edit {
	return func(m *machine.Machine) { m.Chance = draw }
}

// Renewals allows a client at most n renewals in flight.
func Renewals(n int) Edit {
	return func(m *machine.Machine) { m.Renewals = n }
}

// Memory limits to n the number of keys that a client remembers without observing them.
func Memory(n int) Edit {
	return func(m *machine.Machine) { m.Memory = n }
}
