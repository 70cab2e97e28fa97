//go:build linux

package processes

import (
	"slices"
	"testing"
	"time"

	"github.com/leasehold-go/leasehold/internal/lab"
)

const ms = time.Millisecond

// good returns a journal that violates no rule. The first holder is killed. The second holder is
// paused for longer than its lease. The third holder releases the key. All three holders make
// writes while they hold the key.
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
		a(70*ms, Sent, commit("a/3")), a(80*ms, Killed), // the worker is killed before the reply arrives, but its write is applied

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

func TestVerifyAcceptsJournalWithoutViolation(t *testing.T) {
	lab.Want(t, "violations", Verify(good(), time.Second), nil)
}

// The previous holder hands the key to the worker "a" with a longer lease than that of "a". The
// first renewal by "a" shortens the lease. If "a" is killed, the journal may not show this renewal.
// So Verify must allow the next grant after the shorter lease.
func TestVerifyAllowsNewHolderToShortenLeaseFromHandOver(t *testing.T) {
	lab.Variants(t, map[string]bool{"worker continues": false, "worker killed before its next event": true}, func(t *testing.T, died bool) {
		es := good()
		if died {
			es = slices.DeleteFunc(es, func(e Event) bool { return e.Who == "a" && e.Kind == Believes })
		}
		i := slices.IndexFunc(es, func(e Event) bool { return e.Who == "a" && e.Kind == Granted })
		es[i].Until = 1500 * ms // in the first case, the worker reports later that its trust ends at 960 ms
		lab.Want(t, "violations", Verify(es, time.Second), nil)
	})
}

// spoiled is a copy of the good journal. A test changes the events so that the journal violates
// a rule.
type spoiled struct {
	t      *testing.T
	events []Event
}

// The method "at" returns the first event of the given worker that has the given kind and write id.
func (j *spoiled) at(who string, k Kind, write string) *Event {
	for i := range j.events {
		if e := &j.events[i]; e.Who == who && e.Kind == k && e.Write == write {
			return e
		}
	}
	j.t.Fatalf("no %s of %s", k, who)
	return nil
}

func (j *spoiled) remove(who string, k Kind, write string) {
	gone := *j.at(who, k, write)
	j.events = slices.DeleteFunc(j.events, func(e Event) bool { return e == gone })
}

func (j *spoiled) add(e Event) {
	e.Key = "k"
	j.events = append(j.events, e)
}

func TestVerifyReportsRuleViolatedByJournal(t *testing.T) {
	for _, tc := range []struct {
		name  string
		rule  Rule
		spoil func(j *spoiled)
	}{
		{"granted while a dead holder's trust lasts", TwoBelieve, func(j *spoiled) { j.at("b", Granted, "").At = 959 * ms }}, // worker a trusts its lock until 960 ms
		{"granted during the own lease of a holder after a hand-over", TwoBelieve, func(j *spoiled) {
			j.remove("a", Believes, "")
			j.at("a", Granted, "").Until = 1500 * ms // after the end of the lease, which lasts one second
			j.at("b", Granted, "").At = 1009 * ms
		}},
		{"a belief after another worker's grant", TwoBelieve, func(j *spoiled) {
			j.add(Event{At: 1105 * ms, Who: "a", Kind: Believes, Grant: 1, Token: 11, Until: 1105 * ms})
		}},
		{"a belief without an end that overlaps the next grant", TwoBelieve, func(j *spoiled) {
			j.add(Event{At: 2420 * ms, Who: "c", Kind: Believes, Grant: 1, Token: 13, Until: 2600 * ms})
			j.remove("c", Over, "")
		}},
		{"a reported trust that overlaps the next grant", TwoBelieve, func(j *spoiled) { j.at("a", Believes, "").Until = 1101 * ms }},
		{"a belief that continues during a pause", TwoBelieve, func(j *spoiled) { j.at("b", Believes, "").Until = 2201 * ms }},
		{"a smaller token", TokenBack, func(j *spoiled) { j.at("c", Granted, "").Token = 10 }},
		{"two grants with one token", TokenBack, func(j *spoiled) { j.at("c", Granted, "").Token = 12 }},
		{"the token of a grant lost before its first check", TokenBack, func(j *spoiled) {
			j.add(Event{At: 2405 * ms, Who: "d", Kind: Lost, Grant: 1, Token: 13})
		}},
		{"a belief after a pause longer than the lease", Outlived, func(j *spoiled) {
			e := j.at("b", Lost, "")
			e.Kind, e.Until = Believes, e.At
		}},
		{"a belief after the process was killed", Outlived, func(j *spoiled) {
			j.events = slices.DeleteFunc(j.events, func(e Event) bool { return e.Who != "a" })
			j.add(Event{At: 1081 * ms, Who: "a", Kind: Believes, Grant: 1, Token: 11})
		}},
		{"an acknowledged commit is lost", WriteLost, func(j *spoiled) { j.remove("b", Receipt, "b/1") }},
		{"an acknowledged write with a token is lost", WriteLost, func(j *spoiled) { j.at("c", Share, "").N = 0 }},
		{"a write with a token is counted twice", WrittenTwice, func(j *spoiled) { j.at("a", Share, "").N = 2 }},
		{"a refused write with a token is counted", WrittenTwice, func(j *spoiled) {
			j.add(Event{At: 2402 * ms, Who: "b", Kind: Share, Plain: true, N: 1})
		}},
		{"a refused commit is applied", RefusedLanded, func(j *spoiled) {
			j.add(Event{At: 2402 * ms, Kind: Receipt, Write: "b/3", N: 4, Token: 13})
		}},
		{"two commits wrote the same count", WrittenOver, func(j *spoiled) { j.at("b", Receipt, "b/1").N = 2 }},
		{"the counter is too low", CountWrong, func(j *spoiled) { j.at("", Count, "").N = 2 }},
		{"the counter skipped a number", CountWrong, func(j *spoiled) { j.at("b", Receipt, "b/1").N, j.at("", Count, "").N = 4, 4 }},
		{"the sum differs from its parts", CountWrong, func(j *spoiled) { j.at("", Sum, "").N = 4 }},
		{"a commit of an earlier grant after a commit of a later grant", StaleLanded, func(j *spoiled) {
			j.at("a", Receipt, "a/3").N, j.at("b", Receipt, "b/1").N = 3, 2
		}},
		{"a write with an old token after a write with a newer token", StaleLanded, func(j *spoiled) {
			j.at("b", Refused, "b/2").Kind = Landed
			j.add(Event{At: 2402 * ms, Who: "b", Kind: Share, Plain: true, N: 1})
		}},
		{"the key is not granted again", NotGrantedAgain, func(j *spoiled) { j.events = j.events[:len(j.events)-1] }},
		{"the key is granted again too late", NotGrantedAgain, func(j *spoiled) { j.events[len(j.events)-1].At = 2401*ms + 2*time.Second + 1 }},
		{"an answer without a request", BadJournal, func(j *spoiled) { j.remove("a", Sent, "a/1") }},
		{"a belief without a grant", BadJournal, func(j *spoiled) { j.remove("a", Granted, "") }},
		{"a belief after its end", BadJournal, func(j *spoiled) {
			j.add(Event{At: 2410 * ms, Who: "c", Kind: Believes, Grant: 1, Token: 13})
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			j := &spoiled{t, good()}
			tc.spoil(j)
			found := Verify(j.events, time.Second)
			if !slices.ContainsFunc(found, func(v Violation) bool { return v.Rule == tc.rule && v.Key == "k" }) {
				t.Errorf("found %v, want %q", found, tc.rule)
			}
		})
	}
}

func TestParseSkipsPartialJournalLine(t *testing.T) {
	events, torn := parse([]byte("\n{\"at\":1,\"kind\":\"asked\"}\n{\"at\":2,\"ki\n{\"at\":3,\"kind\":\"lost\"}"))
	if torn != 1 || len(events) != 2 || events[1].At != 3 {
		t.Errorf("%d torn, %v", torn, events)
	}
}
