// Package layout defines how a lock record is stored: in leasehold's own layout, or in the
// layout of one of the five libraries that leasehold succeeds. Each layout is a struct. Its
// zero value has the defaults of the library.
package layout

import (
	"fmt"
	"strings"
	"time"
)

// Layout is implemented only by the structs of this package.
type Layout interface {
	Name() string // value of the command's --layout option
	Capabilities() Capabilities

	sealed()
}

// Expiry is how a waiter finds out that a holder is dead.
type Expiry string

// Values of Expiry.
const (
	Observed  Expiry = "observed"   // the version has not changed for one lease, by the waiter's clock
	WallClock Expiry = "wall clock" // the expiry time in the record has passed, plus MaxSkew
)

// Capabilities lists the features of a layout. If a caller uses a feature that the layout
// does not have, the call fails with an error that matches errors.ErrUnsupported, and sends
// no request.
type Capabilities struct {
	Expiry                 Expiry
	EveryGrantFenced       bool // if false, grants of the other library have no token
	FencingSurvivesRelease bool // if false, a release may delete the token; the next token then starts from the clock
	Data                   bool
	Attributes             bool
	KeepOnRelease          bool
	DeleteOnRelease        bool
	SortKey                bool          // WithSortKey may be used
	TTL                    bool          // records carry a TTL attribute
	LeaseStep              time.Duration // leases are rounded up to a multiple of this step
}

// all returns every layout with its defaults, in the order of Names.
func all() []Layout {
	return []Layout{Native{}, AWSLabs{}, Dynamolock{}, PythonDynamoDBLock{}, DynamoDLM{}, DyndbMutex{}}
}

// Names returns the names that Parse accepts.
func Names() []string {
	var names []string
	for _, l := range all() {
		names = append(names, l.Name())
	}
	return names
}

// Parse returns the layout with the given name, with its defaults.
func Parse(name string) (Layout, error) {
	for _, l := range all() {
		if l.Name() == name {
			return l, nil
		}
	}
	return nil, fmt.Errorf("layout: unknown layout %q: use one of %s", name, strings.Join(Names(), ", "))
}
