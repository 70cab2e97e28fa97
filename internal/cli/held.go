package cli

import (
	"encoding/json"
	"slices"

	"github.com/leasehold-go/leasehold"
)

// heldVariable names every key that is held above CMD, as JSON: of a run under
// another run LEASEHOLD_KEY tells the last one only.
const heldVariable = "LEASEHOLD_HELD"

// heldKey is a key that is held by a leasehold run.
type heldKey struct {
	Key     string `json:"key"`
	SortKey string `json:"sortKey,omitempty"`
	Table   string `json:"table"`
	Store   string `json:"store"` // as in store.place
}

// heldAbove are the keys held by the runs that this process runs under, the
// last granted at the end.
func heldAbove(env Env) []heldKey {
	var held []heldKey
	if json.Unmarshal([]byte(env.get(heldVariable)), &held) != nil {
		return nil // it is ours to write: whatever else it says is nothing of ours
	}
	return held
}

// setByRun reports whether table and file are what the run above has set for
// its CMD.
func setByRun(env Env, table, file string) bool {
	held := heldAbove(env)
	if len(held) == 0 {
		return false
	}
	last := held[len(held)-1]
	if table == "" {
		table = defaultTable
	}
	return last.Store == file && last.Table == table
}

// isAbove reports whether one of the keys that are held above is in s and meant.
func (a *app) isAbove(s *store, meant func(leasehold.Key) bool) bool {
	return slices.ContainsFunc(heldAbove(a.Env), func(h heldKey) bool {
		return h.Table == s.table && h.Store == s.place() && meant(leasehold.Key{Partition: h.Key, Sort: h.SortKey})
	})
}

// refuseNested refuses to wait for a lock that this very process runs under.
func (a *app) refuseNested(s *store, key, sortKey string) error {
	wanted := completeKey(s.layout, leasehold.Key{Partition: key, Sort: sortKey})
	if a.isAbove(s, func(held leasehold.Key) bool { return held == wanted }) {
		return nestedError(key)
	}
	return nil
}

// refuseNestedPermit is refuseNested for a permit: who runs under one does not
// wait for another, as all of them might.
func (a *app) refuseNestedPermit(s *store, key string) error {
	if a.isAbove(s, func(held leasehold.Key) bool { return held.Partition == key }) {
		return nestedError(key)
	}
	return nil
}

func nestedError(key string) error {
	return usagef("%s is held by the leasehold run that this runs under: waiting for it would never end", printable(key))
}

// holding is the value of LEASEHOLD_HELD for CMD under one more key.
func (a *app) holding(s *store, key, sortKey string) string {
	held := append(heldAbove(a.Env), heldKey{Key: key, SortKey: sortKey, Table: s.table, Store: s.place()})
	b, err := json.Marshal(held)
	if err != nil {
		panic(err) // strings alone
	}
	return string(b)
}
