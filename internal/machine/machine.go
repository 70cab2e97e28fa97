// Package machine is what a client uses of the machine it runs on: two clocks that
// nobody can set and one that anybody can, random numbers, memory for what it has
// observed, and room for requests.
//
// Tests bring machines of their own. testing/synctest fakes only one of the two
// clocks, and a simulation can be repeated only if it chooses everything itself. A
// client asks the DB that it is made with (Provider). So none of this is in the
// public API, and nothing is global.
package machine

import (
	"math"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/leasehold-go/leasehold/internal/boottime"
	"github.com/leasehold-go/leasehold/internal/decide"
	"github.com/leasehold-go/leasehold/internal/durations"
)

// Machine is what a client uses of a machine.
type Machine struct {
	// Now reads the two clocks that nobody can set.
	Now func() decide.Instant

	// Wall reads the wall clock: for people, for TTL, and for layouts whose records say
	// when they expire. Nothing else is decided by it.
	Wall func() time.Time

	// Chance draws a number in [0, 1), for pauses and the order of choices.
	Chance func() float64

	// Memory is how many keys a client remembers that it does not watch.
	Memory int

	// Renewals is how many renewals, or releases of Close, may be in flight at once.
	Renewals int
}

// Provider is a DB that provides the machine for the clients made with it.
type Provider interface {
	// Machine returns the machine of a client that would run on real.
	Machine(real Machine) Machine
}

// DB is an SDK client that provides a machine.
type DB struct {
	*dynamodb.Client
	Edit func(*Machine)
}

// Machine implements Provider.
func (db DB) Machine(m Machine) Machine {
	db.Edit(&m)
	return m
}

// started is where the monotonic clock is read from: Go can read that clock only as the
// Duration since a Time.
var started = time.Now()

// atStart is what the monotonic clock shows then, some 73 years. A synctest bubble begins in
// the year 2000: what it shows there is above 0 too, which is no time at all to many.
const atStart = time.Duration(math.MaxInt64 / 4)

// Now reads the clocks of the machine that this process runs on.
func Now() decide.Instant {
	return decide.Instant{Mono: durations.Sum(atStart, time.Since(started)), Boot: boottime.Now()}
}

// BootedAt returns clocks that both follow package time: in a synctest bubble no lease
// expires because a test takes long. The machine has only just booted at origin: nothing
// may depend on how long it is up.
func BootedAt(origin time.Time) func() decide.Instant {
	return func() decide.Instant {
		up := durations.Sum(time.Millisecond, time.Since(origin))
		return decide.Instant{Mono: up, Boot: up}
	}
}
