package holding

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/cli/failure"
	"github.com/leasehold-go/leasehold/internal/cli/store"
	"github.com/leasehold-go/leasehold/internal/cli/wording"
	"github.com/leasehold-go/leasehold/internal/holders"
	"github.com/leasehold-go/leasehold/layout"
)

// heldVariable names the variable that contains the keys of all runs around CMD, as JSON.
// LEASEHOLD_KEY contains only the innermost key.
const heldVariable = "LEASEHOLD_HELD"

// outerKey is a key held by a leasehold run or elect that this process runs under.
type outerKey struct {
	Key     string `json:"key"`
	SortKey string `json:"sortKey,omitempty"`
	Table   string `json:"table"`
	Store   string `json:"store"` // the file, endpoint or Region, from store.Target.At
	Grant   string `json:"grant"`
}

// outerKeys returns the keys of the runs that this process runs under, the innermost last.
func outerKeys(lookup func(string) (string, bool)) []outerKey {
	var held []outerKey
	value, _ := lookup(heldVariable)
	if json.Unmarshal([]byte(value), &held) != nil {
		return nil // the value cannot be parsed, so leasehold did not write it
	}
	return held
}

// SetByRun reports whether table and file are the values that the innermost run has set for
// its CMD.
func SetByRun(lookup func(string) (string, bool), table, file string) bool {
	held := outerKeys(lookup)
	if len(held) == 0 {
		return false
	}
	last := held[len(held)-1]
	return last.Store == file && last.Table == table
}

// refuseNested refuses to wait for a key that an outer run holds. Such a wait could not
// succeed, because the outer run waits for this process to end. If one of several keys
// suffices, refuseNested removes the keys that outer runs hold, unless no key would remain.
//
// A process that runs under one permit must not wait for another permit: if all holders
// waited, no holder would ever get one. But the process may try to acquire one without
// waiting.
func (s *Seeker) refuseNested(ctx context.Context) error {
	w := &s.wanted
	if w.Permits > 0 {
		outer := s.outerRuns(s.store.Key(w.Keys[0], w.SortKey))
		if !w.NoWait && slices.ContainsFunc(outer, s.isHere) {
			return nestedWait(w.Keys[0])
		}
		return nil
	}
	var nested string
	free := slices.DeleteFunc(slices.Clone(w.Keys), func(name string) bool {
		held := s.heldByOuter(ctx, s.store.Key(name, w.SortKey))
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
		return failure.Like(leasehold.ErrHeld, fmt.Sprintf("%s is held by the leasehold run that started this command", wording.Name(nested)))
	}
	return nestedWait(nested)
}

// outerRuns returns the outer runs that hold this key, in any table.
func (s *Seeker) outerRuns(key leasehold.Key) []outerKey {
	return slices.DeleteFunc(outerKeys(s.user.Settings.LookupEnv), func(h outerKey) bool {
		return key != leasehold.Key{Partition: h.Key, Sort: h.SortKey}
	})
}

// isHere reports whether an outer run holds its key in this store. It compares the table
// and the store in LEASEHOLD_HELD.
func (s *Seeker) isHere(h outerKey) bool {
	return h.Table == s.store.Table && h.Store == s.store.At()
}

// heldByOuter reports whether an outer run still holds key. The run may have ended while
// this process continues. So heldByOuter reads the record, and compares its grant id with
// the run's grant id. This works whatever name the table has.
func (s *Seeker) heldByOuter(ctx context.Context, key leasehold.Key) bool {
	outer := s.outerRuns(key)
	if len(outer) == 0 {
		return false
	}
	ctx, cancel := s.signals.Bind(ctx)
	defer cancel()
	r, err := holders.Get(ctx, s.locks, key)
	if err != nil && !errors.Is(err, leasehold.ErrNotFound) {
		return slices.ContainsFunc(outer, s.isHere)
	}
	return err == nil && !r.Released && slices.ContainsFunc(outer, func(h outerKey) bool { return h.Grant == r.Grant })
}

// nestedWait returns the error of waiting for a key that an outer run holds.
func nestedWait(key string) error {
	return failure.Misusef("%s is held by the leasehold run that started this command: waiting for it would never end", wording.Name(key))
}

// outerValue returns the value of LEASEHOLD_HELD for CMD.
func (h *Hold) outerValue() string {
	s := h.seeker
	held := outerKeys(s.user.Settings.LookupEnv)
	for _, lock := range h.locks {
		key := outerKey{Key: h.name, SortKey: lock.Key().Sort, Table: s.store.Table, Store: s.store.At(), Grant: lock.Record().Grant}
		if len(h.locks) > 1 {
			key.Key = lock.Key().Partition
		}
		held = append(held, key)
	}
	b, err := json.Marshal(held)
	if err != nil {
		panic(err) // cannot happen, because the value contains only strings
	}
	return string(b)
}

// outerBegins returns a prefix of LEASEHOLD_HELD. CMD and the CMDs of all inner runs have
// this prefix in their environment. The prefix is unique, because it contains the id of the
// grant.
func outerBegins(value string) string { return strings.TrimSuffix(value, "]") }

// setForCMD lists the variables that this run sets for CMD, which does not inherit their
// values from this process.
var setForCMD = append([]string{
	"LEASEHOLD_KEY", "LEASEHOLD_SORT_KEY", "LEASEHOLD_OWNER", "LEASEHOLD_TOKEN", "LEASEHOLD_TABLE", "LEASEHOLD_FILE", "LEASEHOLD_LAYOUT",
	"LEASEHOLD_KEYS", "LEASEHOLD_TOKENS", heldVariable,
}, store.AWSVariables...)

// environ returns CMD's environment with the lock's key, owner, token and table. outer is
// the value of LEASEHOLD_HELD.
func (h *Hold) environ(outer string) []string {
	s, settings, lock := h.seeker.store, h.seeker.user.Settings, h.first()
	env := slices.DeleteFunc(slices.Clone(h.seeker.user.Environ), func(kv string) bool {
		name, _, _ := strings.Cut(kv, "=")
		return slices.Contains(setForCMD, name)
	})
	set := func(name, value string, unless ...bool) { // does nothing if value is empty or a condition of unless is true
		if value != "" && !slices.Contains(unless, true) {
			env = append(env, name+"="+value)
		}
	}
	local, one := s.File != "", len(h.locks) == 1
	set("LEASEHOLD_KEY", h.name) // the key that the user named, also for a permit
	set("LEASEHOLD_SORT_KEY", lock.Key().Sort)
	set("LEASEHOLD_OWNER", lock.Record().Owner) // empty in a layout that does not store an owner
	set("LEASEHOLD_TOKEN", strconv.FormatInt(lock.Token(), 10))
	set("LEASEHOLD_FILE", s.File)
	set("LEASEHOLD_TABLE", s.Table, local && s.Table == store.DefaultTable)
	for i, said := range settings.ForAWS() {
		set(store.AWSVariables[i], *said, local)
	}
	set("LEASEHOLD_KEYS", h.lines(func(l *leasehold.Lock) string { return l.Key().Partition }), one)
	set("LEASEHOLD_TOKENS", h.lines(func(l *leasehold.Lock) string { return strconv.FormatInt(l.Token(), 10) }), one)
	set(heldVariable, outer)
	set("LEASEHOLD_LAYOUT", s.Layout.Name(), s.Layout.Name() == layout.Native{}.Name())
	return env
}

// lines calls of for each lock and returns the results, one per line.
func (h *Hold) lines(of func(*leasehold.Lock) string) string {
	var all []string
	for _, l := range h.locks {
		all = append(all, of(l))
	}
	return strings.Join(all, "\n")
}
