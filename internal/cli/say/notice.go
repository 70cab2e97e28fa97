package say

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"

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

// Noticed reports whether it was said at this terminal, and since the store was made,
// that the store is used. It notes in the state directory, if there is one, that it is.
func (m *Messages) Noticed(stateDir, store string) bool {
	now := notice{Store: store, Terminal: terminalSession(m.w.To)}
	if now.Terminal == "" || stateDir == "" || os.Geteuid() == 0 && plainfile.Another(stateDir) != "" { // root leaves nothing in another's home
		return false
	}
	path := filepath.Join(stateDir, "notices.json")
	var before noticesJSON
	if b, err := plainfile.ReadNamed(path); err != nil || json.Unmarshal(b, &before) != nil {
		before = noticesJSON{}
	}
	if slices.Contains(before.Said, now) {
		_, err := os.Stat(store)
		return err == nil
	}
	said := append(before.Said, now)
	b, err := json.Marshal(noticesJSON{said[max(len(said)-maxNotices, 0):]})
	if err == nil && os.MkdirAll(stateDir, 0o700) == nil {
		_ = plainfile.Replace(path, append(b, '\n'), 0o600) // if it fails, it is said once more
	}
	return false
}
