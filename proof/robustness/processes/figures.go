//go:build linux

package processes

import (
	"fmt"
	"time"
)

// figures contains counts of the events in a journal.
type figures struct {
	kills, killedHolders  int
	pauses, pausedHolders int
	heads                 int // number of queue heads that were killed or suspended
	grants, takeovers     int
	beliefs, losses       int
	landed, refused       int // numbers of applied and of rejected commits; unanswered counts the commits without a reply
	unanswered            int
	added, stale, unheard int // numbers of writes whose target compares tokens: applied, rejected, and without a reply
	denied, broken        int
	again                 time.Duration // time from the end of the last fault until each key had been granted again
}

func figuresOf(events []Event) (f figures) {
	holds := map[string]bool{}
	var healed time.Duration
	again := map[string]bool{}
	var sent [2]int
	for _, e := range events {
		if e.Text == asHead(true) {
			f.heads++
		}
		switch e.Kind {
		case Granted:
			f.grants++
			if e.Dead != "" {
				f.takeovers++
			}
			holds[e.Who] = true
			if healed != 0 && e.At > healed && !again[e.Key] {
				again[e.Key], f.again = true, max(f.again, e.At-healed)
			}
		case Healed:
			healed = e.At
		case Believes:
			f.beliefs++
		case Lost:
			f.losses++
			delete(holds, e.Who)
		case Over, Ended:
			delete(holds, e.Who)
		case Killed:
			f.kills++
			if holds[e.Who] {
				f.killedHolders++
			}
			delete(holds, e.Who)
		case Stopped:
			f.pauses++
			if holds[e.Who] {
				f.pausedHolders++
			}
		case Denied:
			f.denied++
		case Broke:
			f.broken++
		case Sent:
			if e.Plain {
				sent[1]++
			} else {
				sent[0]++
			}
		case Landed, Refused:
			switch {
			case e.Plain && e.Kind == Landed:
				f.added++
			case e.Plain:
				f.stale++
			case e.Kind == Landed:
				f.landed++
			default:
				f.refused++
			}
		}
	}
	f.unanswered = sent[0] - f.landed - f.refused
	f.unheard = sent[1] - f.added - f.stale
	return f
}

func (f figures) String() string {
	return fmt.Sprintf("killed %d (%d while they held), paused %d (%d while they held), %d of these as the head of a queue, %d other faults; "+
		"%d grants, %d of them takeovers from dead holders, %d checks that found a lock held, %d losses, %d failed calls; "+
		"commits: %d applied, %d refused, %d without an answer; writes with a token: %d applied, %d refused, %d without an answer; each key was granted again within %v",
		f.kills, f.killedHolders, f.pauses, f.pausedHolders, f.heads, f.broken, f.grants, f.takeovers, f.beliefs, f.losses, f.denied,
		f.landed, f.refused, f.unanswered, f.added, f.stale, f.unheard, f.again.Round(time.Millisecond))
}
