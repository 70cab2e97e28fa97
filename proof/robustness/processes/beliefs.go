//go:build linux

package processes

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"
)

// grant is one grant of a key to a worker process, with the period in which the worker
// believed that it held the key.
type grant struct {
	who    string
	number int
	key    string
	token  int64
	lease  time.Duration // lease with which the worker acquires keys
	handed bool          // the previous holder handed the key over with a longer lease, which stays in force until the worker's first renewal
	from   time.Duration // start of the worker's belief; 0 if the worker never believed that it held the key
	last   time.Duration // time of the last event in which the worker still believed that it held the key
	until  time.Duration // end of trust in the worker's latest event; if handed is true, at most lease after that event
	over   time.Duration // when the worker decided to release; 0 if it did not
	lost   time.Duration // when the worker learned of the loss; 0 if it did not
}

func (g *grant) String() string {
	return fmt.Sprintf("%s, token %d, from %v to %v", g.who, g.token, g.from, g.end())
}

// end returns the last instant at which the worker believed, or could have believed, that it held
// the key. For a killed worker, it is the end of its trust. No other worker may be granted the key
// before this instant.
func (g *grant) end() time.Duration {
	switch {
	case g.over != 0:
		return max(g.last, g.over)
	case g.lost != 0:
		return max(g.last, min(g.until, g.lost))
	default:
		return max(g.last, g.until)
	}
}

type grantID struct {
	who    string
	number int
}

// grantsOf returns the grants in events, in the order in which the beliefs began. The argument
// events must be in chronological order.
func grantsOf(events []Event) (grants []*grant, found []Violation) {
	byID := map[grantID]*grant{}
	bad := func(e Event, why string) {
		found = append(found, Violation{BadJournal, e.Key, fmt.Sprintf("%s: %s: %+v", e.Who, why, e)})
	}
	for _, e := range events {
		id := grantID{e.Who, e.Grant}
		g := byID[id]
		switch e.Kind {
		case Granted:
			if g != nil {
				bad(e, "granted twice")
				continue
			}
			byID[id] = &grant{who: e.Who, number: e.Grant, key: e.Key, token: e.Token, lease: e.Lease, from: e.At, last: e.At,
				until: min(e.Until, e.At+e.Lease), handed: e.Until > e.At+e.Lease}
		case Believes, Over:
			if g == nil || g.key != e.Key {
				bad(e, "belief without a grant")
				continue
			}
			if g.over != 0 {
				bad(e, "belief after its end")
			}
			g.last, g.until = max(g.last, e.At), e.Until
			if g.handed {
				g.until = min(e.Until, e.At+g.lease)
			}
			if e.Kind == Over {
				g.over = e.At
			}
		case Lost:
			if g == nil { // the worker's first check of the lock already reported the loss
				g = &grant{who: e.Who, number: e.Grant, key: e.Key, token: e.Token, lease: e.Lease}
				byID[id] = g
			}
			g.lost = e.At
		}
	}
	grants = slices.SortedFunc(maps.Values(byID), func(a, b *grant) int {
		return cmp.Or(cmp.Compare(a.from, b.from), cmp.Compare(a.token, b.token))
	})
	return grants, found
}

// verifyBeliefs checks that no two workers believe at the same time that they hold a key. Tokens
// must be different, and must increase. This order does not apply to a worker that lost its lock
// before its first check, because it never believed that it held the key.
func verifyBeliefs(grants []*grant) (found []Violation) {
	before := map[string]*grant{} // by key: grant whose belief ended latest so far
	tokens := map[string]map[int64]*grant{}
	for _, g := range grants {
		if tokens[g.key] == nil {
			tokens[g.key] = map[int64]*grant{}
		}
		if other := tokens[g.key][g.token]; other != nil {
			found = append(found, Violation{TokenBack, g.key, fmt.Sprintf("%v and %v have the same token", other, g)})
		}
		tokens[g.key][g.token] = g
		if g.from == 0 {
			continue
		}
		p := before[g.key]
		if p != nil && g.from < p.end() {
			found = append(found, Violation{TwoBelieve, g.key, fmt.Sprintf("%v, while %v", g, p)})
		}
		if p != nil && g.token < p.token {
			found = append(found, Violation{TokenBack, g.key, fmt.Sprintf("%v after %v", g, p)})
		}
		if p == nil || g.end() >= p.end() {
			before[g.key] = g
		}
	}
	return found
}

// A value of the type "still" is a period in which a worker's process was suspended or dead.
type still struct{ from, to time.Duration }

// verifyStops checks that a worker whose process was suspended or dead for a whole lease no longer
// believes that it holds a key. Unlike verifyBeliefs, it finds a wrong belief even if no other
// worker acquires the key.
func verifyStops(events []Event, grants []*grant) (found []Violation) {
	const forever = time.Duration(1<<63 - 1)
	stills := map[string][]still{}
	for _, e := range events {
		all := stills[e.Who]
		switch e.Kind {
		case Stopped:
			stills[e.Who] = append(all, still{e.At, forever})
		case Continued:
			if len(all) == 0 || all[len(all)-1].to != forever {
				found = append(found, Violation{BadJournal, "", e.Who + " continued without having been suspended"})
				continue
			}
			all[len(all)-1].to = e.At
		case Killed, Ended:
			stills[e.Who] = append(all, still{e.At, forever})
		}
	}
	for _, g := range grants {
		for _, s := range stills[g.who] {
			longEnough := s.to == forever || s.to-s.from >= g.lease
			if g.from != 0 && g.from < s.from && longEnough && g.last > s.from+g.lease {
				found = append(found, Violation{Outlived, g.key, fmt.Sprintf(
					"%s was suspended or dead from %v to %v, and believed at %v with a lease of %v (token %d)", g.who, s.from, s.to, g.last, g.lease, g.token)})
			}
		}
	}
	return found
}

// verifyLiveness checks that, after the last fault, each key that a worker has requested is
// granted again within the longest lease plus bound.
func verifyLiveness(events []Event, grants []*grant, bound time.Duration) (found []Violation) {
	var healed, longest time.Duration
	again := map[string]bool{}
	for _, e := range events {
		switch e.Kind {
		case Asked:
			again[e.Key] = false
			longest = max(longest, e.Lease)
		case Healed:
			healed = e.At
		}
	}
	if healed == 0 {
		return nil
	}
	for _, g := range grants {
		if g.from > healed && g.from <= healed+longest+bound {
			again[g.key] = true
		}
	}
	for _, key := range slices.Sorted(maps.Keys(again)) {
		if !again[key] {
			found = append(found, Violation{NotGrantedAgain, key, fmt.Sprintf("within %v of the last fault", longest+bound)})
		}
	}
	return found
}
