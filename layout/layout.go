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

// Native is leasehold's own layout, for a table to which only leasehold writes. It has the
// attributes of the awslabs Java client, and also a token, a grant id, the time of the
// grant, and a TTL.
type Native struct {
	PartitionKey string // attribute name; default "key"
	SortKey      string // name of the table's sort key attribute; default: no sort key
	SortValue    string // sort key for calls without WithSortKey; default: such a call is an error
	TTL          string // attribute name; default "expiresAt"; "-" for no TTL
}

// Name returns "native".
func (Native) Name() string { return "native" }

// Capabilities returns the features that this layout supports: all of them.
func (n Native) Capabilities() Capabilities {
	return Capabilities{
		Expiry:                 Observed,
		EveryGrantFenced:       true,
		FencingSurvivesRelease: true,
		Data:                   true,
		Attributes:             true,
		KeepOnRelease:          true,
		DeleteOnRelease:        true,
		SortKey:                n.SortKey != "",
		TTL:                    n.TTL != "-",
		LeaseStep:              time.Millisecond,
	}
}

func (Native) sealed() {}

// AWSLabs is the layout of awslabs/amazon-dynamodb-lock-client 1.x (Java). Java processes may share
// the table. The Java client creates no tokens. By default it writes whole items, and deletes them
// on release, which erases leasehold's token. Each grant by leasehold removes the attribute
// expiresAt, whichever client wrote it. Otherwise TTL could delete the record of a held lock:
// expiresAt is the TTL attribute of Native.
type AWSLabs struct {
	PartitionKey string // attribute name; default "key"
	SortKey      string // name of the table's sort key attribute; default: no sort key
	SortValue    string // sort key for calls without WithSortKey; default: such a call is an error

	// HoldThroughOutage lets a process keep a lock after its lease has expired, while DynamoDB
	// answers every request with a 5xx or throttling error. Java's withHoldLockOnServiceUnavailable
	// does the same. The price: another process may be granted the lock while this process still
	// uses it. This can happen if the outage affects only this process. It can also happen as the
	// outage ends: another process, which has watched the record all along, may be the first whose
	// request succeeds. Writes by Lock.Commit stay safe. Default false.
	HoldThroughOutage bool
}

// Name returns "awslabs".
func (AWSLabs) Name() string { return "awslabs" }

// Capabilities returns the features that this layout supports in a table that Java processes
// share.
func (a AWSLabs) Capabilities() Capabilities {
	return Capabilities{
		Expiry:          Observed,
		Data:            true,
		Attributes:      true,
		KeepOnRelease:   true,
		DeleteOnRelease: true,
		SortKey:         a.SortKey != "",
		LeaseStep:       time.Millisecond,
	}
}

func (AWSLabs) sealed() {}

// Dynamolock is the layout of cirello.io/dynamolock v2 and v5 (Go). Processes of that
// library may share the table. The layout is AWSLabs, but leases are stored as Go durations.
// A grant of dynamolock keeps leasehold's token in the record without using the token. A
// dynamolock client that deletes on release erases the token. As in AWSLabs, each grant by
// leasehold removes the attribute expiresAt, whichever client wrote it.
type Dynamolock struct {
	PartitionKey string // attribute name; default "key"
	SortKey      string // name of the table's sort key attribute; default: no sort key
	SortValue    string // sort key for calls without WithSortKey; dynamolock has one sort key for each client
}

// Name returns "dynamolock".
func (Dynamolock) Name() string { return "dynamolock" }

// Capabilities returns the features that this layout supports in a table that dynamolock
// processes share. AWSLabs supports the same features.
func (d Dynamolock) Capabilities() Capabilities { return AWSLabs{SortKey: d.SortKey}.Capabilities() }

func (Dynamolock) sealed() {}

// PythonDynamoDBLock is the layout of python_dynamodb_lock 0.9 and its forks. Processes of these
// libraries may share the table. A release deletes the record, and with it leasehold's token and
// the caller's attributes. A kept record would make Python clients wait until its lease expires.
type PythonDynamoDBLock struct {
	PartitionKey string // attribute name; default "lock_key"
	SortKey      string // attribute name; default "sort_key"
	SortValue    string // sort key for calls without WithSortKey; default "-"
	TTL          string // attribute name; default "expiry_time"
}

// Name returns "python-dynamodb-lock".
func (PythonDynamoDBLock) Name() string { return "python-dynamodb-lock" }

// Capabilities returns the features that this layout supports. Records have attributes, but
// no data, and a release deletes the record.
func (PythonDynamoDBLock) Capabilities() Capabilities {
	return Capabilities{
		Expiry:          Observed,
		Attributes:      true,
		DeleteOnRelease: true,
		SortKey:         true,
		TTL:             true,
		LeaseStep:       time.Second,
	}
}

func (PythonDynamoDBLock) sealed() {}

// DynamoDLM is the layout of dynamo-dlm 2.x or, with NoSlots, of dynamo-dlm 1.x. Processes
// of that library may share the table. Records have no owner. A release deletes the record,
// and with it leasehold's token.
//
// A dynamo-dlm client never renews, and decides by its own wall clock when a lock has expired.
// Therefore a leasehold client stops trusting its lock at expiry − MaxSkew − Config.Margin. It
// takes over the key of a dead holder at expiry + MaxSkew + one second.
type DynamoDLM struct {
	NoSlots bool          // use the layout of dynamo-dlm 1.x, whose table has no sort key
	MaxSkew time.Duration // greatest difference between the clocks of two machines that use the table; default 2 s
}

// Name returns "dynamo-dlm".
func (DynamoDLM) Name() string { return "dynamo-dlm" }

// Capabilities returns the features that this layout supports. Records have neither data nor
// attributes, and a release deletes the record.
func (l DynamoDLM) Capabilities() Capabilities {
	return Capabilities{
		Expiry:          WallClock,
		DeleteOnRelease: true,
		SortKey:         !l.NoSlots,
		LeaseStep:       time.Second,
	}
}

func (DynamoDLM) sealed() {}

// DyndbMutex is the layout of dyndb-mutex 0.x. Processes of that library may share the
// table. Caution: dyndb-mutex treats every error of DynamoDB as an acquired lock. While a
// dyndb-mutex client gets errors, for example throttling, it works as if it held every lock.
// Grants and releases of dyndb-mutex write whole items, and so erase leasehold's token.
//
// A dyndb-mutex client never renews, and decides by its own wall clock when a lock has expired.
// Therefore a leasehold client stops trusting its lock at expiry − MaxSkew − Config.Margin. It
// takes over the key of a dead holder at expiry + MaxSkew + one millisecond.
type DyndbMutex struct {
	MaxSkew time.Duration // greatest difference between the clocks of two machines that use the table; default 2 s
}

// Name returns "dyndb-mutex".
func (DyndbMutex) Name() string { return "dyndb-mutex" }

// Capabilities returns the features that this layout supports. Records have neither data nor
// attributes. A release may keep or delete the record.
func (DyndbMutex) Capabilities() Capabilities {
	return Capabilities{
		Expiry:          WallClock,
		KeepOnRelease:   true,
		DeleteOnRelease: true,
		TTL:             true,
		LeaseStep:       time.Millisecond,
	}
}

func (DyndbMutex) sealed() {}
