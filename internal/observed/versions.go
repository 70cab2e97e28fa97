package observed

import (
	"container/list"
	"sync"
	"time"

	"github.com/leasehold-go/leasehold/internal/decide"
	"github.com/leasehold-go/leasehold/internal/protocol"
)

// Version is a version of a record, and when it was first observed.
type Version struct {
	ID      string
	Grant   string         // identifies the grant (liveness.GrantOf); renewals do not change it
	Since   decide.Instant // when this version was first observed
	Granted time.Duration  // monotonic time when the grant was first observed
}

// Versions are the observations of one client: the last version of each key. They are safe
// for concurrent use.
type Versions struct {
	most int // maximum number of keys that are not pinned

	mu    sync.Mutex
	byKey map[protocol.Key]*entry
	idle  *list.List           // entries that are not pinned, newest first
	pins  map[protocol.Key]int // number of pins by key
}

// entry is one observation. Only its field idle changes.
type entry struct {
	key protocol.Key
	Version
	idle *list.Element // element of Versions.idle; nil while the key is pinned
}

// New returns Versions that remember, besides the pinned keys, at most the given number of
// keys.
func New(most int) *Versions {
	return &Versions{most: most, byKey: map[protocol.Key]*entry{}, idle: list.New(), pins: map[protocol.Key]int{}}
}

// Pin keeps the version of a key, whether it is known now or only later, until Unpin has
// been called as often as Pin.
func (v *Versions) Pin(key protocol.Key) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.pins[key]++
	if e := v.byKey[key]; e != nil && e.idle != nil {
		v.idle.Remove(e.idle)
		e.idle = nil
	}
}

// Unpin undoes one Pin.
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

// Note records the version that a reply has shown at o.Since, and returns it with the
// time when it was first observed.
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

// Forget drops the version of a key that is free, or whose record is gone.
func (v *Versions) Forget(key protocol.Key) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if e := v.byKey[key]; e != nil {
		v.remove(e)
	}
}

// rest makes e the newest of the entries that are not pinned. If these are too many, it
// forgets the oldest. The caller must hold v.mu.
func (v *Versions) rest(e *entry) {
	e.idle = v.idle.PushFront(e)
	if v.idle.Len() > v.most {
		v.remove(v.idle.Back().Value.(*entry))
	}
}

// remove forgets e. The caller must hold v.mu.
func (v *Versions) remove(e *entry) {
	delete(v.byKey, e.key)
	if e.idle != nil {
		v.idle.Remove(e.idle)
	}
}
