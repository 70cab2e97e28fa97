package simulation

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/leasehold-go/leasehold/internal/lab"
)

// worlds lists the simulations, each with the name of its test. The field seeds is the number
// of new seeds that TestSimulationAtScaleFindsNoViolation runs in each of its rounds.
var worlds = []struct {
	test  string
	seeds uint64
	run   simulation
}{
	{"TestSimulationOfLocksFindsNoViolation", 5, simulate},
	{"TestSimulationOfSharedLeasesFindsNoViolation", 1, likewise(sharedLeases)},
	{"TestSimulationOfQueuesFindsNoViolation", 3, likewise(lines)},
	{"TestSimulationOfWrongQueueDataInRecordsFindsNoViolation", 1, likewise(wrongAdvice)},
	{"TestSimulationOfOnceOnlyWorkFindsNoViolation", 2, likewise(once)},
	{"TestDiningPhilosophersNeverStarve", 1, simulatePhilosophers},
	{"TestSimulationOfElectionsFindsNoViolation", 2, simulateEveryElection},
	{"TestSimulationOfSemaphoresFindsNoViolation", 2, simulateSemaphores},
	{"TestSimulationOfUnusualNetworkFaultsFindsNoViolation", 1, likewise(oddNetworks)},
	{"TestSimulationOfThrottledKeysFindsNoViolation", 1, likewise(failingKeys)},
	{"TestSimulationOfSuspendedMachinesFindsNoViolation", 1, likewise(suspends)},
	{"TestSimulationOfClientCloseFindsNoViolation", 1, likewise(closing)},
	{"TestSimulationOfBreakingHeldLocksFindsNoViolation", 1, likewise(breaking)},
	{"TestSimulationOfBreaksUnderSharedLeasesFindsNoViolation", 1, likewise(breakingShared)},
	{"TestSimulationOfDeletedRecordsFindsNoViolation", 1, likewise(deletion)},
	{"TestSimulationOfDamagedRecordsFindsNoViolation", 1, likewise(damage)},
	{"TestSimulationOfDetachAndResumeFindsNoViolation", 1, likewise(detaching)},
	{"TestSimulationOfGroupsFindsNoViolation", 1, likewise(groups)},
	{"TestSimulationOfOutagesFindsNoViolation", 1, likewise(outages)},
	{"TestSimulationOfAllFeaturesTogetherFindsNoViolation", 4, simulateEverything},
	{"TestSimulationOfLayoutsThatStoreExpiryFindsNoViolation", 1, simulateByTheClock},
	{"TestSimulationOfSkewedClocksFindsNoViolation", 1, skewedBy(wallSkew * 9 / 10)},
	{"TestSimulationOfWallClockChangesFindsNoViolation", 1, likewise(wallClocksAreSet)},
	{"TestSimulationOfClocksWithinMaxSkewFindsNoViolation", 2, likewise(boundedClocks(1))},
	{"TestSimulationOfQueuesWithMaxSkewFindsNoViolation", 1, likewise(boundedClockQueues)},
	{"TestSimulationOfCloseDuringOnceOnlyWorkFindsNoViolation", 1, likewise(onceBeforeClose)},
	{"TestSimulationOfOnceOnlyWorkWithMaxSkewFindsNoViolation", 1, likewise(boundedClockOnce)},
	{"TestSimulationOfRefusedRequestsFindsNoViolation", 1, simulateRefusals},
}

// TestSimulationAtScaleFindsNoViolation runs rounds of all simulations (doc.go describes the
// environment variables). A test binary runs one seed at a time, on one thread. So the test starts
// a process of the binary (a lane) for each processor, and divides the rounds among the lanes.
func TestSimulationAtScaleFindsNoViolation(t *testing.T) {
	if lane := os.Getenv("LEASEHOLD_LANE"); lane != "" {
		runLane(t, lane)
		return
	}
	faulted, lasts := os.Getenv("LEASEHOLD_FAULTED"), os.Getenv("LEASEHOLD_FOR")
	if faulted == "" && lasts == "" {
		t.Skip("runs only if LEASEHOLD_FAULTED or LEASEHOLD_FOR is set, as in make check and make soak")
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if lasts != "" {
		limited, cancel := context.WithTimeout(ctx, lab.Must(time.ParseDuration(lasts))(t))
		defer cancel()
		ctx = limited
	}
	wanted := int(^uint(0) >> 1)
	if faulted != "" {
		wanted = int(mustUint(t, faulted))
	}
	first := uint64(time.Now().Unix()) * 1000
	if s := os.Getenv("LEASEHOLD_FIRST"); s != "" {
		first = mustUint(t, s)
	}
	fmt.Printf("seeds from %d on\n", first)
	done := inLanes(ctx, t, first, wanted)
	fmt.Print(done)
	if got := sum(done.Faulted); faulted != "" && got < wanted && !t.Failed() {
		t.Errorf("%d operations have met a fault, want %d", got, wanted)
	}
}

// inLanes starts the lanes and adds up their results. It stops the lanes when the wanted number of
// operations have met a fault, a lane has failed, or ctx is done.
func inLanes(ctx context.Context, t *testing.T, first uint64, wanted int) *tally {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	type news struct {
		lane int
		done *tally
	}
	told := make(chan news)
	lanes := make([]*tally, runtime.NumCPU())
	var running sync.WaitGroup
	for i := range lanes {
		lanes[i] = newTally()
		lane := exec.CommandContext(ctx, os.Args[0], "-test.run=^TestSimulationAtScaleFindsNoViolation$", "-test.timeout=0")
		lane.Env = append(os.Environ(), fmt.Sprintf("LEASEHOLD_LANE=%d/%d", i, len(lanes)), fmt.Sprintf("LEASEHOLD_FIRST=%d", first))
		lane.Stderr = os.Stderr
		out := lab.Must(lane.StdoutPipe())(t)
		lab.OK(t, lane.Start())
		running.Go(func() {
			lines := bufio.NewScanner(out)
			lines.Buffer(nil, 1<<24) // a line of a lane's output may contain a whole history
			for lines.Scan() {
				if done := newTally(); !strings.HasPrefix(lines.Text(), "{") || json.Unmarshal(lines.Bytes(), done) != nil {
					fmt.Println(lines.Text())
				} else {
					told <- news{i, done}
				}
			}
			if err := lane.Wait(); ctx.Err() == nil {
				t.Errorf("lane %d has ended: %v", i, err)
				stop()
			}
		})
	}
	go func() { running.Wait(); close(told) }()
	const tellEvery = time.Minute
	last := time.Now()
	all := newTally()
	for n := range told {
		lanes[n.lane], all = n.done, newTally()
		for _, done := range lanes {
			all.add(done)
		}
		if sum(all.Faulted) >= wanted {
			stop()
		}
		if time.Since(last) > tellEvery {
			last = time.Now()
			fmt.Printf("%v\n%v", last.UTC().Format(time.TimeOnly), all)
		}
	}
	return all
}

// runLane runs the rounds of one lane until one of them fails or the lane is killed. After
// each round it prints the totals so far.
func runLane(t *testing.T, lane string) {
	var i, of uint64
	lab.OK(t, lab.ErrorOf(fmt.Sscanf(lane, "%d/%d", &i, &of)))
	first := mustUint(t, os.Getenv("LEASEHOLD_FIRST"))
	for n := i; !t.Failed(); n += of {
		for _, w := range worlds {
			for i := range w.seeds {
				seed := first + n*w.seeds + i
				t.Run(fmt.Sprint(w.test, "/", seed), func(t *testing.T) { w.run(t, seed, world{}) })
			}
		}
		fmt.Printf("%s\n", lab.Must(json.Marshal(total.tally))(t))
	}
}

// The run at scale includes only the simulations in the list worlds. Other simulations would run
// with only the few seeds of their own tests.
func TestListOfSimulationsToRunAtScaleIsComplete(t *testing.T) {
	at := map[string]bool{}
	for _, w := range worlds {
		at[w.test] = true
	}
	entry := regexp.MustCompile(`func (Test\w+)\(t \*testing\.T\) {\s+forSeeds\(`)
	found := 0
	for _, name := range lab.Must(filepath.Glob("*_test.go"))(t) {
		for _, m := range entry.FindAllSubmatch(lab.Must(os.ReadFile(name))(t), -1) {
			found++
			if !at[string(m[1])] {
				t.Errorf("worlds does not list %s", m[1])
			}
		}
	}
	lab.Want(t, "tests that call forSeeds", found, len(worlds))
}
