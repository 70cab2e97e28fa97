package holding

import (
	"errors"
	"fmt"
	"sync"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/cli/failure"
	"github.com/leasehold-go/leasehold/internal/cli/wording"
)

// allHeld collects the holders of a key's permits, or of several keys of which one is
// enough, that are seen during a wait. It is safe for concurrent use.
type allHeld struct {
	text  string // says that all are held
	keys  []leasehold.Key
	mu    sync.Mutex
	owner map[leasehold.Key]string
}

// allHeld is nil if there is one holder to wait for, or if all keys are wanted.
func (w *Wanted) allHeld(keys []leasehold.Key) *allHeld {
	all := &allHeld{keys: keys, owner: map[leasehold.Key]string{}}
	switch {
	case w.Permits > 1:
		all.text = fmt.Sprintf("all %d permits of %s are held", len(keys), wording.Name(w.Keys[0]))
	case w.Any && len(keys) > 1:
		all.text = wording.Keys(keys) + " are held"
	default:
		return nil
	}
	return all
}

// add adds a holder, and reports whether each key was seen held.
func (a *allHeld) add(r leasehold.Record) (complete bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.owner[r.Key] = wording.Owner(r.Owner)
	return len(a.owner) >= len(a.keys)
}

// String says who holds them, in the order of their keys.
func (a *allHeld) String() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	var owners []string
	for _, key := range a.keys {
		if owner, ok := a.owner[key]; ok {
			owners = append(owners, owner)
		}
	}
	if len(owners) == 0 {
		return a.text
	}
	return a.text + ", by " + wording.FirstNames(owners)
}

// allHeldError says that none of them was granted.
type allHeldError struct {
	text string // names the holders
	err  error
}

func (e *allHeldError) Error() string {
	var waited *failure.WaitedError
	if errors.As(e.err, &waited) {
		return e.text + ": " + waited.Error()
	}
	return e.text
}

func (e *allHeldError) Unwrap() error { return e.err }
