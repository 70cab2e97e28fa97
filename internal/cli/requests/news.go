package requests

import (
	"time"

	"github.com/leasehold-go/leasehold/internal/cli/wording"
)

const (
	newsAfter  = 3 * time.Second // without an answer
	newsRepeat = time.Minute     // between two about trouble
)

// News is what is told of trouble, or of its end.
type News struct {
	Kind           string
	Lasts          time.Duration
	Reason, Advice string // of trouble
	Line           string // all of it, for people
}

// Teller tells of trouble once it has lasted for some seconds, at most once a minute,
// and of its end if it was told.
type Teller struct {
	told Trouble   // lasts no time: none, or it is over
	at   time.Time // trouble was told last; zero: not yet
}

// Since makes t as rare together with an earlier teller as one of them is alone.
func (t *Teller) Since(earlier Teller) { t.at = earlier.at }

// Tell returns what is to be told now, if anything is.
func (t *Teller) Tell(seen Trouble, now time.Time) (n News, due bool) {
	switch {
	case t.told.lasts > 0 && seen.answers != t.told.answers:
		n = News{Kind: Answered, Lasts: t.told.lasts + now.Sub(t.at)}
		n.Line = seen.server.name() + " answers again, after " + wording.Age(n.Lasts)
		t.told = Trouble{}
		return n, true
	case seen.lasts < newsAfter, !t.at.IsZero() && now.Sub(t.at) < newsRepeat:
		return News{}, false
	}
	t.told, t.at = seen, now
	return News{Kind: seen.kind(), Lasts: seen.lasts, Reason: seen.reason(), Advice: seen.advice(), Line: seen.Line()}, true
}
