//go:build linux

package processes

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// Rule is a promise of the lock. A journal can show that the lock has broken the promise.
type Rule string

// Values of Rule.
const (
	TwoBelieve      Rule = "two workers believe that they hold one key"
	TokenBack       Rule = "a token is not above the one before"
	Outlived        Rule = "a belief outlives the lease of a suspended or dead process"
	WriteLost       Rule = "an acknowledged write is lost"
	RefusedLanded   Rule = "a refused write was applied"
	WrittenOver     Rule = "a commit was overwritten"
	WrittenTwice    Rule = "a write was applied more often than it was sent"
	StaleLanded     Rule = "a stale token was accepted"
	CountWrong      Rule = "the count differs from the writes"
	NotGrantedAgain Rule = "a key was not granted again"
	BadJournal      Rule = "the journal contradicts itself"
)

// Violation reports that the lock has broken a rule, with the key and a description.
type Violation struct {
	Rule Rule
	Key  string
	Text string
}

func (v Violation) String() string { return fmt.Sprintf("%s: %s: %s", v.Rule, v.Key, v.Text) }

// Verify returns the violations in a journal. It reports NotGrantedAgain if a key that a worker has
// requested is not granted within the longest lease plus bound after the last fault.
func Verify(events []Event, bound time.Duration) []Violation {
	events = slices.Clone(events)
	slices.SortStableFunc(events, func(a, b Event) int { return cmp.Compare(a.At, b.At) })
	grants, found := grantsOf(events)
	found = append(found, verifyBeliefs(grants)...)
	found = append(found, verifyStops(events, grants)...)
	found = append(found, verifyCommits(events)...)
	found = append(found, verifyTokenWrites(events)...)
	return append(found, verifyLiveness(events, grants, bound)...)
}
