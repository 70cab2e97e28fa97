// Package observed stores the last version of each record that a client has read, and the
// time when the client first read that version. A holder is dead once the version of its
// record has not changed for the duration of its lease.
//
// A waiter pins the key that it polls. The number of keys that are not pinned is limited: if there
// are too many, the package forgets the oldest of them. If the package forgot a polled key between
// two polls, the lease would count from the next poll again, and the waiter might never find the
// holder dead.
//
// The package compares the versions and the grants of records, and no other fields. It
// reads no clock. It does not decide which holders are dead.
package observed

import (
	"container/list"
	"sync"
	"time"

	"github.com/leasehold-go/leasehold/internal/decide"
	"github.com/leasehold-go/leasehold/internal/protocol"
)

// Version is a version of a record, with the time when the client first read it.
type Version struct {
	ID      string
	Grant   string         // identifies the grant in the record; the result of liveness.GrantOf; renewals do not change it
	Since   decide.Instant // time when the client first read this version
	Granted time.Duration  // monotonic time when the client first read this grant
}

// Versions contains the last version of each key's record that one client has read. It is
// safe for concurrent use.
type Versions struct {
	most int // maximum number of keys that are not pinned

	mu    sync.Mutex
	byKey map[protocol.Key]*entry
	idle  *list.List           // entries of keys that are not pinned, newest first
	pins  map[protocol.Key]int // by key, the number of calls of Pin minus the number of calls of Unpin
}

// entry is the last version of one key. After its creation, only the field "idle" changes.
type entry struct {
	key protocol.Key
	Version
	idle *list.Element // element of this entry in Versions.idle; nil while the key is pinned
}

// New returns an empty Versions. The parameter "most" is the maximum number of keys that are not
// pinned.
func New(most int) *Versions {
	return &Versions{most: most, byKey: map[protocol.Key]*entry{}, idle: list.New(), pins: map[protocol.Key]int{}}
}

// Pin makes v keep the version of key until Unpin has been called as often as Pin. The key may be
// pinned before Note records its first version.
func (v *Versions) Pin(key protocol.Key) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.pins[key]++
	if e := v.byKey[key]; e != nil && e.idle != nil {
		v.idle.Remove(e.idle)
		e.idle = nil
	}
}

// Unpin undoes one call of Pin for key.
func (v *Versions) Unpin(key protocol.Key) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.pins[key]--
	if v.pins[key] > 0 {
		return
	}
	delete(v.pins, key)
	if e := v.byKey[key]; e != nil {
		v.rest(e)
	}
}

// Note records that a reply has shown the version o of a key's record. The caller sets o.Since to
// the time of the read. Note returns o with o.Since and o.Granted set to the times when the client
// first read this version and this grant.
func (v *Versions) Note(key protocol.Key, o Version) Version {
	o.Granted = o.Since.Mono
	v.mu.Lock()
	defer v.mu.Unlock()
	if before := v.byKey[key]; before != nil {
		if before.ID == o.ID {
			o.Since = before.Since
		}
		if before.Grant == o.Grant || before.ID == o.ID {
			o.Granted = before.Granted
		}
		v.remove(before)
	}
	e := &entry{key: key, Version: o}
	v.byKey[key] = e
	if v.pins[key] == 0 {
		v.rest(e)
	}
	return o
}

// Forget removes the version of key. It must be called if the key is free, or if the table no
// longer contains the record.
func (v *Versions) Forget(key protocol.Key) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if e := v.byKey[key]; e != nil {
		v.remove(e)
	}
}

// rest puts e at the front of v.idle, the list of entries whose keys are not pinned. If the list
// then has more than v.most entries, rest removes the oldest. The caller must hold v.mu.
func (v *Versions) rest(e *entry) {
	e.idle = v.idle.PushFront(e)
	if v.idle.Len() > v.most {
		v.remove(v.idle.Back().Value.(*entry))
	}
}

// remove removes e from v. The caller must hold v.mu.
func (v *Versions) remove(e *entry) {
	delete(v.byKey, e.key)
	if e.idle != nil {
		v.idle.Remove(e.idle)
	}
}
