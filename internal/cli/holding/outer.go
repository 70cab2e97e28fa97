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
	"github.com/leasehold-go/leasehold/semaphore"
)

// heldVariable is the name of an environment variable that leasehold sets for CMD. It
// contains, as JSON, the keys of all runs of leasehold that CMD runs under. LEASEHOLD_KEY
// contains only the key of the innermost run.
const heldVariable = "LEASEHOLD_HELD"

// outerKey is a key held by an outer run: a "leasehold run" or "leasehold elect" process
// that this process runs under.
type outerKey struct {
	Key     string `json:"key"`
	SortKey string `json:"sortKey,omitempty"`
	Table   string `json:"table"`
	Store   string `json:"store"` // the file, endpoint or Region, from store.Target.At
	Grant   string `json:"grant"`
}

// outerKeys returns the keys of the outer runs from LEASEHOLD_HELD, the innermost run last.
// lookup is os.LookupEnv except in tests.
func outerKeys(lookup func(string) (string, bool)) []outerKey {
	var held []outerKey
	value, _ := lookup(heldVariable)
	if json.Unmarshal([]byte(value), &held) != nil {
		return nil // leasehold did not write this value, so it names no outer runs
	}
	return held
}

// SetByRun reports whether the innermost outer run has set exactly this table and file for its CMD,
// in LEASEHOLD_TABLE and LEASEHOLD_FILE.
func SetByRun(lookup func(string) (string, bool), table, file string) bool {
	held := outerKeys(lookup)
	if len(held) == 0 {
		return false
	}
	last := held[len(held)-1]
	return last.Store == file && last.Table == table
}

// refuseNested returns an error if an outer run holds a wanted key, because this run and the outer
// run would wait for each other. With --any, it removes such keys, unless none would remain. It
// also refuses a wait for a second permit of a semaphore, because the permits' holders could all
// wait for each other.
func (s *Seeker) refuseNested(ctx context.Context) error {
	w := &s.wanted
	if w.Permits > 0 {
		for i := range semaphore.MostPermits { // the outer run may have another number of permits
			if !w.NoWait && s.heldByOuter(ctx, s.store.Key(fmt.Sprintf("%s/%d", w.Keys[0], i), w.SortKey)) {
				return nestedWait(w.Keys[0])
			}
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

// heldByOuter reports whether an outer run holds key now. The outer run may have ended before this
// process. So heldByOuter compares the grant id in key's record with the grant ids in
// LEASEHOLD_HELD. If the record cannot be read, it compares the names of table and store.
func (s *Seeker) heldByOuter(ctx context.Context, key leasehold.Key) bool {
	outer := slices.DeleteFunc(outerKeys(s.user.Settings.LookupEnv), func(h outerKey) bool {
		return key != leasehold.Key{Partition: h.Key, Sort: h.SortKey}
	})
	if len(outer) == 0 {
		return false
	}
	ctx, cancel := s.Bind(ctx, s.wanted.Wait)
	defer cancel()
	r, err := holders.Get(ctx, s.locks, key)
	return slices.ContainsFunc(outer, func(h outerKey) bool {
		if err != nil && !errors.Is(err, leasehold.ErrNotFound) {
			return h.Table == s.store.Table && h.Store == s.store.At()
		}
		return err == nil && !r.Released && h.Grant == r.Grant
	})
}

// nestedWait returns the error for a wait for a key that an outer run holds.
func nestedWait(key string) error {
	return failure.Misusef("%s is held by the leasehold run that started this command: waiting for it would never end", wording.Name(key))
}

// outerValue returns the value of LEASEHOLD_HELD for CMD: the outer runs, then this run.
func (h *Hold) outerValue() string {
	s := h.seeker
	held := outerKeys(s.user.Settings.LookupEnv)
	for _, lock := range h.locks {
		k := lock.Key()
		held = append(held, outerKey{Key: k.Partition, SortKey: k.Sort, Table: s.store.Table, Store: s.store.At(), Grant: lock.Record().Grant})
	}
	b, _ := json.Marshal(held) // cannot fail: a slice of structs of strings always has a JSON form
	return string(b)
}

// outerBegins returns a value of LEASEHOLD_HELD, which is a JSON array, without the final "]". Runs
// inside CMD append to the array, so LEASEHOLD_HELD begins with this text in all descendants of
// CMD. It does so in no other process, because the text contains the grant's id.
func outerBegins(value string) string { return strings.TrimSuffix(value, "]") }

// environ returns the environment for CMD, with the lock's key, owner, token and table.
// outer is the value of LEASEHOLD_HELD.
func (h *Hold) environ(outer string) []string {
	s, settings, lock := h.seeker.store, h.seeker.user.Settings, h.first()
	env := slices.Clone(h.seeker.user.Environ)
	// set replaces the variable that this process inherited. CMD does not get the variable if the
	// parameter "value" is empty, or if any of the conditions in the parameter "unless" is true.
	set := func(name, value string, unless ...bool) {
		env = slices.DeleteFunc(env, func(kv string) bool { return strings.HasPrefix(kv, name+"=") })
		if value != "" && !slices.Contains(unless, true) {
			env = append(env, name+"="+value)
		}
	}
	local, one := s.File != "", len(h.locks) == 1
	set("LEASEHOLD_KEY", h.name) // KEY as the user named it, even if h holds the permit KEY/0
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

// lines calls the function "text" for each lock, and returns the results, one line each.
func (h *Hold) lines(text func(*leasehold.Lock) string) string {
	var all []string
	for _, l := range h.locks {
		all = append(all, text(l))
	}
	return strings.Join(all, "\n")
}
