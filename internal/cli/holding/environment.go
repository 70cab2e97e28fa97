package holding

import (
	"slices"
	"strconv"
	"strings"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/cli/store"
	"github.com/leasehold-go/leasehold/internal/cli/wording"
	"github.com/leasehold-go/leasehold/layout"
)

// setForCMD are the variables that CMD gets from this run alone.
var setForCMD = append([]string{
	"LEASEHOLD_KEY", "LEASEHOLD_SORT_KEY", "LEASEHOLD_OWNER", "LEASEHOLD_TOKEN", "LEASEHOLD_TABLE", "LEASEHOLD_FILE", "LEASEHOLD_LAYOUT",
	"LEASEHOLD_KEYS", "LEASEHOLD_TOKENS", heldVariable,
}, store.AWSVariables...)

// environ returns CMD's environment, with the lock's key, owner, token and table. outer
// is the value of LEASEHOLD_HELD.
func (h *Hold) environ(outer string) []string {
	s, settings, lock := h.seeker.store, h.seeker.user.Settings, h.first()
	env := slices.DeleteFunc(slices.Clone(h.seeker.user.Environ), func(kv string) bool {
		name, _, _ := strings.Cut(kv, "=")
		return slices.Contains(setForCMD, name) || name == store.MaxSkewVariable && settings.MaxSkewGiven
	})
	set := func(name, value string) { env = append(env, name+"="+value) }
	set("LEASEHOLD_KEY", h.name) // of a permit too: the key that the user named
	if lock.Key().Sort != "" {
		set("LEASEHOLD_SORT_KEY", lock.Key().Sort)
	}
	if owner := lock.Record().Owner; owner != "" { // not every layout stores one
		set("LEASEHOLD_OWNER", owner)
	}
	set("LEASEHOLD_TOKEN", strconv.FormatInt(lock.Token(), 10))
	if s.File != "" {
		set("LEASEHOLD_FILE", s.File)
	}
	if s.File == "" || s.Table != store.DefaultTable {
		set("LEASEHOLD_TABLE", s.Table)
	}
	for i, said := range []string{settings.Region, settings.Profile, settings.Endpoint} {
		if s.File == "" && said != "" {
			set(store.AWSVariables[i], said)
		}
	}
	if len(h.locks) > 1 {
		set("LEASEHOLD_KEYS", h.lines(func(l *leasehold.Lock) string { return l.Key().Partition }))
		set("LEASEHOLD_TOKENS", h.lines(func(l *leasehold.Lock) string { return strconv.FormatInt(l.Token(), 10) }))
	}
	set(heldVariable, outer)
	if name := s.Layout.Name(); name != (layout.Native{}).Name() {
		set("LEASEHOLD_LAYOUT", name)
	}
	if settings.MaxSkewGiven {
		set(store.MaxSkewVariable, wording.Duration(settings.MaxSkew))
	}
	return env
}

// lines returns something of each lock, one a line.
func (h *Hold) lines(of func(*leasehold.Lock) string) string {
	var all []string
	for _, l := range h.locks {
		all = append(all, of(l))
	}
	return strings.Join(all, "\n")
}
