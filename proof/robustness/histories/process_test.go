package histories

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/lab"
)

const lease = 3 * time.Second

// sharing describes the lock that the processes of a history share.
type sharing struct {
	key     string
	acquire func(ctx context.Context, p *process, w *worker, opts ...leasehold.AcquireOption) (*leasehold.Lock, asked, error)
	permits bool                                // the key belongs to a semaphore
	tamper  func(op string, body []byte) []byte // modifies the body of a request before it is sent; nil for no change
	slowest float64                             // rate of the clock of process 0, relative to real time; 0 for a random rate near 1
}

// run is a history while it is being recorded.
type run struct {
	*history
	seed uint64
	w    *lab.World
	how  sharing

	seen  [permits]int64 // highest token that each target of writes has seen; guarded by mu
	lines int            // number of lines in the visualization; guarded by mu
}

// line adds a line to the visualization of the history, and returns its number. Operations that
// overlap in time need different lines.
func (s *run) line() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lines++
	return s.lines
}

// process simulates one process with a leasehold client.
type process struct {
	*run
	id     int
	client *leasehold.Client

	mu       sync.Mutex
	asked    map[string]uint64
	dead     bool
	stillTil time.Time // time at which the current pause ends
}

func (p *process) isDead() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.dead
}

// standsStill returns the rest of the process's pause, or 0 if the process is not paused.
func (p *process) standsStill() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return max(time.Until(p.stillTil), 0)
}

// worker is one goroutine of a simulated process.
type worker struct {
	*rand.Rand
	name string
	line int
}

// play runs simulated processes that share a lock. It returns the history of their operations.
func play(t *testing.T, seed uint64, how sharing) *history {
	s := &run{history: &history{}, seed: seed, how: how}
	synctest.Test(t, func(t *testing.T) {
		s.w = lab.New(t).Work()
		s.began = time.Now()
		rng := drawn(seed, "run")
		var processes []*process
		var wg sync.WaitGroup
		for id := range 2 + rng.IntN(2) {
			p := s.process(id, rng)
			processes = append(processes, p)
			for i := range 1 + rng.IntN(2) {
				w := &worker{drawn(seed, "worker", id, i), fmt.Sprint("worker ", id, " ", i), s.line()}
				wg.Go(func() { p.work(w) })
			}
		}
		wg.Wait()
		for _, p := range processes {
			_ = p.client.Close(context.Background()) // ignores errors, because the network of this process may be down
		}
		time.Sleep(2 * lease) // wait until all late requests have arrived
		s.lookAtAll()
	})
	return s.history
}

func (s *run) process(id int, rng *rand.Rand) *process {
	p := &process{run: s, id: id, asked: map[string]uint64{}}
	cfg := lab.Config()
	cfg.Lease, cfg.Margin, cfg.RenewEvery = lease, lease/10, lease*3/10
	cfg.PollMax = time.Second
	cfg.ReleaseGrace = time.Second
	began, rate := time.Now(), 1+(rng.Float64()-0.5)*0.08 // the clock rates of two processes differ by less than the lease's margin allows
	if s.how.slowest > 0 && id == 0 {
		rate = s.how.slowest
	}
	now := func() (mono, boot time.Duration) {
		mono = time.Duration(rate * float64(time.Since(began)))
		return mono, mono
	}
	chance := func() float64 { return drawn(s.seed, "chance", id, time.Now()).Float64() }
	wire := s.w.Wire()
	wire.SetFault(p.network)
	p.client = s.w.ClientOf(s.w.Connect([]lab.Edit{lab.Clocks(now), lab.Chance(chance)}, func(o *dynamodb.Options) {
		o.HTTPClient = wire
		if s.how.tamper != nil {
			o.HTTPClient = tampering{wire, s.how.tamper}
		}
	}), cfg)
	return p
}

// work acquires and uses the lock a few times. It is the main function of a worker.
func (p *process) work(w *worker) {
	p.rest(w, 300*time.Millisecond)
	for range 1 + w.IntN(2) {
		p.hold(w)
		if p.isDead() {
			return
		}
		p.rest(w, time.Second)
	}
}

// rest sleeps for a random time of at most d, and then until the process is not paused.
func (p *process) rest(w *worker, d time.Duration) {
	p.after(upTo(w.Rand, d), w.Rand)
	if d := p.standsStill(); d > 0 {
		p.after(d, w.Rand)
	}
}

// hold acquires the lock, uses it, and ends the grant in a random way.
func (p *process) hold(w *worker) {
	var opts []leasehold.AcquireOption
	if w.IntN(4) == 0 {
		opts = append(opts, leasehold.NoWait())
	}
	renewed := w.IntN(2) == 0
	if !renewed {
		opts = append(opts, leasehold.WithoutRenewal())
	}
	begun := p.begin(w.line, asked{verb: acquire})
	ctx, cancel := context.WithTimeout(onBehalf(w.name), upTo(w.Rand, 3*lease))
	lock, in, err := p.how.acquire(ctx, p, w, opts...)
	cancel()
	if err != nil {
		return
	}
	in.token, begun.in = lock.Token(), in
	p.end(begun, told{token: in.token})
	p.endsWith(lock, in)
	if w.IntN(2) == 0 {
		p.write(w, in)
	}
	for range w.IntN(5) {
		p.rest(w, time.Second)
		if p.isDead() {
			return
		}
		switch w.IntN(8) {
		case 0, 1, 2:
			p.read(w, lock, in)
		case 3:
			p.writeLate(w, lock, in)
		case 4:
			p.mu.Lock()
			p.stillTil = time.Now().Add(upTo(w.Rand, 2*lease))
			p.mu.Unlock()
		default:
			p.commit(w, lock, in)
		}
	}
	switch n := w.IntN(8); {
	case n == 0:
		p.mu.Lock()
		p.dead = true
		p.mu.Unlock()
	case n == 1 && !renewed: // the worker neither renews nor releases the lock
	case n == 2 && in.verb == acquire:
		in.frees = true
		p.commit(w, lock, in)
	default:
		ctx, cancel := context.WithTimeout(onBehalf(w.name), upTo(w.Rand, 2*time.Second))
		defer cancel()
		in.verb = release
		begun := p.begin(w.line, in)
		if lock.Release(ctx) == nil {
			p.end(begun, told{})
		}
	}
}

// endsWith records the operation "end of trust" when the context of the lock is cancelled.
func (p *process) endsWith(lock *leasehold.Lock, in asked) {
	in.verb = end
	line := p.line()
	context.AfterFunc(lock.Context(), func() { p.end(p.begin(line, in), told{}) })
}

// add returns a DynamoDB write that adds one to the counter of a key. Each commit contains
// this write.
func add(key string) types.TransactWriteItem {
	return types.TransactWriteItem{Update: &types.Update{
		TableName:                 aws.String("work"),
		Key:                       lab.WorkKey(key),
		UpdateExpression:          aws.String("ADD #n :one"),
		ExpressionAttributeNames:  map[string]string{"#n": "n"},
		ExpressionAttributeValues: map[string]types.AttributeValue{":one": lab.Num("1")},
	}}
}

func (p *process) commit(w *worker, lock *leasehold.Lock, in asked) {
	ctx, cancel := context.WithTimeout(onBehalf(w.name), upTo(w.Rand, 2*lease))
	defer cancel()
	in.verb = commit
	begun := p.begin(w.line, in)
	var err error
	if writes := lab.Writes(add(lock.Key().Partition)); in.frees {
		err = lock.CommitAndRelease(ctx, writes)
	} else {
		err = lock.Commit(ctx, writes)
	}
	switch {
	case err == nil:
		p.end(begun, told{})
	case errors.Is(err, leasehold.ErrUnknownOutcome):
		begun.by = p.line()
		p.end(begun, told{unknown: true})
	}
}

func (p *process) read(w *worker, lock *leasehold.Lock, in asked) {
	ctx, cancel := context.WithTimeout(onBehalf(w.name), upTo(w.Rand, lease))
	defer cancel()
	in.verb = read
	begun := p.begin(w.line, in)
	if items, err := lock.Read(ctx, []types.TransactGetItem{lab.Get(lock.Key().Partition)}); err == nil {
		p.end(begun, told{n: counter(items[0])})
	}
}

func counter(item map[string]types.AttributeValue) int64 {
	n, _ := strconv.ParseInt(lab.Number(item, "n"), 10, 64)
	return n
}

// write simulates a write to a target that refuses tokens lower than the highest token it has seen.
func (p *process) write(w *worker, in asked) {
	in.verb = write
	p.run.mu.Lock()
	refused := in.token < p.seen[in.key]
	p.seen[in.key] = max(p.seen[in.key], in.token)
	p.run.mu.Unlock()
	p.end(p.begin(w.line, in), told{refused: refused})
}

// writeLate checks that the lock is held, pauses, and then writes without another check.
func (p *process) writeLate(w *worker, lock *leasehold.Lock, in asked) {
	if lock.Err() != nil {
		return
	}
	p.rest(w, 3*lease)
	if !p.isDead() {
		p.write(w, in)
	}
}

// lookAtAll records the final value of every counter.
func (s *run) lookAtAll() {
	for i := range permits {
		name := s.how.key
		if s.how.permits {
			name = fmt.Sprint(s.how.key, "/", i)
		} else if i > 0 {
			break
		}
		begun := s.begin(0, asked{verb: look, key: i})
		s.end(begun, told{n: counter(s.w.WorkItem(name))})
	}
}

// permitOf returns the index of the permit that the lock holds. The index is part of the lock's
// key.
func permitOf(lock *leasehold.Lock) int {
	_, i, _ := strings.Cut(lock.Key().Partition, "/")
	n, err := strconv.Atoi(i)
	if err != nil {
		panic(err)
	}
	return n
}
