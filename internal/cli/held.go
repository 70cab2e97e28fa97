package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws/arn"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/cli/misuse"
	"github.com/leasehold-go/leasehold/internal/cli/store"
	"github.com/leasehold-go/leasehold/internal/cli/wording"
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
	Token   int64  `json:"token,omitempty"`
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
	return last.Store == file && last.Table == table
}

// outerRuns returns what outer runs hold in tables of this name that matches.
func (a *app) outerRuns(s *store.Store, matches func(leasehold.Key) bool) []heldKey {
	return slices.DeleteFunc(heldByOuterRuns(a.Env), func(h heldKey) bool {
		return tableName(h.Table) != tableName(s.Table) || !matches(leasehold.Key{Partition: h.Key, Sort: h.SortKey})
	})
}

// tableName is a table's name, of which its ARN may have been given.
func tableName(table string) string {
	if id, err := arn.Parse(table); err == nil {
		return strings.TrimPrefix(id.Resource, "table/")
	}
	return table
}

// isIn reports whether a key is held in s: the same file, or the same place in
// AWS.
func (h heldKey) isIn(s *store.Store) bool {
	if h.Store == s.Place() || s.File == "" {
		return h.Store == s.Place()
	}
	there, err := os.Stat(h.Store)
	here, failed := os.Stat(s.File)
	return err == nil && failed == nil && os.SameFile(here, there)
}

// refuseNested refuses to wait for a lock that an outer run holds: the outer run
// waits for this process to end. It may have ended itself, though, and have left
// this process running.
func (a *app) refuseNested(ctx context.Context, s *store.Store, key, sortKey string, nonblock bool) error {
	wanted := store.CompleteKey(s.Layout, leasehold.Key{Partition: key, Sort: sortKey})
	outer := a.outerRuns(s, func(held leasehold.Key) bool { return held == wanted })
	if len(outer) > 0 && a.stillHeld(ctx, s, wanted, outer) {
		if nonblock {
			return nestedError(key)
		}
		return nestedWait(key)
	}
	return nil
}

// stillHeld reports whether one of the outer runs holds key in s. Its token says
// so, whatever the names of the table and of its place; where there is none, the
// names must do.
func (a *app) stillHeld(ctx context.Context, s *store.Store, key leasehold.Key, outer []heldKey) bool {
	held := slices.ContainsFunc(outer, func(h heldKey) bool { return h.isIn(s) })
	_ = withLocks(ctx, s, func(ctx context.Context, locks *leasehold.Client) error {
		r, err := locks.Get(ctx, key.Partition, withSortKey(key)...)
		switch {
		case errors.Is(err, leasehold.ErrNotFound), err == nil && r.Released:
			held = false
		case err == nil && r.Token != 0:
			held = slices.ContainsFunc(outer, func(h heldKey) bool { return h.Token == r.Token })
		}
		return nil
	})
	return held
}

// refuseNestedPermit is refuseNested for permits. A process that runs under one
// permit must not wait for another: if all holders did that, none would ever
// get one. It may try.
func (a *app) refuseNestedPermit(s *store.Store, key string) error {
	outer := a.outerRuns(s, func(held leasehold.Key) bool { return held.Partition == key })
	if slices.ContainsFunc(outer, func(h heldKey) bool { return h.isIn(s) }) {
		return nestedWait(key)
	}
	return nil
}

// nestedWait refuses to wait for a key that an outer run holds.
func nestedWait(key string) error {
	return misuse.Errorf("%s is held by the leasehold run that started this command: waiting for it would never end", wording.Name(key))
}

// nestedError says that an outer run holds the key. To a call that does not wait that is
// an answer like any other: held.
type nestedError string

func (key nestedError) Error() string {
	return fmt.Sprintf("%s is held by the leasehold run that started this command", wording.Name(string(key)))
}

func (nestedError) Is(target error) bool { return target == leasehold.ErrHeld }

// heldBegins returns how LEASEHOLD_HELD begins for CMD, and for every CMD of runs
// below it. Nothing else begins so: it has the token.
func heldBegins(env []string) string {
	for _, kv := range env {
		if value, is := strings.CutPrefix(kv, heldVariable+"="); is && strings.HasSuffix(value, "}]") {
			return strings.TrimSuffix(value, "]")
		}
	}
	return ""
}

// withoutNested refuses to wait for a lock that an outer run holds. With --any
// such keys are left out, unless none would be left.
func (a *app) withoutNested(ctx context.Context, s *store.Store, keys []string, f *runFlags) ([]string, error) {
	var nested error
	free := slices.DeleteFunc(slices.Clone(keys), func(key string) bool {
		err := a.refuseNested(ctx, s, key, f.sortKey, f.nonblock)
		if nested == nil {
			nested = err
		}
		return err != nil
	})
	if nested != nil && (!f.several.any || len(free) == 0) {
		return nil, nested
	}
	return free, nil
}

// heldValue returns the value of LEASEHOLD_HELD for a CMD.
func (a *app) heldValue(s *store.Store, h hold) string {
	held := heldByOuterRuns(a.Env)
	for _, lock := range h.locks {
		key := heldKey{Key: h.name, SortKey: lock.Key().Sort, Table: s.Table, Store: s.Place(), Token: lock.Token()}
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
