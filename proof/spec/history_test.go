//go:build linux

package main

import (
	"context"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/leasehold-go/leasehold/internal/lab"
)

// asked returns the Asker that all tests share, because compiling the specification takes seconds.
var asked = sync.OnceValues(func() (*Asker, error) {
	ctx := context.Background()
	checker, err := NewChecker(ctx, ".", 0)
	if err != nil {
		return nil, err
	}
	return NewAsker(ctx, checker)
})

func newAsker(t *testing.T) *Asker {
	t.Helper()
	return lab.Must(asked())(t)
}

func TestMain(m *testing.M) {
	code := m.Run()
	if asker, err := asked(); err == nil {
		_ = asker.Close()
	}
	os.Exit(code)
}

func TestModelAllowsEveryHistoryOfSimulation(t *testing.T) {
	seeds := lab.Must(seedsAsked())(t)
	asker := newAsker(t)
	histories := lab.Must(asker.Histories(t.Context(), seeds, ""))(t)
	refused := lab.Must(asker.Refused(t.Context(), histories))(t)
	for _, r := range refused[:min(len(refused), 3)] {
		seed := strings.Fields(r.Name)[1]
		t.Errorf("%v\nagain: cd proof/spec && LEASEHOLD_SEED=%s go test -run '^%s$' .", r, seed, t.Name())
	}
	done := eventsOf(histories)
	t.Logf("%d histories, %d refused: %v", len(histories), len(refused), done)
	if os.Getenv("LEASEHOLD_SEED") != "" {
		return
	}
	lab.Want(t, "histories of the seeds with two keys", len(histories), 2*seeds)
	for _, kind := range []string{"grant", "renew", "release", "handover", "head", "join", "leave", "guard"} {
		for _, fate := range []string{"applied", "refused"} {
			lab.Want(t, "operations of the kind "+kind+" that were "+fate, done[kind+" "+fate] > 0, true)
		}
	}
}

// eventsOf counts events by kind. It counts a request when it arrives, not when it is sent. The
// kind of an arrival is the request's kind and result, such as "grant applied".
func eventsOf(histories []History) map[string]int {
	done := map[string]int{}
	for _, h := range histories {
		kinds := map[string]string{}
		for _, line := range h.Lines {
			switch f := strings.Fields(line); f[0] {
			case "sends":
				kinds[f[2]] = f[3]
			case "meets":
				done[kinds[f[1]]+" "+f[2]]++
			default:
				done[f[0]]++
			}
		}
	}
	return done
}

// A hand-over replaces grant #1 with grant #4, and a release ends grant #4. So the record no longer
// shows grant #1. Then the network delivers the write of grant #1 a second time. The model must
// allow this copy to be applied.
func TestModelAllowsWriteOfGrantToBeDeliveredTwice(t *testing.T) {
	histories := lab.Must(ReadHistories(strings.NewReader(`seed 959 key b
sends 1 #1 grant - - - #1
meets #1 applied #1 #1 held
hears 1 #1 #1 #1 held
sends 1 #4 handover - - - #4 #1
meets #4 applied #4 #4 held
sends 1 #7 release - - - #1 #4
meets #7 applied #7 #4 free
meets #1 applied #1 #1 held
`)))(t)
	refused := lab.Must(newAsker(t).Refused(t.Context(), histories))(t)
	lab.Want(t, "refused histories", refused, nil)
}

// Each case omits one rule from the code. The model must reject some history of that code.
// Otherwise the comparison of code and model would not check the rule.
func TestModelRejectsSomeHistoryOfCodeThatLacksProtocolRule(t *testing.T) {
	asker := newAsker(t)
	for _, broken := range []string{
		"a guard on the owner alone",
		"a new token for every request",
		"a grant that is resumed whatever it shows",
		"a lease that is over before its watcher has seen it pass",
		"a takeover of whatever version there is",
		"a grant that lands on its own release",
		"a release that names one attempt",
		"a hand-over to whoever stands in the queue",
	} {
		t.Run(broken, func(t *testing.T) {
			for _, seeds := range []int{20, 100, 500} { // try more seeds until the model rejects a history
				histories := lab.Must(asker.Histories(t.Context(), seeds, broken))(t)
				refused := lab.Must(asker.Refused(t.Context(), histories))(t)
				if len(refused) > 0 {
					t.Logf("%d of %d: %v", len(refused), len(histories), refused[0])
					return
				}
			}
			t.Error("the model accepts every history")
		})
	}
}

// lawful is a handwritten history that the model must accept. Client 0 renews its grant, gets no
// reply to the renewal, and hands the key to client 1. Client 1 dies, and client 2, which is next
// in the queue, takes the key over.
const lawful = `sends 0 g0 grant - - - g0
meets g0 applied g0 g0 held
hears 0 g0 g0 g0 held
believes 0 g0
sends 1 j1 join short - - j1
meets j1 applied g0 g0 held j1
hears 1 j1 g0 g0 held j1
sends 2 j2 join short - - j2
meets j2 applied g0 g0 held j1 j2
hears 2 j2 g0 g0 held j1 j2
sends 0 v0 renew - - - g0
meets v0 applied v0 g0 held j1 j2
sends 0 c0 guard - - - g0
meets c0 applied v0 g0 held j1 j2
sends 1 l1 read - - -
hears 1 l1 v0 g0 held j1 j2
doubts 0 g0
sends 0 h0 head short 0 j1 j1 g0
meets h0 applied h0 j1 held j2
hears 0 h0 h0 j1 held j2
sends 1 l2 read - - -
hears 1 l2 h0 j1 held j2
believes 1 j1
sends 1 v1 renew - - - j1
meets v1 applied v1 j1 held j2
hears 1 v1 v1 j1 held j2
sends 2 l3 read - - -
hears 2 l3 v1 j1 held j2
doubts 1 j1
sends 2 g2 grant - 0 j2 g2
meets g2 applied g2 g2 held
hears 2 g2 g2 g2 held
believes 2 g2
meets v0 refused g2 g2 held
doubts 2 g2
sends 2 r2 release - - - g2
meets r2 applied r2 g2 free`

// inherited is another history that the model must accept. Client 2 takes the key over from
// client 0. Client 1, which is in the queue, reads the record, which shows client 2 as the
// holder. Then client 2 hands the key to client 1.
const inherited = `sends 0 g0 grant - - - g0
meets g0 applied g0 g0 held
hears 0 g0 g0 g0 held
believes 0 g0
sends 1 j1 join short - - j1
meets j1 applied g0 g0 held j1
hears 1 j1 g0 g0 held j1
sends 2 l0 read - - -
hears 2 l0 g0 g0 held j1
doubts 0 g0
sends 2 g2 grant - - - g2
meets g2 applied g2 g2 held j1
hears 2 g2 g2 g2 held j1
believes 2 g2
sends 1 l1 read - - -
hears 1 l1 g2 g2 held j1
doubts 2 g2
sends 2 h2 head short 0 j1 j1 g2
meets h2 applied h2 j1 held
sends 1 l2 read - - -
hears 1 l2 h2 j1 held
believes 1 j1
doubts 1 j1`

func TestModelRejectsHistoryAtFirstWrongEvent(t *testing.T) {
	asker := newAsker(t)
	wrong := []struct {
		what          string
		of            string
		lines, become string
		at            string // event that the model must refuse
	}{
		{"a held key is granted", lawful, "join short - - j1\nmeets j1 applied g0 g0 held j1\nhears 1 j1 g0 g0 held j1", "grant - - - j1\nmeets j1 applied j1 j1 held", "meets j1 applied j1 j1 held"},
		{"a free key is refused", lawful, "meets g0 applied g0 g0 held", "meets g0 refused -", "meets g0 refused -"},
		{"the record does not show an applied renewal", lawful, "meets v0 applied v0 g0 held j1 j2", "meets v0 applied g0 g0 held j1 j2", "meets v0 applied g0 g0 held j1 j2"},
		{"a holder's renewal is refused", lawful, "meets v1 applied v1 j1 held j2\nhears 1 v1 v1 j1 held j2", "meets v1 refused h0 j1 held j2", "meets v1 refused h0 j1 held j2"},
		{"another client renews the grant", lawful, "sends 0 v0 renew", "sends 2 v0 renew", "meets v0 applied v0 g0 held j1 j2"},
		{"a late copy of a renewal is applied", lawful, "meets v0 refused g2 g2 held", "meets v0 applied v0 g0 held", "meets v0 applied v0 g0 held"},
		{"the second waiter in the queue is handed the key", lawful, "head short 0 j1 j1 g0\nmeets h0 applied h0 j1 held j2", "head short 1 j2 j2 g0\nmeets h0 applied h0 j2 held j1", "meets h0 applied h0 j2 held j1"},
		{"a new waiter becomes the head of the queue", lawful, "meets j2 applied g0 g0 held j1 j2", "meets j2 applied g0 g0 held j2 j1", "meets j2 applied g0 g0 held j2 j1"},
		{"a waiter stays in the queue after its grant", lawful, "meets g2 applied g2 g2 held", "meets g2 applied g2 g2 held j2", "meets g2 applied g2 g2 held j2"},
		{"a commit is applied after another client's grant", lawful, "meets v0 refused g2 g2 held", "sends 1 c1 guard - - - j1\nmeets c1 applied g2 g2 held", "meets c1 applied g2 g2 held"},
		{"a commit is applied twice", lawful, "meets c0 applied v0 g0 held j1 j2", "meets c0 applied v0 g0 held j1 j2\nmeets c0 applied v0 g0 held j1 j2", "meets c0 applied v0 g0 held j1 j2"},
		{"a holder still believes when it sends a hand-over", lawful, "doubts 0 g0\nsends 0 h0 head short 0 j1 j1 g0", "sends 0 h0 head short 0 j1 j1 g0\ndoubts 0 g0", "sends 0 h0 head short 0 j1 j1 g0"},
		{"a holder believes again after its hand-over", lawful, "believes 1 j1", "believes 1 j1\nbelieves 0 g0", "believes 0 g0"},
		{"two clients believe", lawful, "doubts 1 j1\nsends 2 g2 grant - 0 j2 g2\nmeets g2 applied g2 g2 held", "sends 2 g2 grant - 0 j2 g2\nmeets g2 applied g2 g2 held\ndoubts 1 j1", "doubts 1 j1"},
		{"a takeover without a read of the version", lawful, "hears 2 l3 v1 j1 held j2\n", "", "meets g2 applied g2 g2 held"},
		{"a head believes before it reads its grant", lawful, "hears 1 l2 h0 j1 held j2\n", "", "believes 1 j1"},
		{"a head trusts its grant from a read before another grant", inherited, "hears 1 l1 g2 g2 held j1\n", "", "believes 1 j1"},
	}
	histories := []History{{"lawful", strings.Split(lawful, "\n")}, {"inherited", strings.Split(inherited, "\n")}}
	for _, w := range wrong {
		if strings.Count(w.of, w.lines) != 1 {
			t.Fatalf("%s: the history has the lines to replace %d times", w.what, strings.Count(w.of, w.lines))
		}
		histories = append(histories, History{w.what, strings.Split(strings.Replace(w.of, w.lines, w.become, 1), "\n")})
	}
	refused := lab.Must(asker.Refused(t.Context(), histories))(t)
	at := map[string]string{}
	for _, r := range refused {
		at[r.Name] = r.Lines[r.At]
		if r.Name == "lawful" || r.Name == "inherited" {
			t.Error(r)
		}
	}
	for _, w := range wrong {
		if at[w.what] == "" {
			t.Errorf("%s: accepted", w.what)
		} else if at[w.what] != w.at {
			t.Errorf("%s: refused at %q, want %q", w.what, at[w.what], w.at)
		}
	}
}

func TestMalformedHistoryIsRejected(t *testing.T) {
	for _, lines := range [][]string{
		{"sends 0 a grant - - - a", "meets a applied"},
		{"sends 0 a grant - - - a", "meets a applied a a"},
		{"sends 0 a grant - - - a", "hears 0 b b b held"},
		{"sends none a grant - - - a"},
		{"sleeps 0 a"},
		{"sends 0 a leave - first b b"},
		append(sent(9), "meets a1 applied a1 a1 held a1 a2 a3 a4 a5 a6 a7 a8 a9"),
		slices.Concat(sent(31), arrived(31)),
	} {
		lab.WantFailed(t, "numbersOf", lab.ErrorOf(numbersOf(History{"it", lines})))
	}
}

func sent(n int) (lines []string) {
	for i := range n {
		lines = append(lines, "sends 0 a"+strconv.Itoa(i+1)+" grant - - - a"+strconv.Itoa(i+1))
	}
	return lines
}

func arrived(n int) (lines []string) {
	for i := range n {
		lines = append(lines, "meets a"+strconv.Itoa(i+1)+" refused -")
	}
	return lines
}
