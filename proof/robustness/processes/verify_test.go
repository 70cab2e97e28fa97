//go:build linux

package processes

import (
	"slices"
	"testing"
	"time"
)

const ms = time.Millisecond

// good returns a journal that breaks no rule: one holder dies, one is paused past its
// lease, one ends by itself, and each has written.
func good() []Event {
	const lease = time.Second
	by := func(who string, grant int, token int64) func(at time.Duration, k Kind, change ...func(*Event)) Event {
		return func(at time.Duration, k Kind, change ...func(*Event)) Event {
			e := Event{At: at, Who: who, Kind: k, Key: "k", Grant: grant, Token: token, Lease: lease}
			if k == Granted || k == Believes || k == Over {
				e.Until = at + 900*ms
			}
			for _, c := range change {
				c(&e)
			}
			return e
		}
	}
	commit := func(id string) func(*Event) { return func(e *Event) { e.Write = id } }
	plain := func(id string) func(*Event) { return func(e *Event) { e.Write, e.Plain = id, true } }
	n := func(n int64) func(*Event) { return func(e *Event) { e.N = n } }
	a, b, c, table := by("a", 1, 11), by("b", 1, 12), by("c", 1, 13), by("", 0, 0)
	return []Event{
		a(0*ms+1, Asked), a(10*ms, Granted), a(20*ms, Sent, commit("a/1")), a(30*ms, Landed, commit("a/1")),
		a(40*ms, Sent, plain("a/2")), a(50*ms, Landed, plain("a/2")), a(60*ms, Believes),
		a(70*ms, Sent, commit("a/3")), a(80*ms, Killed), // the worker dies before the answer, but its write was applied

		b(5*ms, Asked), b(1100*ms, Granted), b(1110*ms, Sent, commit("b/1")), b(1120*ms, Landed, commit("b/1")),
		b(1130*ms, Believes), b(1140*ms, Stopped), b(2300*ms, Continued), b(2301*ms, Lost),
		b(2302*ms, Sent, plain("b/2")), b(2303*ms, Refused, plain("b/2")),
		b(2304*ms, Sent, commit("b/3")), b(2305*ms, Refused, commit("b/3")),

		c(6*ms, Asked), c(2200*ms, Granted), c(2210*ms, Sent, plain("c/1")), c(2220*ms, Landed, plain("c/1")),
		c(2230*ms, Sent, plain("c/2")), c(2240*ms, Unknown, plain("c/2")), c(2400*ms, Over),

		table(2401*ms, Healed), a(2402*ms, Receipt, commit("a/1"), n(1)), a(2402*ms, Receipt, commit("a/3"), n(2)),
		b(2402*ms, Receipt, commit("b/1"), n(3)), table(2402*ms, Count, n(3)),
		a(2402*ms, Share, plain(""), n(1)), c(2402*ms, Share, plain(""), n(2)), table(2402*ms, Sum, plain(""), n(3)),
		by("b", 2, 14)(2500*ms, Granted),
	}
}

func TestVerifyAcceptsSoundJournal(t *testing.T) {
	if found := Verify(good(), time.Second); found != nil {
		t.Error(found)
	}
}

// A client that was handed the key has the hand-over lease until its first renewal. It
// sends this renewal before the hand-over lease ends.
func TestVerifyAllowsWorkUntilLastReportedTrustEnds(t *testing.T) {
	for name, died := range map[string]bool{"it went on": false, "it died as that was sent": true} {
		t.Run(name, func(t *testing.T) {
			es := good()
			if died {
				es = slices.DeleteFunc(es, func(e Event) bool { return e.Who == "a" && e.Kind == Believes })
			}
			i := slices.IndexFunc(es, func(e Event) bool { return e.Who == "a" && e.Kind == Granted })
			es[i].Until = 1500 * ms // the next Believes event, if there is one, sets the end of trust to 960 ms
			if found := Verify(es, time.Second); found != nil {
				t.Error(found)
			}
		})
	}
}

func TestVerifyReportsWhichRuleIsBroken(t *testing.T) {
	at := func(events []Event, who string, k Kind, write string) *Event {
		for i := range events {
			if e := &events[i]; e.Who == who && e.Kind == k && e.Write == write {
				return e
			}
		}
		t.Fatalf("no %s of %s", k, who)
		return nil
	}
	without := func(events []Event, e *Event) []Event {
		gone := *e
		return slices.DeleteFunc(events, func(e Event) bool { return e == gone })
	}
	for _, tc := range []struct {
		name  string
		rule  Rule
		spoil func(events []Event) []Event
	}{
		{"granted while the dead one's trust lasted", TwoBelieve, func(es []Event) []Event {
			at(es, "b", Granted, "").At = 959 * ms // a's trust ends at 960 ms
			return es
		}},
		{"granted while the own lease of one who was handed the key lasted", TwoBelieve, func(es []Event) []Event {
			es = without(es, at(es, "a", Believes, ""))
			at(es, "a", Granted, "").Until = 1500 * ms // the lease of a is one second
			at(es, "b", Granted, "").At = 1009 * ms
			return es
		}},
		{"believed on after another was granted", TwoBelieve, func(es []Event) []Event {
			return append(es, Event{At: 1105 * ms, Who: "a", Kind: Believes, Key: "k", Grant: 1, Token: 11, Until: 1105 * ms})
		}},
		{"believed on in the shadow of a shorter belief", TwoBelieve, func(es []Event) []Event {
			es = append(es, Event{At: 2420 * ms, Who: "c", Kind: Believes, Key: "k", Grant: 1, Token: 13, Until: 2600 * ms})
			return without(es, at(es, "c", Over, ""))
		}},
		{"a trust that is said to last longer than it does", TwoBelieve, func(es []Event) []Event {
			at(es, "a", Believes, "").Until = 1101 * ms
			return es
		}},
		{"no belief ends with a pause", TwoBelieve, func(es []Event) []Event {
			at(es, "b", Believes, "").Until = 2201 * ms
			return es
		}},
		{"a smaller token", TokenBack, func(es []Event) []Event {
			at(es, "c", Granted, "").Token = 10
			return es
		}},
		{"a token twice", TokenBack, func(es []Event) []Event {
			at(es, "c", Granted, "").Token = 12
			return es
		}},
		{"a token of a grant that was lost before the first look", TokenBack, func(es []Event) []Event {
			return append(es, Event{At: 2405 * ms, Who: "d", Kind: Lost, Key: "k", Grant: 1, Token: 13})
		}},
		{"believes after a pause past the lease", Outlived, func(es []Event) []Event {
			e := at(es, "b", Lost, "")
			e.Kind, e.Until = Believes, e.At
			return es
		}},
		{"lives on after the death of the one who held for it", Outlived, func(es []Event) []Event {
			es = slices.DeleteFunc(es, func(e Event) bool { return e.Who != "a" })
			return append(es, Event{At: 1081 * ms, Who: "a", Kind: Believes, Key: "k", Grant: 1, Token: 11})
		}},
		{"an acknowledged commit is lost", WriteLost, func(es []Event) []Event {
			return without(es, at(es, "b", Receipt, "b/1"))
		}},
		{"an acknowledged write with a token is lost", WriteLost, func(es []Event) []Event {
			at(es, "c", Share, "").N = 0
			return es
		}},
		{"a write with a token is there twice", WrittenTwice, func(es []Event) []Event {
			at(es, "a", Share, "").N = 2
			return es
		}},
		{"a refused write with a token is there", WrittenTwice, func(es []Event) []Event {
			return append(es, Event{At: 2402 * ms, Who: "b", Kind: Share, Key: "k", Plain: true, N: 1})
		}},
		{"a refused commit is there", RefusedLanded, func(es []Event) []Event {
			return append(es, Event{At: 2402 * ms, Kind: Receipt, Key: "k", Write: "b/3", N: 4, Token: 13})
		}},
		{"two commits counted one number", WrittenOver, func(es []Event) []Event {
			at(es, "b", Receipt, "b/1").N = 2
			return es
		}},
		{"the counter went back", CountWrong, func(es []Event) []Event {
			at(es, "", Count, "").N = 2
			return es
		}},
		{"the counter left out a number", CountWrong, func(es []Event) []Event {
			at(es, "b", Receipt, "b/1").N, at(es, "", Count, "").N = 4, 4
			return es
		}},
		{"the sum is not that of its parts", CountWrong, func(es []Event) []Event {
			at(es, "", Sum, "").N = 4
			return es
		}},
		{"a commit of an earlier grant after one of a later", StaleLanded, func(es []Event) []Event {
			at(es, "a", Receipt, "a/3").N, at(es, "b", Receipt, "b/1").N = 3, 2
			return es
		}},
		{"a write with an old token after one with a newer", StaleLanded, func(es []Event) []Event {
			at(es, "b", Refused, "b/2").Kind = Landed
			return append(es, Event{At: 2402 * ms, Who: "b", Kind: Share, Key: "k", Plain: true, N: 1})
		}},
		{"nobody had the key again", NotGrantedAgain, func(es []Event) []Event { return es[:len(es)-1] }},
		{"the key was had again too late", NotGrantedAgain, func(es []Event) []Event {
			es[len(es)-1].At = 2401*ms + 2*time.Second + 1
			return es
		}},
		{"an answer without a request", BadJournal, func(es []Event) []Event {
			return without(es, at(es, "a", Sent, "a/1"))
		}},
		{"a belief without a grant", BadJournal, func(es []Event) []Event {
			return without(es, at(es, "a", Granted, ""))
		}},
		{"a belief after its end", BadJournal, func(es []Event) []Event {
			return append(es, Event{At: 2410 * ms, Who: "c", Kind: Believes, Key: "k", Grant: 1, Token: 13})
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			found := Verify(tc.spoil(good()), time.Second)
			if !slices.ContainsFunc(found, func(v Violation) bool { return v.Rule == tc.rule && v.Key == "k" }) {
				t.Errorf("found %v, want %q", found, tc.rule)
			}
		})
	}
}

func TestPartialJournalLineIsSkipped(t *testing.T) {
	events, torn := parse([]byte("\n{\"at\":1,\"kind\":\"asked\"}\n{\"at\":2,\"ki\n{\"at\":3,\"kind\":\"lost\"}"))
	if torn != 1 || len(events) != 2 || events[1].At != 3 {
		t.Errorf("%d torn, %v", torn, events)
	}
}
