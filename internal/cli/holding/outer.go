package holding

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws/arn"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/cli/failure"
	"github.com/leasehold-go/leasehold/internal/cli/misuse"
	"github.com/leasehold-go/leasehold/internal/cli/wording"
	"github.com/leasehold-go/leasehold/internal/holders"
)

// heldVariable holds the keys of all runs around CMD, as JSON. LEASEHOLD_KEY
// names only the innermost.
const heldVariable = "LEASEHOLD_HELD"

// outerKey is a key held by a leasehold run or elect that this process runs under.
type outerKey struct {
	Key     string `json:"key"`
	SortKey string `json:"sortKey,omitempty"`
	Table   string `json:"table"`
	Store   string `json:"store"` // as in store.place
	Token   int64  `json:"token,omitempty"`
}

// outerKeys returns the keys of the runs that this process runs under, the innermost last.
func outerKeys(lookup func(string) (string, bool)) []outerKey {
	var held []outerKey
	value, _ := lookup(heldVariable)
	if json.Unmarshal([]byte(value), &held) != nil {
		return nil // not written by leasehold
	}
	return held
}

// SetByRun reports whether table and file are those that the innermost run has
// set for its CMD.
func SetByRun(lookup func(string) (string, bool), table, file string) bool {
	held := outerKeys(lookup)
	if len(held) == 0 {
		return false
	}
	last := held[len(held)-1]
	return last.Store == file && last.Table == table
}

// tableName is a table's name, of which its ARN may have been given.
func tableName(table string) string {
	if id, err := arn.Parse(table); err == nil {
		return strings.TrimPrefix(id.Resource, "table/")
	}
	return table
}

// refuseNested refuses to wait for what an outer run holds: the outer run waits for this
// process to end. Of several keys of which one is enough such are left out, unless none
// would be left.
//
// A process that runs under one permit must not wait for another: if all holders did
// that, none would ever get one. It may try.
func (s *Seeker) refuseNested(ctx context.Context) error {
	w := &s.wanted
	if w.Counted && w.SortKey == "" {
		outer := s.outerRuns(func(held leasehold.Key) bool { return held.Partition == w.Keys[0] })
		if !w.NoWait && slices.ContainsFunc(outer, s.isHere) {
			return nestedWait(w.Keys[0])
		}
		return nil
	}
	var nested string
	free := slices.DeleteFunc(slices.Clone(w.Keys), func(name string) bool {
		held := s.heldByOuter(ctx, w.key(s.store, name))
		if held {
			nested = cmp.Or(nested, name)
		}
		return held
	})
	switch {
	case nested == "":
		return nil
	case w.Any && len(free) > 0:
		w.Keys = free
		return nil
	case w.NoWait:
		return nestedTry(nested)
	}
	return nestedWait(nested)
}

// outerRuns returns what outer runs hold in tables of this name that matches.
func (s *Seeker) outerRuns(matches func(leasehold.Key) bool) []outerKey {
	return slices.DeleteFunc(outerKeys(s.user.Settings.LookupEnv), func(h outerKey) bool {
		return tableName(h.Table) != tableName(s.store.Table) || !matches(leasehold.Key{Partition: h.Key, Sort: h.SortKey})
	})
}

// isHere reports whether a key is held in this store: the same file, or the same place
// in AWS.
func (s *Seeker) isHere(h outerKey) bool {
	if h.Store == s.store.Place() || s.store.File == "" {
		return h.Store == s.store.Place()
	}
	there, err := os.Stat(h.Store)
	here, failed := os.Stat(s.store.File)
	return err == nil && failed == nil && os.SameFile(here, there)
}

// heldByOuter reports whether an outer run holds key: it may have ended itself, and have
// left this process running. Its token says so, whatever the names of the table and of
// its place; where there is none, the names must do.
func (s *Seeker) heldByOuter(ctx context.Context, key leasehold.Key) bool {
	outer := s.outerRuns(func(held leasehold.Key) bool { return held == key })
	if len(outer) == 0 {
		return false
	}
	ctx, cancel := s.signals.Bind(ctx)
	defer cancel()
	r, err := holders.Get(ctx, s.locks, key)
	switch {
	case errors.Is(err, leasehold.ErrNotFound), err == nil && r.Released:
		return false
	case err == nil && r.Token != 0:
		return slices.ContainsFunc(outer, func(h outerKey) bool { return h.Token == r.Token })
	}
	return slices.ContainsFunc(outer, s.isHere)
}

// nestedWait refuses to wait for a key that an outer run holds.
func nestedWait(key string) error {
	return misuse.Errorf("%s is held by the leasehold run that started this command: waiting for it would never end", wording.Name(key))
}

// nestedTry says that an outer run holds the key. To a call that does not wait that is an
// answer like any other: held.
func nestedTry(key string) error {
	return failure.Like(leasehold.ErrHeld, fmt.Sprintf("%s is held by the leasehold run that started this command", wording.Name(key)))
}

// outerValue returns the value of LEASEHOLD_HELD for CMD.
func (h *Hold) outerValue() string {
	s := h.seeker
	held := outerKeys(s.user.Settings.LookupEnv)
	for _, lock := range h.locks {
		key := outerKey{Key: h.name, SortKey: lock.Key().Sort, Table: s.store.Table, Store: s.store.Place(), Token: lock.Token()}
		if len(h.locks) > 1 {
			key.Key = lock.Key().Partition
		}
		held = append(held, key)
	}
	b, err := json.Marshal(held)
	if err != nil {
		panic(err) // cannot happen: only strings
	}
	return string(b)
}

// outerBegins returns how LEASEHOLD_HELD begins for CMD, and for every CMD of runs below
// it. Nothing else begins so: it has the token.
func outerBegins(value string) string { return strings.TrimSuffix(value, "]") }
