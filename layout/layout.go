// Package layout defines how a lock record is stored: in leasehold's own layout,
// or in that of one of the five libraries it succeeds. Each layout is a struct.
// Its zero value has that library's defaults.
package layout

import (
	"fmt"
	"strings"
	"time"
)

// Layout is implemented by the structs of this package, and by no other type.
type Layout interface {
	Name() string // the value of the command's --layout
	Capabilities() Capabilities

	sealed()
}

// Expiry is the way in which a waiter finds out that a holder is dead.
type Expiry string

// Values of Expiry.
const (
	Observed  Expiry = "observed"   // the version has not changed for one lease, by the waiter's clock
	WallClock Expiry = "wall clock" // the expiry time in the record has passed, plus MaxSkew
)

// Capabilities lists the features of a layout. Using a feature that it does not have is an
// error that matches errors.ErrUnsupported. No request is sent then.
type Capabilities struct {
	Expiry                 Expiry
	EveryGrantFenced       bool // if false, grants of the other library have no token
	FencingSurvivesRelease bool // if false, a release may delete the token, and the next one starts from the clock
	Data                   bool
	Attributes             bool
	KeepOnRelease          bool
	DeleteOnRelease        bool
	SortKey                bool          // WithSortKey may be used
	TTL                    bool          // records carry a TTL attribute
	LeaseStep              time.Duration // leases are rounded up to it
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

// Parse returns the layout of that name with its defaults.
func Parse(name string) (Layout, error) {
	for _, l := range all() {
		if l.Name() == name {
			return l, nil
		}
	}
	return nil, fmt.Errorf("layout: unknown layout %q: use one of %s", name, strings.Join(Names(), ", "))
}
