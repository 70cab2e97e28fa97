package simulation

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/election"
	"github.com/leasehold-go/leasehold/internal/lab"
)

// This test simulates elections. Every process leads whenever it is elected, observes the
// leader, and asks it to step down. Leaders commit under their terms, resign, are cut off from
// the table, and crash. The test checks the invariants of the protocol, and also that
//
//   - the fencing tokens of the terms increase,
//   - no two functions that a process has passed to Lead run at the same time,
//   - Lead returns only if the leader resigned, the context of Lead is done, or AWS refused
//     a request before the process led for the first time,
//   - an observer reports only leaders that have been elected,
//   - a leader steps down only after a request that names its own grant,
//   - once the faults have stopped, a leader resigns if it is asked to,
//   - once the faults have stopped, a dead leader is replaced within its lease and a
//     poll, and every observer reports the new leader within one more poll.
func TestSimulationOfElectionsFindsNoViolation(t *testing.T) {
	forSeeds(t, recipeSeeds, simulateEveryElection)
}

func simulateEveryElection(t *testing.T, seed uint64, watched world) {
	simulateElections(t, seed, electionPlan{world: watched})
}

// electionPlan is the configuration of a run of elections. In tests of the simulation itself,
// a broken variant takes the place of Lead or Observe.
type electionPlan struct {
	world
	lead    func(ctx context.Context, e *election.Election, value string, fn leads) error
	observe func(ctx context.Context, e *election.Election) iter.Seq2[election.Leader, error]
}

// leads is the type of the function that a process passes to Lead.
type leads = func(context.Context, *leasehold.Lock) error

// voter is one process of a run of elections. It leads whenever it is elected,
// and it observes the leader all the time.
type voter struct {
	*process
	plan   electionPlan
	e      *election.Election
	seed   uint64
	resign chan struct{} // a value sent on this channel makes the leader resign; used only after the faults have stopped

	mu      sync.Mutex
	running int             // number of functions that this process has passed to Lead and that have not returned
	term    *leasehold.Lock // latest term in which this process led
	shown   election.Leader // leader that Observe reported last to this process
}

// slowest is the rate of the slowest clock of any process. longestPoll is the longest
// pause between two reads of a waiter or an observer.
const (
	slowest     = 0.96
	longestPoll = 2 * time.Second
)

func simulateElections(t *testing.T, seed uint64, plan electionPlan) {
	if plan.lead == nil {
		plan.lead = func(ctx context.Context, e *election.Election, value string, fn leads) error {
			return e.Lead(ctx, value, fn)
		}
	}
	if plan.observe == nil {
		plan.observe = func(ctx context.Context, e *election.Election) iter.Seq2[election.Leader, error] {
			return e.Observe(ctx)
		}
	}
	synctest.Test(t, func(t *testing.T) {
		s := newRun(t, seed, plan.world)
		rng := rand.New(rand.NewPCG(seed, 0))
		ctx, stop := context.WithCancel(t.Context())
		var voters []*voter
		var wg sync.WaitGroup
		join := func(id int) {
			v := &voter{process: s.newClient(id, rng), plan: plan, resign: make(chan struct{})}
			v.e, v.seed = lab.Must(election.New(v.client, keyNames[0]))(t), rng.Uint64()
			voters = append(voters, v)
			wg.Go(func() { v.stand(onBehalf(ctx, "the candidate")) })
			wg.Go(func() { v.watch(onBehalf(ctx, "the observer")) })
			wg.Go(func() { v.asks(onBehalf(ctx, "the operator")) })
		}
		for id := range 2 + rng.IntN(2) {
			join(id)
		}
		time.Sleep(2 * faultsLast)
		close(s.quit)
		time.Sleep(6 * time.Second) // delayed requests arrive in this time

		join(lastClient) // the last client joins the election, because all earlier processes may have crashed
		var last *leasehold.Lock
		for i := range 4 {
			leader := awaitLeader(s, voters, last)
			if leader == nil {
				break
			}
			last = leader.leadsNow()
			time.Sleep(longestPoll + 100*time.Millisecond)
			for _, v := range voters {
				v.checkView(leader)
			}
			switch {
			case i == 0:
				voters[len(voters)-1].mustStepDown(onBehalf(ctx, "who asks"), leader)
			case leader.id == lastClient:
				leader.resigns(last)
			default:
				leader.dies()
			}
		}

		stop()
		wg.Wait()
		s.closeAll()
		time.Sleep(20 * time.Second) // the network delivers the last copies of requests in this time
		s.finish()
		s.checkTerms()
		s.report(t, seed)
	})
}

// stand calls Lead repeatedly, so that the process leads whenever it is elected.
func (v *voter) stand(ctx context.Context) {
	r := newWorker(v.seed, v.id)
	v.rest(r, 20)
	for ctx.Err() == nil {
		err := v.plan.lead(mayWait(ctx), v.e, "of "+fmt.Sprint(v.id), v.lead)
		if err != nil && ctx.Err() == nil && !v.isFirst(err) {
			v.violated("of elections: Lead of process %d ended with %v", v.id, err)
		}
		v.rest(r, 500)
	}
}

// isFirst reports whether err is a refusal by AWS that came before the process led for the first
// time. While the context of Lead is live, no other error may end Lead. The method gaveUp checks
// whether this refusal was allowed to end the campaign.
func (v *voter) isFirst(err error) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	refusal, _ := isRefusal(err)
	return refusal && v.term == nil
}

// lead is the function that the process passes to Lead. It does work until it resigns or its
// context is cancelled.
func (v *voter) lead(ctx context.Context, term *leasehold.Lock) error {
	v.begins(term)
	defer v.ends()
	v.believes(v.process, term)
	r := newWorker(v.seed, v.id, term.Token())
	for {
		select {
		case <-ctx.Done():
			v.checkAsked(ctx, term)
			if r.IntN(2) == 0 {
				// Sometimes the function notices only after a while that its context is cancelled.
				v.rest(r, 15_000)
			}
			return context.Cause(ctx)
		case <-v.resign:
			return nil
		case <-time.After(upTo(r, 1500*time.Millisecond)):
		}
		p := r.IntN(100)
		if !v.goesOn() {
			p = 100 // the faults have stopped, so the leader neither resigns nor crashes, and only commits
		}
		switch {
		case p < 12:
			return nil
		case p < 36:
			v.cutOff(r, 8*time.Second)
		case p < 39:
			v.crash(r)
		case p < 43:
			v.jump(r, 6*time.Second)
		default:
			v.commit(r, term, 3*time.Second)
		}
	}
}

func (v *voter) begins(term *leasehold.Lock) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.running++
	v.term = term
	if v.running > 1 {
		v.violated("of elections: %d functions run at once in process %d", v.running, v.id)
	}
}

func (v *voter) ends() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.running--
}

// asks acts as an operator. It asks the leader to step down again and again, until the faults stop.
func (v *voter) asks(ctx context.Context) {
	r := newWorker(v.seed, v.id, "asks")
	for v.goesOn() {
		v.rest(r, 6000)
		within, cancel := context.WithTimeout(ctx, 2*time.Second)
		_ = v.e.StepDown(within) // the result does not matter, because checkAsked checks every leader that steps down
		cancel()
	}
}

// checkAsked is called when a leader's context is cancelled. If the cause is a request to step
// down, the request in the record must name this term. Once the term has ended, this is not
// checked: the record may then name a later leader.
func (v *voter) checkAsked(ctx context.Context, term *leasehold.Lock) {
	if !errors.Is(context.Cause(ctx), election.ErrAsked) || v.isDead() {
		return
	}
	record := term.Record()
	asked, _ := v.table.Item(keyNames[0])["stepDown"].(*types.AttributeValueMemberM)
	if term.Err() == nil && (asked == nil || lab.Text(asked.Value, "grantId") != record.Grant) {
		v.violated("of elections: process %d steps down without a request to its term", v.id)
	}
}

// mustStepDown asks the leader to step down. It reports a violation if the leader still leads
// after 25 s. These 25 s include the time in which the leader ends its work.
func (v *voter) mustStepDown(ctx context.Context, leader *voter) {
	ctx, cancel := context.WithTimeout(ctx, 25*time.Second)
	defer cancel()
	term := leader.leadsNow()
	if err := v.e.StepDown(ctx); err != nil && term != nil && term.Err() == nil {
		v.violated("of elections: process %d was asked to step down, but still leads: %v", leader.id, err)
	}
}

// resigns makes the leader resign from the term. It returns early if the term ends in
// another way, for example after a request to step down.
func (v *voter) resigns(term *leasehold.Lock) {
	if term == nil {
		return
	}
	select {
	case v.resign <- struct{}{}:
	case <-term.Context().Done():
	}
}

// dies crashes the process. Unlike the method crash, it does so even if world.only or world.kinds
// excludes crashes.
func (v *voter) dies() {
	v.process.mu.Lock()
	defer v.process.mu.Unlock()
	v.dead = true
}

// watch observes the election until the run ends. It checks that each reported
// leader was granted the election's key.
func (v *voter) watch(ctx context.Context) {
	for r := newWorker(v.seed, v.id, "watches"); v.watches(ctx); {
		v.rest(r, 500)
	}
}

// watches observes the election until the sequence of leaders ends. It returns true if AWS
// refused the first read. The caller then calls watches again.
func (v *voter) watches(ctx context.Context) (again bool) {
	shown := false
	for l, err := range v.plan.observe(ctx, v.e) {
		if refusal, denied := isRefusal(err); refusal && !shown && (denied || !v.wasAccepted()) {
			return true
		}
		if err != nil {
			v.violated("of elections: Observe of process %d ended with %v", v.id, err)
			return false
		}
		shown = true
		v.mu.Lock()
		v.shown = l
		v.mu.Unlock()
		if l == (election.Leader{}) {
			continue
		}
		v.checker.mu.Lock()
		by, ok := v.terms[[2]string{l.Owner, strconv.FormatInt(l.Token, 10)}]
		v.checker.mu.Unlock()
		if !ok || l.Value != "of "+fmt.Sprint(by) {
			v.violated("of elections: process %d observes %v, but no process was granted that term", v.id, l)
		}
	}
	return false
}

// leadsNow returns the term in which the process leads now. It returns nil if the process
// is dead or does not lead.
func (v *voter) leadsNow() *leasehold.Lock {
	if v.isDead() {
		return nil
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.running == 0 || v.term.Err() != nil {
		return nil
	}
	return v.term
}

// awaitLeader waits until a process leads in a term other than "last", and returns that process.
// After a lease by the slowest clock, plus the longest pause between polls, plus 100 ms, it reports
// a violation and returns nil.
func awaitLeader(s *run, voters []*voter, last *leasehold.Lock) *voter {
	lease := float64(usualLease) / slowest
	most := time.Duration(lease) + longestPoll + 100*time.Millisecond
	for began := time.Now(); time.Since(began) < most; time.Sleep(10 * time.Millisecond) {
		for _, v := range voters {
			if term := v.leadsNow(); term != nil && term != last {
				return v
			}
		}
	}
	s.violated("of elections: no leader within %v of the end of the faults or of the last term", most)
	return nil
}

// checkView checks that the process observes the given leader, unless the process is dead.
func (v *voter) checkView(leader *voter) {
	term := leader.leadsNow()
	if term == nil || v.isDead() {
		return
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if want := (election.Leader{Owner: term.Record().Owner, Value: "of " + fmt.Sprint(leader.id), Token: term.Token()}); v.shown != want {
		v.violated("of elections: process %d observes %v while %v leads", v.id, v.shown, want)
	}
}

// checkTerms checks that the tokens of the terms increase in the order in which the terms began.
func (s *run) checkTerms() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, b := range s.beliefs {
		if i > 0 && !s.deletes && b.lock.Token() <= s.beliefs[i-1].lock.Token() {
			s.note("of elections: term %d follows term %d", b.lock.Token(), s.beliefs[i-1].lock.Token())
		}
	}
}
