//go:build linux

package processes

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/proof/interop/process"
)

// crew is a group of worker processes that use the same tables. When a process ends, a new
// process replaces it.
type crew struct {
	t         testing.TB
	name      string
	seed      uint64
	path      string // path of the journal
	journal   *journal
	watcher   *watcher
	tables    *tables // the test's own access to the tables; network faults of the workers do not affect it
	locks     *leasehold.Client
	contended []string // keys with wait queues; the test also kills and suspends the heads of these queues

	mu    sync.Mutex
	turns int // number of calls of the method victim
	rand  *rand.Rand
	slots []*slot
	over  bool
	ended sync.WaitGroup
}

// slot is a place for one process in a crew. When the process in a slot has ended, a new
// process starts in the slot.
type slot struct {
	crew  *crew
	name  string
	start func(who string) *exec.Cmd
	ends  bool // true if the processes in this slot end by themselves, without a fault

	// The crew's mutex guards these fields.
	process *process.Process // nil while no process runs in the slot
	who     string
	busy    bool // the test is killing or suspending the process
	killed  bool // the test has killed the process
	fault   bool // the kill is one of the requested faults
	head    bool // the process was at the head of a queue when it was killed
}

// newCrew opens a journal, and creates the tables at the given place. The test itself also uses
// this place. In a test with network faults, the place must bypass the network of the workers.
func newCrew(t testing.TB, name string, at place) *crew {
	t.Helper()
	c := &crew{t: t, name: name, seed: seed(t), path: filepath.Join(t.TempDir(), "journal")}
	c.rand = rand.New(rand.NewPCG(c.seed, 0))
	var err error
	if c.journal, err = openJournal(c.path, "tormentor"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.journal.close)
	t.Cleanup(c.keepJournal)
	if c.watcher, err = watch(c.path); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.watcher.close)
	if c.tables, err = at.open(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.tables.close)
	if err := c.tables.create(t.Context()); err != nil {
		t.Fatal(err)
	}
	if c.locks, err = leasehold.New(c.tables.db, leasehold.Config{Table: lockTable}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.kill)
	return c
}

// worker adds a worker with the given task to the crew.
func (c *crew) worker(task task) {
	c.add(false, func(who string) *exec.Cmd {
		task := task // a copy, because each process gets its own name and seed
		task.Who, task.Journal, task.Seed = who, c.path, c.chance().Uint64()
		return again(workerVariable, task)
	})
}

// The function "again" returns a command that starts this program as a new process, with a task in
// the given environment variable.
func again(variable string, task any) *exec.Cmd {
	text, err := json.Marshal(task)
	if err != nil {
		panic(err)
	}
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), variable+"="+string(text))
	return cmd
}

// add adds a slot to the crew. It starts a process in the slot, and another process each time
// the process in the slot has ended.
func (c *crew) add(ends bool, start func(who string) *exec.Cmd) {
	s := &slot{crew: c, name: fmt.Sprintf("%s-%d", c.name, len(c.slots)), start: start, ends: ends}
	c.mu.Lock()
	c.slots = append(c.slots, s)
	c.mu.Unlock()
	c.ended.Go(s.run)
}

func (s *slot) run() {
	for life := 1; ; life++ {
		who := fmt.Sprintf("%s.%d", s.name, life)
		cmd := s.start(who)
		said := &process.Tail{}
		cmd.Stderr = said
		p, err := process.Start(cmd)
		if err != nil {
			s.crew.t.Errorf("%s did not start: %v", who, err)
			return
		}
		s.crew.mu.Lock()
		over := s.crew.over
		s.process, s.who, s.killed, s.fault, s.head = p, who, over, false, false
		s.crew.mu.Unlock()
		if over {
			_ = p.Kill()
		}
		<-p.Ended()
		gone := now()
		s.crew.mu.Lock()
		s.process = nil
		bySignal := signalOf(p.Err()) == syscall.SIGKILL
		killed, fault, head := s.killed && bySignal, s.fault && bySignal, s.head
		over = s.crew.over
		s.crew.mu.Unlock()
		end := Event{At: gone, Who: who, Kind: Ended}
		if fault {
			end.Kind, end.Text = Killed, asHead(head)
		}
		s.crew.journal.write(end)
		// asked is true if the process ended because the crew sent SIGTERM. A worker handles
		// SIGTERM and exits. If it has not yet installed the handler, SIGTERM kills it.
		asked := over && (p.Err() == nil || signalOf(p.Err()) == syscall.SIGTERM)
		if !killed && !s.ends && !asked {
			s.crew.t.Errorf("%s ended by itself: %v\n%s", who, p.Err(), said)
		}
		if over {
			return
		}
	}
}

// chance returns a new source of random numbers, which only one goroutine may use.
func (c *crew) chance() *rand.Rand {
	c.mu.Lock()
	defer c.mu.Unlock()
	return rand.New(rand.NewPCG(c.rand.Uint64(), 0))
}

// victim chooses a worker for a fault, and returns its slot, process and name. It prefers holders,
// because their faults do the most harm. With queues (contended), every second victim is the head
// of a queue. This provokes hand-overs to dead or suspended waiters.
func (c *crew) victim(chance *rand.Rand) (*slot, *process.Process, string) {
	again := time.NewTicker(5 * time.Millisecond)
	defer again.Stop()
	c.mu.Lock()
	c.turns++
	onlyHeads := len(c.contended) > 0 && c.turns%2 == 0
	only := onlyHeads || c.turns%5 > 0
	c.mu.Unlock()
	for tries := 0; ; tries++ {
		wanted := c.watcher.holders()
		if onlyHeads {
			wanted = c.heads()
		}
		c.mu.Lock()
		var fit []*slot
		for _, s := range c.slots {
			if s.process != nil && !s.busy && (!only || tries > 200 || wanted[s.who] != "") {
				fit = append(fit, s)
			}
		}
		if len(fit) > 0 {
			s := fit[chance.IntN(len(fit))]
			s.busy = true
			p, who := s.process, s.who
			c.mu.Unlock()
			return s, p, who
		}
		c.mu.Unlock()
		<-again.C
	}
}

// heads returns the workers at the heads of the queues: a map from the worker's name to the
// key of the queue.
func (c *crew) heads() map[string]string {
	heads := map[string]string{}
	for _, key := range c.contended {
		record, err := c.locks.Get(context.Background(), key)
		switch {
		case errors.Is(err, leasehold.ErrNotFound): // no client has acquired the key yet
		case err != nil:
			c.t.Errorf("the queue of %s: %v", key, err)
		case len(record.Waiting) > 0:
			who, _, _ := strings.Cut(record.Waiting[0].Owner, "/")
			heads[who] = key
		}
	}
	return heads
}

func (c *crew) spare(s *slot) {
	c.mu.Lock()
	s.busy = false
	c.mu.Unlock()
}

// torment kills random workers, and suspends random workers with SIGSTOP. The parameters "kills"
// and "pauses" are the numbers of kills and suspensions. At most atATime of them happen at the same
// time. Each suspension is longer than the lease.
func (c *crew) torment(kills, pauses, atATime int, lease time.Duration) {
	faults := append(slices.Repeat([]bool{true}, kills), make([]bool, pauses)...)
	c.chance().Shuffle(len(faults), func(i, j int) { faults[i], faults[j] = faults[j], faults[i] })
	queue := make(chan bool, len(faults))
	for _, f := range faults {
		queue <- f
	}
	close(queue)
	var all sync.WaitGroup
	for range atATime {
		chance := c.chance()
		all.Go(func() {
			for kill := range queue {
				if kill {
					c.killOne(chance)
				} else {
					c.pauseOne(chance, lease)
				}
			}
		})
	}
	all.Wait()
}

// killOne kills one worker at a random time.
func (c *crew) killOne(chance *rand.Rand) {
	for {
		s, p, who := c.victim(chance)
		wait(time.Duration(chance.Int64N(int64(20 * time.Millisecond))))
		head := c.heads()[who] != ""
		c.mu.Lock()
		alive := s.who == who && s.process == p && !s.fault // alive is false if another fault has killed the process
		s.killed, s.fault, s.head = s.killed || alive, s.fault || alive, s.head || alive && head
		c.mu.Unlock()
		if alive {
			if err := p.Kill(); err != nil {
				c.t.Errorf("kill %s: %v", who, err)
			}
			alive = signalOf(p.Err()) == syscall.SIGKILL // alive is false if the process had just ended by itself
		}
		c.spare(s)
		if alive {
			return
		}
	}
}

// signalOf returns the signal that killed a process, or 0 if the process exited.
func signalOf(err error) syscall.Signal {
	var exit *exec.ExitError
	if !errors.As(err, &exit) {
		return 0
	}
	status, ok := exit.Sys().(syscall.WaitStatus)
	if !ok || !status.Signaled() {
		return 0
	}
	return status.Signal()
}

// pauseOne suspends one worker (SIGSTOP) for longer than its lease.
func (c *crew) pauseOne(chance *rand.Rand, lease time.Duration) {
	for {
		s, p, who := c.victim(chance)
		wait(time.Duration(chance.Int64N(int64(20 * time.Millisecond))))
		head := c.heads()[who] != ""
		if p.Stop() == nil { // an error means that the process has ended by itself
			c.journal.write(Event{Who: who, Kind: Stopped, Text: asHead(head)})
			wait(lease + time.Duration(chance.Int64N(int64(lease/2))))
			c.journal.write(Event{Who: who, Kind: Continued})
			if err := p.Continue(); err != nil {
				c.t.Errorf("continue %s: %v", who, err)
			}
			c.spare(s)
			return
		}
		c.spare(s)
	}
}

// wait sleeps for d, the duration of a fault or of a delay.
func wait(d time.Duration) { <-time.After(d) }

// finish calls heal, which waits until every key has been granted after the last fault. Then
// finish ends the processes of the crew. It returns the events in the journal, and events that
// describe the contents of the tables.
func (c *crew) finish() []Event {
	c.t.Helper()
	c.heal()
	return c.end()
}

// end ends the processes of the crew. It returns the events in the journal, and events that
// describe the contents of the tables.
func (c *crew) end() []Event {
	c.t.Helper()
	c.stop()
	found, err := c.tables.read(c.t.Context())
	if err != nil {
		c.t.Fatal(err)
	}
	for _, e := range found {
		c.journal.write(e)
	}
	return c.events()
}

// heal records that all faults have ended. It waits until every key has been granted again, but
// not longer than the longest lease plus the constant bound.
func (c *crew) heal() {
	healed := now()
	c.journal.write(Event{Kind: Healed, At: healed})
	keys, longest := map[string]bool{}, time.Duration(0)
	for _, e := range c.events() {
		if e.Kind == Asked {
			keys[e.Key], longest = true, max(longest, e.Lease)
		}
	}
	c.watcher.await(longest+bound, func(e Event) bool {
		if e.Kind == Granted && e.At > healed {
			delete(keys, e.Key)
		}
		return len(keys) == 0
	})
}

// stop sends SIGTERM to every process, and waits until all processes have ended.
func (c *crew) stop() {
	c.mu.Lock()
	c.over = true
	for _, s := range c.slots {
		if s.process != nil {
			_ = s.process.Signal(syscall.SIGTERM)
		}
	}
	c.mu.Unlock()
	gone := make(chan struct{})
	go func() { c.ended.Wait(); close(gone) }()
	select {
	case <-gone:
	case <-time.After(time.Minute):
		c.t.Error("a worker did not end within a minute of SIGTERM")
		c.kill()
	}
}

// kill kills the processes that are still running.
func (c *crew) kill() {
	c.mu.Lock()
	c.over = true
	for _, s := range c.slots {
		if s.process != nil {
			s.killed = true
			_ = s.process.Signal(syscall.SIGKILL)
		}
	}
	c.mu.Unlock()
	c.ended.Wait()
}

// keepJournal copies the journal to a permanent file if the test has failed.
func (c *crew) keepJournal() {
	if !c.t.Failed() {
		return
	}
	kept, err := os.CreateTemp("", c.name+"-*.journal")
	if err != nil {
		c.t.Error(err)
		return
	}
	defer kept.Close()
	text, err := os.ReadFile(c.path)
	if err == nil {
		_, err = kept.Write(text)
	}
	c.t.Logf("the journal is in %s (%v)", kept.Name(), err)
}

// events returns the events in the journal.
func (c *crew) events() []Event {
	text, err := os.ReadFile(c.path)
	if err != nil {
		c.t.Fatal(err)
	}
	events, torn := parse(text)
	if torn > 0 {
		c.t.Logf("%s: a kill has torn %d lines of the journal", c.name, torn)
	}
	return events
}
