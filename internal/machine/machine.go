// Package machine contains the clocks, the random numbers and the limits of a client. Two of
// the clocks cannot be set: the monotonic clock, and the boot-time clock, which also runs while
// the machine is suspended. The wall clock can be set. One limit is for the number of observed
// records that the client remembers, and one for requests in flight.
//
// Tests replace the machine, because package testing/synctest fakes neither the boot-time clock nor
// random numbers. A simulation can be repeated only if it chooses all clock readings and random
// numbers itself. A test passes its machine to a client through the DB: if the DB that is passed to
// leasehold.New is a Provider, the client uses the machine that this DB provides. So the public API
// contains no machine, and no global variable is needed.
package machine

import (
	"math"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/leasehold-go/leasehold/internal/boottime"
	"github.com/leasehold-go/leasehold/internal/decide"
	"github.com/leasehold-go/leasehold/internal/durations"
)

// Machine contains the clocks, the random numbers and the limits of a client.
type Machine struct {
	// Now returns the readings of the monotonic clock and the boot-time clock.
	Now func() decide.Instant

	// Wall returns the reading of the wall clock.
	Wall func() time.Time

	// Chance returns a random number, uniform in [0, 1).
	Chance func() float64

	// Memory is the maximum number of keys whose versions a client remembers. Keys for which a
	// call waits do not count.
	Memory int

	// Renewals is the maximum number of renewals in flight. It is also the maximum number of
	// releases in flight during Close.
	Renewals int
}

// Provider is implemented by a DB that provides the machine for the leasehold clients that
// use the DB.
type Provider interface {
	// Machine returns the machine that a client uses. The parameter "real" is the machine on which
	// the process runs.
	Machine(real Machine) Machine
}

// DB is an SDK client that is also a Provider. The machine that it provides is a copy of the real
// machine. The function Edit changes this copy.
type DB struct {
	*dynamodb.Client
	Edit func(*Machine)
}

// Machine implements Provider.
func (db DB) Machine(m Machine) Machine {
	db.Edit(&m)
	return m
}

// started is the origin of the monotonic clock. In Go, a monotonic clock can only be read as the
// Duration since an earlier Time.
var started = time.Now()

// atStart is the reading of the monotonic clock at the start of the process, about 73 years. In a
// bubble of testing/synctest, time begins in the year 2000, before that start. Even there the
// reading must be above zero: zero may mean an unset time.
const atStart = time.Duration(math.MaxInt64 / 4)

// Now returns the readings of the monotonic clock and the boot-time clock of the machine on
// which this process runs.
func Now() decide.Instant {
	return decide.Instant{Mono: durations.Sum(atStart, time.Since(started)), Boot: boottime.Now()}
}

// BootedAt returns a function for Machine.Now whose clocks both follow package time. In a synctest
// bubble both are fake, so leases do not expire in a slow test. At the time origin both show one
// millisecond, so tests fail if code relies on a long uptime.
func BootedAt(origin time.Time) func() decide.Instant {
	return func() decide.Instant {
		up := durations.Sum(time.Millisecond, time.Since(origin))
		return decide.Instant{Mono: up, Boot: up}
	}
}
