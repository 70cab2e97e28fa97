package leasehold

import (
	"encoding/json"
	"time"
)

// Former is the grant of a key that ended last.
type Former struct {
	Owner string    // empty: the record does not say
	Token int64     // 0: it had none
	Until time.Time // by the clock of who ended it; zero: unknown
	Ended Ending
}

// Ending is how a grant ended.
type Ending string

// How a grant ended.
const (
	EndedReleased  Ending = "released"
	EndedTakenOver Ending = "taken over" // its holder had died
	EndedBroken    Ending = "broken"     // Record.Broken says by whom
)

// Former returns who held the key last or, while it is held, who held it before. nil:
// the record does not tell, as after a release and another grant, which leaves no trace
// of the one before.
func (r Record) Former() *Former {
	switch {
	case r.Released && r.Owner == "":
		return nil
	case r.Released && r.Broken.isOf(r.Token):
		return &Former{r.Owner, r.Token, r.Broken.At, EndedBroken}
	case r.Released:
		return &Former{r.Owner, r.Token, r.WrittenAt(), EndedReleased}
	case r.TakenOver.before(r):
		return &Former{r.TakenOver.From, r.TakenOver.Token, r.TakenOver.At, EndedTakenOver}
	case r.Broken.isOf(r.Token - 1):
		return &Former{"", r.Broken.Token, r.Broken.At, EndedBroken}
	}
	return nil
}

// MarshalJSON writes what the command prints.
func (f Former) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		Owner string `json:"owner,omitempty"`
		Token int64  `json:"token,omitempty"`
		Until string `json:"until,omitempty"`
		Ended Ending `json:"ended"`
	}{f.Owner, f.Token, formatTime(f.Until), f.Ended})
}
