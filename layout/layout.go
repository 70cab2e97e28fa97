// Package layout defines how a lock record is stored: in leasehold's own layout, or in the
// layout of one of the five libraries that leasehold can replace. Each layout is a struct. The
// zero value of the struct has the default settings of the layout's library.
package layout

import (
	"fmt"
	"strings"
	"time"
)

// Layout is the layout of a table's records. Only the structs of this package implement it.
type Layout interface {
	Name() string // name for Parse and for the option --layout of the leasehold command
	Capabilities() Capabilities

	sealed()
}

// Expiry is the way in which a waiter finds out that a holder is dead.
type Expiry string

// Values of Expiry.
const (
	Observed  Expiry = "observed"   // a holder is dead if its record's version has not changed for the length of its lease, by the waiter's clock
	WallClock Expiry = "wall clock" // a holder is dead once the waiter's clock is MaxSkew past the expiry time in the record
)

// Capabilities lists the features of a layout. If a caller uses a feature that the layout
// does not have, the call fails with an error that matches errors.ErrUnsupported, and sends
// no request.
type Capabilities struct {
	Expiry                 Expiry
	EveryGrantFenced       bool // true if every grant has a token; if false, grants by the other library have none
	FencingSurvivesRelease bool // true if released records keep the token; if false, a release may delete the token, and the next token is computed from the clock
	Data                   bool
	Attributes             bool
	KeepOnRelease          bool
	DeleteOnRelease        bool
	SortKey                bool          // calls may use WithSortKey
	TTL                    bool          // records contain an attribute for DynamoDB's TTL
	LeaseStep              time.Duration // unit of stored leases; a lease is rounded up to a multiple of it
}

// The function "all" returns every layout with its defaults. Names returns the layouts' names in
// this order.
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

// Parse returns the layout with the given name. Its fields have their default values.
func Parse(name string) (Layout, error) {
	for _, l := range all() {
		if l.Name() == name {
			return l, nil
		}
	}
	return nil, fmt.Errorf("layout: unknown layout %q: use one of %s", name, strings.Join(Names(), ", "))
}
