package holding

import (
	"time"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/cli/store"
	"github.com/leasehold-go/leasehold/semaphore"
)

// Wanted is what is to be held: the lock of a key, unless it says otherwise.
type Wanted struct {
	Keys    []string // at least one, each once
	SortKey string   // of each of them; empty: the table has none
	Any     bool     // one of them is enough
	Shared  bool     // one lease for all of them
	InLine  bool     // wait in the record's line

	Permits int  // how many owners may hold the key at a time; 0 or 1: it is a lock
	Counted bool // the number was named: with 1, the key may be a semaphore all the same

	Leads bool   // leadership under the key
	Value string // of the leader, for observers

	NoWait   bool          // for a holder that lives; one that looks dead is watched for its lease
	Wait     time.Duration // 0: forever
	Lease    time.Duration
	Owner    string                  // empty: the library's default
	Data     leasehold.RecordOption  // nil: none
	Once     leasehold.AcquireOption // the work is done once, for a label or in a period; nil: as often as the key is granted
	Detached bool                    // the grant outlives the command
}

// keys are those that are to be acquired, or those of all permits, of which one is.
func (w *Wanted) keys(s *store.Store, locks *leasehold.Client) ([]leasehold.Key, error) {
	if w.Permits <= 1 {
		var keys []leasehold.Key
		for _, name := range w.Keys {
			keys = append(keys, w.key(s, name))
		}
		return keys, nil
	}
	counted, err := semaphore.New(locks, w.Keys[0], w.Permits)
	if err != nil {
		return nil, err
	}
	return counted.Keys(), nil
}

func (w *Wanted) key(s *store.Store, name string) leasehold.Key {
	return store.KeyOf(s.Proto, name, w.SortKey)
}

// options are what is asked of each key.
func (w *Wanted) options() []leasehold.AcquireOption {
	opts := []leasehold.AcquireOption{leasehold.WithSortKey(w.SortKey)}
	if w.Detached {
		opts = append(opts, leasehold.WithoutRenewal())
	}
	if w.NoWait {
		opts = append(opts, leasehold.NoWaitUnlessDead())
	}
	if w.Once != nil {
		opts = append(opts, w.Once)
	}
	if w.Data != nil {
		opts = append(opts, w.Data)
	}
	return opts
}
