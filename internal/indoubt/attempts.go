// Package indoubt remembers write attempts that were abandoned before their outcome was
// known. DynamoDB may have applied such an attempt, or may apply it later, but no call waits
// for the outcome any longer.
//
// The package stores only the version of an attempt, and the attempt's key or grant. The package
// sends no requests: other packages resolve the attempts and undo their effects. The package
// reads no clock: the caller passes the time to each function that needs it.
//
// Has, Any and Settle take the same time however many attempts are remembered.
package indoubt

import (
	"container/list"
	"sync"
	"time"

	"github.com/leasehold-go/leasehold/internal/durations"
)

// kept is how long an attempt is remembered. Networks do not delay a request for that long. An
// attempt that is applied later blocks its key for one lease. A clock that stops while the machine
// is suspended lengthens the time, which is harmless.
const kept = 15 * time.Minute

// most is the largest number of attempts that are remembered. If there are more, the client
// forgets the oldest. If DynamoDB applies a forgotten attempt later, the attempt blocks its
// key for one lease.
const most = 100_000

// Attempts contains the unresolved attempts of one client, grouped by the key that they acquire, or
// by the id of the grant that they resume. The zero Attempts is ready for use. It is safe for
// concurrent use. Times are readings of a monotonic clock.
type Attempts[K comparable] struct {
	mu        sync.Mutex
	byAge     list.List                      // elements are attempt[K], oldest first
	byVersion map[K]map[string]*list.Element // the elements of byAge, by group and version
}

type attempt[K comparable] struct {
	of      K
	version string
	until   time.Duration // time until which the attempt is remembered
}

// Add remembers the attempts for k that have the given versions: as long as a network can delay a
// request, and for the time "lasts" more, as an attempt that was applied may be in the record for so
// long. If an attempt is already remembered, Add restarts the time for which it is remembered.
func (a *Attempts[K]) Add(k K, versions []string, now, lasts time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.expire(now)
	if a.byVersion == nil {
		a.byVersion = map[K]map[string]*list.Element{}
	}
	for _, v := range versions {
		a.remove(k, v)
		if a.byVersion[k] == nil {
			a.byVersion[k] = map[string]*list.Element{}
		}
		a.byVersion[k][v] = a.byAge.PushBack(attempt[K]{k, v, durations.Sum(durations.Sum(now, kept), lasts)})
	}
	for a.byAge.Len() > most {
		a.removeOldest()
	}
}

// Of returns the versions of the attempts that are remembered for k, oldest first. It is slow if
// many attempts are remembered, because it searches the attempts for all keys.
func (a *Attempts[K]) Of(k K, now time.Duration) (versions []string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.expire(now)
	for e := a.byAge.Front(); e != nil; e = e.Next() {
		if tried := e.Value.(attempt[K]); tried.of == k {
			versions = append(versions, tried.version)
		}
	}
	return versions
}

// Has reports whether an attempt with this version is remembered for k.
func (a *Attempts[K]) Has(k K, version string, now time.Duration) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.expire(now)
	_, ok := a.byVersion[k][version]
	return ok
}

// Any reports whether any attempt is remembered for k.
func (a *Attempts[K]) Any(k K, now time.Duration) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.expire(now)
	return len(a.byVersion[k]) > 0
}

// Restart restarts the time for which the attempts for k are remembered. From then on, all of them
// are equally old.
func (a *Attempts[K]) Restart(k K, now time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for version, e := range a.byVersion[k] {
		e.Value = attempt[K]{k, version, durations.Sum(now, kept)}
		a.byAge.MoveToBack(e)
	}
}

// Settle forgets an attempt for k, because its outcome is known.
func (a *Attempts[K]) Settle(k K, version string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.remove(k, version)
}

// expire forgets attempts that are too old to be applied or to be in a record. It stops at the first
// that is not, so it may forget a later one too late, which is harmless. The caller must hold a.mu.
func (a *Attempts[K]) expire(now time.Duration) {
	for e := a.byAge.Front(); e != nil && now > e.Value.(attempt[K]).until; e = a.byAge.Front() {
		a.removeOldest()
	}
}

// removeOldest forgets the attempt that was added longest ago. The caller must hold a.mu.
func (a *Attempts[K]) removeOldest() {
	oldest := a.byAge.Front().Value.(attempt[K])
	a.remove(oldest.of, oldest.version)
}

// remove forgets one attempt, if it is remembered. The caller must hold a.mu.
func (a *Attempts[K]) remove(k K, version string) {
	e, ok := a.byVersion[k][version]
	if !ok {
		return
	}
	a.byAge.Remove(e)
	delete(a.byVersion[k], version)
	if len(a.byVersion[k]) == 0 {
		delete(a.byVersion, k)
	}
}
