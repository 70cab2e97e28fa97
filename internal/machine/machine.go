// Package machine provides the machine that a client runs on: two clocks that cannot be
// set, a wall clock that can, random numbers, memory for observed records, and limits for
// requests in flight.
//
// Tests provide machines of their own: testing/synctest fakes only one of the two clocks,
// and a simulation can be repeated only if it chooses everything itself. A client gets its
// machine from the DB that it is made with, if that DB is a Provider. So none of this is in
// the public API, and nothing is global.
package machine

import (
	"math"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/leasehold-go/leasehold/internal/boottime"
	"github.com/leasehold-go/leasehold/internal/decide"
	"github.com/leasehold-go/leasehold/internal/durations"
)

// Machine provides a client's clocks, random numbers and limits.
type Machine struct {
	// Now reads the two clocks that cannot be set.
	Now func() decide.Instant

	// Wall reads the wall clock. It is used only for messages, for TTL, and for layouts
	// whose records contain the time when they expire.
	Wall func() time.Time

	// Chance returns a random number in [0, 1) for pauses and for the order of choices.
	Chance func() float64

	// Memory is the maximum number of keys whose versions a client remembers although no
	// call waits for them.
	Memory int

	// Renewals is the limit of renewals, or of releases by Close, that are in flight at
	// once.
	Renewals int
}

// Provider is a DB that provides the machine for the clients made with it.
type Provider interface {
	// Machine returns the client's machine, given the real one.
	Machine(real Machine) Machine
}

// DB is an SDK client that provides a machine for the leasehold clients made with it.
type DB struct {
	*dynamodb.Client
	Edit func(*Machine)
}

// Machine implements Provider.
func (db DB) Machine(m Machine) Machine {
	db.Edit(&m)
	return m
}

// started is the origin of the monotonic clock: Go can read that clock only as a Duration
// since a Time.
var started = time.Now()

// atStart is the reading of the monotonic clock at started: some 73 years. A synctest
// bubble begins in the year 2000, long before started. The reading must be above 0 there,
// too, because 0 may mean an unset time.
const atStart = time.Duration(math.MaxInt64 / 4)

// Now reads the clocks of the machine that this process runs on.
func Now() decide.Instant {
	return decide.Instant{Mono: durations.Sum(atStart, time.Since(started)), Boot: boottime.Now()}
}

// BootedAt returns a function that reads two clocks. Both follow package time. So no lease
// expires in a synctest bubble because the test takes long in real time. The machine seems
// to have booted a moment before origin, because no code may depend on its uptime.
func BootedAt(origin time.Time) func() decide.Instant {
	return func() decide.Instant {
		up := durations.Sum(time.Millisecond, time.Since(origin))
		return decide.Instant{Mono: up, Boot: up}
	}
}
