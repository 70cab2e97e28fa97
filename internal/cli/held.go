package cli

import (
	"encoding/json"
	"slices"

	"github.com/leasehold-go/leasehold"
)

// heldVariable holds the keys of all runs around CMD, as JSON. LEASEHOLD_KEY
// names only the innermost.
const heldVariable = "LEASEHOLD_HELD"

// heldKey is a key held by a leasehold run or elect.
type heldKey struct {
	Key     string `json:"key"`
	SortKey string `json:"sortKey,omitempty"`
	Table   string `json:"table"`
	Store   string `json:"store"` // as in store.place
}

// heldByOuterRuns returns the keys of the runs that this process runs under, the
// innermost last.
func heldByOuterRuns(env Env) []heldKey {
	var held []heldKey
	if json.Unmarshal([]byte(env.get(heldVariable)), &held) != nil {
		return nil // not written by leasehold
	}
	return held
}

// setByRun reports whether table and file are those that the innermost run has
// set for its CMD.
func setByRun(env Env, table, file string) bool {
	held := heldByOuterRuns(env)
	if len(held) == 0 {
		return false
	}
	last := held[len(held)-1]
	if table == "" {
		table = defaultTable
	}
	return last.Store == file && last.Table == table
}

// outerRunHolds reports whether an outer run holds a key in s that matches.
func (a *app) outerRunHolds(s *store, matches func(leasehold.Key) bool) bool {
	return slices.ContainsFunc(heldByOuterRuns(a.Env), func(h heldKey) bool {
		return h.Table == s.table && h.Store == s.place() && matches(leasehold.Key{Partition: h.Key, Sort: h.SortKey})
	})
}

// refuseNested refuses to wait for a lock that an outer run holds: the outer run
// waits for this process to end.
func (a *app) refuseNested(s *store, key, sortKey string) error {
	wanted := completeKey(s.layout, leasehold.Key{Partition: key, Sort: sortKey})
	if a.outerRunHolds(s, func(held leasehold.Key) bool { return held == wanted }) {
		return nestedError(key)
	}
	return nil
}

// refuseNestedPermit is refuseNested for permits. A process that runs under one
// permit must not wait for another: if all holders did that, none would ever
// get one.
func (a *app) refuseNestedPermit(s *store, key string) error {
	if a.outerRunHolds(s, func(held leasehold.Key) bool { return held.Partition == key }) {
		return nestedError(key)
	}
	return nil
}

func nestedError(key string) error {
	return usagef("%s is held by the leasehold run that started this command: waiting for it would never end", printable(key))
}

// heldValue returns the value of LEASEHOLD_HELD for a CMD that runs under key.
func (a *app) heldValue(s *store, key, sortKey string) string {
	held := append(heldByOuterRuns(a.Env), heldKey{Key: key, SortKey: sortKey, Table: s.table, Store: s.place()})
	b, err := json.Marshal(held)
	if err != nil {
		panic(err) // cannot happen: only strings
	}
	return string(b)
}
