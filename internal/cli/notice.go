package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"

	"github.com/leasehold-go/leasehold/internal/cli/store"
	"github.com/leasehold-go/leasehold/internal/plainfile"
)

// maxNotices bounds the file.
const maxNotices = 100

// noticesJSON is notices.json in the state directory: at which terminals it was said
// that which store is used.
type noticesJSON struct {
	Said []notice `json:"said"` // newest last
}

// notice says that nobody named the store, to who sits at a terminal.
type notice struct {
	Store    string `json:"store"`
	Terminal string `json:"terminal"`
}

// sayUnnamed says which store is used, as none was named. At a terminal it is said once,
// and again when the store is made anew: who types the next command has read it. Any
// other reader, such as that of a log, may have read nothing before. -q silences it.
func (a *app) sayUnnamed(p store.Place) {
	if a.flags.quiet || a.placeShown || a.completing || a.hasSaid(p.File) {
		return
	}
	if p.Despite != "" {
		a.say.Note("no table: using %s, %s (see --table): %s, but a leasehold that runs from its own source is only being tried out",
			a.flags.Tilde(p.File), p.Scope(), p.Despite)
		return
	}
	a.say.Note("no table: using %s, %s (see --table)", a.flags.Tilde(p.File), p.Scope())
}

// hasSaid reports whether the notice of a store was given at this terminal, and notes
// that it is.
func (a *app) hasSaid(store string) bool {
	now := notice{Store: store, Terminal: terminalSession(a.Env.Stderr)}
	dir, err := a.flags.StateDir()
	if now.Terminal == "" || err != nil || os.Geteuid() == 0 && plainfile.Another(dir) != "" { // root leaves nothing in another's home
		return false
	}
	path := filepath.Join(dir, "notices.json")
	var before noticesJSON
	if b, err := plainfile.ReadNamed(path); err != nil || json.Unmarshal(b, &before) != nil {
		before = noticesJSON{}
	}
	if slices.Contains(before.Said, now) {
		return exists(store)
	}
	said := append(before.Said, now)
	b, err := json.Marshal(noticesJSON{said[max(len(said)-maxNotices, 0):]})
	if err == nil && os.MkdirAll(dir, 0o700) == nil {
		_ = plainfile.Replace(path, append(b, '\n'), 0o600) // if it fails, it is said once more
	}
	return false
}
