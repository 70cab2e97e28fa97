package observed

import (
	"container/list"
	"sync"
	"time"

	"github.com/leasehold-go/leasehold/internal/decide"
)

// Version is a version of a record, and when it was first observed.
type Version struct {
	ID      string
	Grant   string         // identifies the grant: renewals do not change it
	Since   decide.Instant // when it was observed first
	Granted time.Duration  // when its grant was, monotonic
}

// Versions are what one client has observed: the last version of each key. They are
// safe for concurrent use.
type Versions[K comparable] struct {
	most int // of keys that nobody watches

	mu       sync.Mutex
	byKey    map[K]*entry[K]
	idle     *list.List // of the entries that nobody watches, newest first
	watchers map[K]int  // of each key
}

// entry does not change, but for idle.
type entry[K comparable] struct {
	key K
	Version
	idle *list.Element // its place in Versions.idle; nil: it is watched
}

// New returns Versions that remember at most that many keys that nobody watches.
func New[K comparable](most int) *Versions[K] {
	return &Versions[K]{most: most, byKey: map[K]*entry[K]{}, idle: list.New(), watchers: map[K]int{}}
}

// Watch keeps what is known of a key, now or later, until Unwatch was called as often.
func (v *Versions[K]) Watch(key K) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.watchers[key]++
	if e := v.byKey[key]; e != nil && e.idle != nil {
		v.idle.Remove(e.idle)
		e.idle = nil
	}
}

// Unwatch ends one Watch.
func (v *Versions[K]) Unwatch(key K) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.watchers[key]--
	if v.watchers[key] > 0 {
		return
	}
	delete(v.watchers, key)
	if e := v.byKey[key]; e != nil {
		v.rest(e)
	}
}

// Note records the version that a reply has shown at o.Since, and returns it with the
// time when it was first observed.
func (v *Versions[K]) Note(key K, o Version) Version {
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
	}
	v.put(key, o)
	return o
}

// Forget drops what is known of a key that is free, or whose record is gone.
func (v *Versions[K]) Forget(key K) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if e := v.byKey[key]; e != nil {
		v.remove(e)
	}
}

// put stores o as the newest version. v.mu is held.
func (v *Versions[K]) put(key K, o Version) {
	if before := v.byKey[key]; before != nil {
		v.remove(before)
	}
	e := &entry[K]{key: key, Version: o}
	v.byKey[key] = e
	if v.watchers[key] == 0 {
		v.rest(e)
	}
}

// rest makes e the newest of the entries that nobody watches. If these are too many,
// it forgets the oldest. v.mu is held.
func (v *Versions[K]) rest(e *entry[K]) {
	e.idle = v.idle.PushFront(e)
	if v.idle.Len() > v.most {
		v.remove(v.idle.Back().Value.(*entry[K]))
	}
}

// remove forgets e. v.mu is held.
func (v *Versions[K]) remove(e *entry[K]) {
	delete(v.byKey, e.key)
	if e.idle != nil {
		v.idle.Remove(e.idle)
	}
}

// Watcher watches a changing set of keys. It is for one goroutine.
type Watcher[K comparable] struct {
	Of   *Versions[K]
	keys []K
}

// Only watches these keys, and no longer the keys of earlier calls.
func (w *Watcher[K]) Only(keys ...K) {
	before := w.keys
	w.keys = keys
	for _, key := range keys {
		w.Of.Watch(key)
	}
	for _, key := range before {
		w.Of.Unwatch(key)
	}
}
