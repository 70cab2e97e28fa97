//go:build linux

package processes

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"
)

// write is a write that a worker has sent, with the reply that the worker received.
type write struct {
	Event                  // the Sent event of the write
	answer   Kind          // Landed, Refused or Unknown; empty if the worker died before it received a reply
	answered time.Duration // time at which the worker received the reply
}

// writesOf returns a map from ids to writes. If plain is false, the map contains the commits in
// events. If plain is true, it contains the writes to the counter that compares tokens.
func writesOf(events []Event, plain bool) (writes map[string]*write, found []Violation) {
	writes = map[string]*write{}
	for _, e := range events {
		if e.Plain != plain {
			continue
		}
		switch e.Kind {
		case Sent:
			if writes[e.Write] != nil {
				found = append(found, Violation{BadJournal, e.Key, e.Write + " was sent twice"})
			}
			writes[e.Write] = &write{Event: e}
		case Landed, Refused, Unknown:
			w := writes[e.Write]
			if w == nil || w.answer != "" {
				found = append(found, Violation{BadJournal, e.Key, e.Write + " was answered without a request"})
				continue
			}
			w.answer, w.answered = e.Kind, e.At
		}
	}
	return writes, found
}

// verifyCommits checks the counter that each commit increments, and the commits' receipts, which
// contain the new count. In the order of their counts, each commit must have added one, and none
// may have a lower token than the commit before it.
func verifyCommits(events []Event) []Violation {
	writes, found := writesOf(events, false)
	receipts := map[string]Event{}           // by id of the write: its receipt
	counted := map[string]map[int64]string{} // by key and count: id of the write that set the count
	counts := map[string]Event{}
	for _, e := range events {
		switch e.Kind {
		case Receipt:
			receipts[e.Write] = e
			if counted[e.Key] == nil {
				counted[e.Key] = map[int64]string{}
			}
			if other := counted[e.Key][e.N]; other != "" {
				found = append(found, Violation{WrittenOver, e.Key, fmt.Sprintf("%s and %s both counted %d", other, e.Write, e.N)})
			}
			counted[e.Key][e.N] = e.Write
			if writes[e.Write] == nil {
				found = append(found, Violation{BadJournal, e.Key, e.Write + " has a receipt but was never sent"})
			}
		case Count:
			if !e.Plain {
				counts[e.Key] = e
			}
		}
	}
	if len(counts) == 0 {
		return found // events contains no contents of the tables, so there is nothing to compare
	}
	for _, id := range slices.Sorted(maps.Keys(writes)) {
		w := writes[id]
		_, there := receipts[id]
		switch {
		case w.answer == Landed && !there:
			found = append(found, Violation{WriteLost, w.Key, id})
		case w.answer == Refused && there:
			found = append(found, Violation{RefusedLanded, w.Key, id})
		}
	}
	for _, key := range slices.Sorted(maps.Keys(counts)) {
		last := counts[key]
		if n := int64(len(counted[key])); n != last.N {
			found = append(found, Violation{CountWrong, key, fmt.Sprintf("%d commits, but the counter is %d", n, last.N)})
		}
		var token int64
		for n := int64(1); n <= last.N; n++ {
			id, there := counted[key][n]
			if !there {
				found = append(found, Violation{CountWrong, key, fmt.Sprintf("no commit has counted %d", n)})
				continue
			}
			if r := receipts[id]; r.Token < token {
				found = append(found, Violation{StaleLanded, key, fmt.Sprintf("%s with token %d after a commit with %d", id, r.Token, token)})
			}
			token = max(token, receipts[id].Token)
		}
	}
	return found
}

// tally counts the writes of one worker to one key: the acknowledged writes, and the writes
// without a reply.
type tally struct{ acknowledged, unanswered int64 }

// verifyTokenWrites checks the counter that rejects a token below the greatest it has seen.
// The counter must have counted each acknowledged write exactly once, and each write
// without a reply at most once.
func verifyTokenWrites(events []Event) []Violation {
	writes, found := writesOf(events, true)
	type share struct{ key, who string }
	told := map[share]*tally{}
	var landed []*write
	for _, id := range slices.Sorted(maps.Keys(writes)) {
		w := writes[id]
		s := share{w.Key, w.Who}
		if told[s] == nil {
			told[s] = &tally{}
		}
		switch w.answer {
		case Landed:
			told[s].acknowledged++
			landed = append(landed, w)
		case Refused:
		default:
			told[s].unanswered++
		}
	}
	there, sums, read := map[share]int64{}, map[string]int64{}, false
	for _, e := range events {
		switch e.Kind {
		case Share:
			there[share{e.Key, e.Who}] = e.N
			sums[e.Key] -= e.N
			if told[share{e.Key, e.Who}] == nil {
				found = append(found, Violation{BadJournal, e.Key, fmt.Sprintf("%d writes of %s, who sent none", e.N, e.Who)})
			}
		case Sum:
			sums[e.Key] += e.N
			read = true
		}
	}
	if read {
		for s, k := range told {
			if there[s] < k.acknowledged {
				found = append(found, Violation{WriteLost, s.key, fmt.Sprintf("%d of %s are there, %d were acknowledged", there[s], s.who, k.acknowledged)})
			}
			if there[s] > k.acknowledged+k.unanswered {
				found = append(found, Violation{WrittenTwice, s.key, fmt.Sprintf(
					"%d of %s are there, %d were acknowledged and %d had no answer", there[s], s.who, k.acknowledged, k.unanswered)})
			}
		}
		for key, left := range sums {
			if left != 0 {
				found = append(found, Violation{CountWrong, key, fmt.Sprintf("the sum of the writes is off by %d", left)})
			}
		}
	}
	return append(found, staleTokens(landed)...)
}

// staleTokens finds each applied write that should have been rejected: before the write was sent, a
// write with a greater token had been acknowledged.
func staleTokens(landed []*write) (found []Violation) {
	bySent := slices.SortedFunc(slices.Values(landed), func(a, b *write) int { return cmp.Compare(a.At, b.At) })
	byAnswer := slices.SortedFunc(slices.Values(landed), func(a, b *write) int { return cmp.Compare(a.answered, b.answered) })
	greatest := map[string]*write{} // by key: the acknowledged write with the greatest token so far
	next := 0
	for _, w := range bySent {
		for ; next < len(byAnswer) && byAnswer[next].answered < w.At; next++ {
			if a := byAnswer[next]; greatest[a.Key] == nil || a.Token > greatest[a.Key].Token {
				greatest[a.Key] = a
			}
		}
		if g := greatest[w.Key]; g != nil && g.Token > w.Token {
			found = append(found, Violation{StaleLanded, w.Key, fmt.Sprintf("%s with token %d after %s with %d", w.Write, w.Token, g.Write, g.Token)})
		}
	}
	return found
}
