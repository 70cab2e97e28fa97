// Package layout holds the ways a lock record can be written: leasehold's own
// and those of the five libraries it succeeds. Each is a struct whose zero value
// has the library's own defaults.
package layout

import (
	"fmt"
	"strings"
	"time"
)

// Layout is one of the structs of this package, and nothing else.
type Layout interface {
	Name() string // as the command's --layout takes it
	Capabilities() Capabilities

	sealed()
}

// Expiry is how a layout tells that a holder is dead.
type Expiry string

// The ways to tell.
const (
	Observed  Expiry = "observed"   // the version stood still for a lease, by the waiter's clock
	WallClock Expiry = "wall clock" // the record's time has passed, give or take MaxSkew
)

// Capabilities is what a layout can do. Using what it cannot is an error that
// matches errors.ErrUnsupported, before anything is sent.
type Capabilities struct {
	Expiry                 Expiry
	EveryGrantFenced       bool // false: a peer's grant carries no token
	FencingSurvivesRelease bool // false: release deletes, and tokens restart from the clock
	Data                   bool
	Attributes             bool
	KeepOnRelease          bool
	DeleteOnRelease        bool
	SortKey                bool          // WithSortKey may be used
	TTL                    bool          // records carry a TTL attribute
	LeaseStep              time.Duration // leases are rounded up to it
}

// all lists every layout with its defaults, in the order of Names.
func all() []Layout {
	return []Layout{Native{}, AWSLabs{}, Dynamolock{}, PythonDynamoDBLock{}, DynamoDLM{}, DyndbMutex{}}
}

// Names lists what Parse takes.
func Names() []string {
	var names []string
	for _, l := range all() {
		names = append(names, l.Name())
	}
	return names
}

// Parse returns the layout of that name with its defaults.
func Parse(name string) (Layout, error) {
	for _, l := range all() {
		if l.Name() == name {
			return l, nil
		}
	}
	return nil, fmt.Errorf("layout: no layout %q: use one of %s", name, strings.Join(Names(), ", "))
}
