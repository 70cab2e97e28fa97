//go:build linux

package contest

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/leasehold-go/leasehold/internal/lab"
	"github.com/leasehold-go/leasehold/proof/interop/engines"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestBenchmarkScenariosAreFoundByName(t *testing.T) {
	tables := map[string]bool{}
	for _, s := range Scenarios() {
		found, err := Find(s.Name)
		if err != nil || len(found) != 1 || found[0].Name != s.Name {
			t.Errorf("%s: %v, %v", s.Name, found, err)
		}
		for _, table := range s.Tables {
			lab.Want(t, "two tables are called "+table.Name, tables[table.Name], false)
			tables[table.Name] = true
		}
	}
	lab.WantFailed(t, "Find of an unknown scenario", lab.ErrorOf(Find("no such")))
	lab.Want(t, "scenarios without a name", len(lab.Must(Find())(t)), len(Scenarios()))
}

func TestEveryBenchmarkedLibraryHasValidSettings(t *testing.T) {
	names := map[string]bool{}
	for _, c := range Contenders() {
		if names[c.Name] || c.How == "" {
			t.Errorf("%q is listed twice, or its How is empty", c.Name)
		}
		names[c.Name] = true
		plays := false
		for _, s := range Scenarios() {
			if c.reason(s) != "" {
				continue
			}
			plays = true
			set := c.settings(s)
			if set.Lease == 0 || c.peer.Heartbeats && set.Heartbeat == 0 || !c.peer.Heartbeats && set.Heartbeat != 0 {
				t.Errorf("%s in %s: a lease of %v, renewed every %v", c.Name, s.Name, set.Lease, set.Heartbeat)
			}
		}
		lab.Want(t, c.Name+" takes part in a scenario", plays, true)
	}
}

func TestScenarioDecidesWhichLibrariesAreBenchmarkedTogether(t *testing.T) {
	there := []Contender{{Name: "a"}, {Name: "b", quiet: true}, {Name: "c"}, {Name: "d", quiet: true}}
	for _, c := range []struct {
		scenario Scenario
		want     []string
	}{
		{Scenario{kind: contending}, []string{"a", "c", "b; d"}},
		{Scenario{kind: cycling}, []string{"a", "b", "c", "d"}},
		{Scenario{kind: takingOver, together: true}, []string{"a; b; c; d"}},
	} {
		var got []string
		for _, batch := range batches(c.scenario, there) {
			got = append(got, names(batch))
		}
		lab.Want(t, "batches", got, c.want)
	}
}

// contest returns a contest of one round between the first two contenders: leasehold with default
// settings, and leasehold with tuned settings. It runs on dynoxide without an added network delay.
func contest(t *testing.T, scenario string, progress func(string, ...any)) *Contest {
	t.Helper()
	scenarios := lab.Must(Find(scenario))(t)
	return &Contest{Engine: engines.Dynoxide, Rounds: 1, Scenarios: scenarios, Contenders: Contenders()[:2], Progress: progress}
}

func silent(string, ...any) {}

func TestBenchmarkMeasuresRequestsAndPriceOfAcquireAndRelease(t *testing.T) {
	r := lab.Must(contest(t, "cycle", silent).Play(t.Context()))(t)
	if len(r.Runs) != 1 || r.Runs[0].Failed != "" {
		t.Fatalf("runs %+v, want one run: ours, tuned takes no part", r.Runs)
	}
	got := r.Runs[0].Tables["cycle"]
	for figure, want := range map[string]float64{"requests": 2, "writes": 2, "reads": 0, "dollars": 1.25} {
		lab.Want(t, figure, got[figure], want)
	}
	if got["cycle50"] <= 0 || got["cycle99"] < got["cycle50"] || r.Runs[0].RoundTrip <= 0 {
		t.Errorf("times %+v over %v", got, r.Runs[0].RoundTrip)
	}
	if len(r.Absent) != 1 || r.Absent[0].Contender != "ours, tuned" {
		t.Errorf("absent are %+v", r.Absent)
	}
}

func TestContentionIsMeasuredInOpenAndClosedLoop(t *testing.T) {
	c := contest(t, "contention-4", silent)
	c.Contenders = Contenders()[:3] // only two of these three run, because "ours, tuned" has nothing to tune in this scenario
	r := lab.Must(c.Play(t.Context()))(t)
	lab.Want(t, "runs, one of each of two contenders", len(r.Runs), 2)
	for _, run := range r.Runs {
		closed, open := run.Tables["contention-4-closed"], run.Tables["contention-4-open"]
		if run.Failed != "" || closed["section"] < ms(hold) || closed["requests"] < 2 || closed["jain"] > 1 || open["served"] <= 0 || open["served"] > 100 {
			t.Errorf("%+v", run)
		}
	}
}

func TestInterruptedBenchmarkReturnsResultsSoFar(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	errEnough := errors.New("enough")
	c := contest(t, "cycle", silent)
	c.Rounds = 2
	c.Progress = func(format string, args ...any) {
		if strings.HasPrefix(format, "round") && args[0] == 2 {
			cancel(errEnough)
		}
	}
	r, err := c.Play(ctx)
	lab.WantErr(t, "Play", err, errEnough)
	lab.Want(t, "runs, of the first round only", len(r.Runs), 1)
}

func TestBenchmarkMeasuresProcessorTimeAndMemory(t *testing.T) {
	lab.WantRange(t, "bytes of this process", residentBytes(os.Getpid()), 1<<20, 1<<34)
	before, machine := processorTime(os.Getpid()), processors()
	for processorTime(os.Getpid()) < before+50*time.Millisecond { // keep a processor busy until this process has used 50 ms of processor time
		_ = strings.Repeat("x", 1<<20)
	}
	if share := machine.busy(); share <= 0 || share > 1 {
		t.Errorf("the machine was busy for a share of %v", share)
	}
	m := thisMachine()
	if m.Processors == 0 || m.Memory == "" || m.Kernel == "" || m.Go == "" {
		t.Errorf("%+v", m)
	}
}
