package bench

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/leasehold-go/leasehold/internal/cli/requests"
	"github.com/leasehold-go/leasehold/internal/cli/wording"
)

// patience is how much longer than its time a part may take, if DynamoDB is slow or does
// not answer.
const patience = 15 * time.Second

// part is one part of what is measured. Its time is over after its limit, or when it has
// used what was said.
type part struct {
	name    string
	limit   time.Duration
	measure func(context.Context, *part) error

	meter      *requests.Meter
	began      time.Time
	before     requests.Usage
	operations []*operation

	mu   sync.Mutex // guards done, and what is added to operations
	done int
}

// run measures the part, and on a terminal says each second how far it is. It ends
// although DynamoDB does not answer.
func (p *part) run(ctx context.Context, b *Bench) error {
	ctx, cancel := context.WithTimeoutCause(ctx, p.limit+patience, fmt.Errorf("%s: not done in time", p.name))
	defer cancel()
	p.meter, p.began, p.before = b.meter, time.Now(), b.meter.Used()
	if !b.Say.Rewrites() {
		b.Say.Text("measuring %s for up to %s", p.name, wording.Age(p.limit+time.Second-1))
		return p.measure(ctx, p)
	}
	defer b.Say.Clear()
	measured := make(chan error, 1)
	go func() { measured <- p.measure(ctx, p) }()
	for second := time.Tick(time.Second); ; {
		b.Say.Rewrite(fmt.Sprintf("measuring %s: %s left, %d so far", p.name, wording.Age(p.limit-time.Since(p.began)), p.soFar()))
		select {
		case err := <-measured:
			return err
		case <-second:
		}
	}
}

// operation adds an operation to the part.
func (p *part) operation(name string) *operation {
	o := &operation{name: name}
	p.operations = append(p.operations, o)
	return o
}

// add adds what one call took.
func (p *part) add(o *operation, took time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	o.took = append(o.took, took)
	p.done++
}

func (p *part) soFar() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.done
}

// used is what the part has used.
func (p *part) used() requests.Usage { return p.meter.Used().Minus(p.before) }

// over reports whether the time of the part is over. One operation is always measured.
func (p *part) over() bool {
	used, seconds := p.used(), p.limit.Seconds()
	return p.soFar() > 0 && (time.Since(p.began) >= p.limit || used.Writes >= seconds*writesPerSecond || used.Reads >= seconds*readsPerSecond)
}

// time measures one call of do, while nobody else sends requests.
func (p *part) time(o *operation, do func() error) error {
	before, began := p.meter.Used(), time.Now()
	if err := do(); err != nil {
		return err
	}
	p.add(o, time.Since(began))
	o.used = o.used.Plus(p.meter.Used().Minus(before))
	return nil
}
