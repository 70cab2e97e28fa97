package regions

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/attempts"
	"github.com/leasehold-go/leasehold/internal/durations"
)

// DB sends requests to one of several Regions. It is a leasehold.DB, and safe for concurrent
// use.
type DB struct {
	clients []*dynamodb.Client // home is the first
	names   []string           // of their Regions
	began   time.Time

	mu     sync.Mutex // guards what follows, and is not held while a request is under way
	course course
	tables map[string]*table
}

var (
	_ leasehold.DB     = (*DB)(nil)
	_ attempts.Regions = (*DB)(nil)
)

// askEvery is the least time between two questions what kind of table it is.
const askEvery = time.Second

// table is what is known of a table.
type table struct {
	verdict verdict
	why     string        // it is unproven
	asking  bool          // DescribeTable is under way
	asked   time.Duration // when it was sent last
	last    map[string]types.AttributeValue
}

// New returns a DB that sends requests to the Region of home, and to those of others when
// home does not serve. Each client must have a Region of its own: New panics if two have the
// same, as that is a mistake of the program. It sends no request.
//
// Each client's credentials should not come from the home Region alone: its STS endpoint may
// be down with it.
func New(home *dynamodb.Client, others ...*dynamodb.Client) *DB {
	d := &DB{clients: slices.Concat([]*dynamodb.Client{home}, others), began: time.Now(), tables: map[string]*table{}}
	for _, client := range d.clients {
		name := client.Options().Region
		if slices.Contains(d.names, name) {
			panic(fmt.Sprintf("regions: two clients of Region %q: give each a Region of its own", name))
		}
		d.names = append(d.names, name)
	}
	d.course.regions = len(d.clients)
	return d
}

// Region returns the Region that requests go to now.
func (d *DB) Region() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.names[d.course.at]
}

// State returns where requests to a table go. It is for leasehold itself.
func (d *DB) State(name string) attempts.RegionState {
	d.mu.Lock()
	defer d.mu.Unlock()
	t := d.tables[name]
	switch {
	case t == nil:
		return attempts.RegionState{Region: d.names[0]}
	case t.verdict != proven:
		return attempts.RegionState{Region: d.names[0], Stays: t.why}
	}
	return attempts.RegionState{Region: d.names[d.course.at], Moves: d.course.moves, Left: d.course.left, Strong: true}
}

// Options returns the options of the home Region's client.
func (d *DB) Options() dynamodb.Options { return d.clients[0].Options() }

func (d *DB) now() time.Duration { return time.Since(d.began) }

// begin returns an exchange with the Region that a request to a table goes to now, and
// whether that Region's silence lasts one second. The first request asks what kind of table
// it is, and some bring along a probe of home.
func (d *DB) begin(name string, key map[string]types.AttributeValue) (e exchange, quick bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	now := d.now()
	t := d.tables[name]
	if t == nil {
		t = &table{}
		t.verdict, t.why = canBeProven(name)
		d.tables[name] = t
	}
	if key != nil {
		t.last = key
	}
	if len(d.clients) > 1 && t.verdict == unknown && !t.asking && (t.asked == 0 || durations.Less(now, t.asked) > askEvery) {
		t.asking, t.asked = true, now
		go d.prove(name)
	}
	e = exchange{moves: d.course.moves, sent: now, brief: key != nil}
	if t.verdict != proven {
		return e, false
	}
	if t.last != nil && d.course.probes(now) {
		go d.probe(name, t.last)
	}
	e.region = d.course.at
	return e, d.course.quick && e.brief
}

// end takes in what became of the exchange. It returns why there is no failover, if the
// Region does not serve; empty if there is one.
func (d *DB) end(e exchange, name string) string {
	d.mu.Lock()
	defer d.mu.Unlock()
	e.ended = d.now()
	t := d.tables[name]
	d.course.note(e, t.verdict == proven)
	if e.outcome() != failed {
		return ""
	}
	return t.why
}

// prove asks every Region what kind of table it is.
func (d *DB) prove(name string) {
	ctx, cancel := context.WithTimeout(context.Background(), attempts.Limit)
	defer cancel()
	answered := make(chan described, len(d.clients))
	for i, client := range d.clients {
		go func() {
			out, err := client.DescribeTable(ctx, &dynamodb.DescribeTableInput{TableName: aws.String(name)}, once)
			said := described{region: d.names[i], err: err}
			if err == nil {
				said.table = out.Table
			}
			answered <- said
		}()
	}
	var answers []described
	for range d.clients {
		answers = append(answers, <-answered)
		v, why := judgeAll(answers, d.names)
		if v != proven && len(answers) < len(d.clients) {
			continue
		}
		d.mu.Lock()
		t := d.tables[name]
		t.verdict, t.why, t.asking = v, why, false
		d.mu.Unlock()
		if v == proven {
			return // and the requests that are still under way end with ctx
		}
	}
}

// probe reads a key at home while requests go elsewhere.
func (d *DB) probe(name string, key map[string]types.AttributeValue) {
	ctx, cancel := context.WithTimeout(context.Background(), silence)
	defer cancel()
	e := exchange{sent: d.now()}
	e.limit = durations.Sum(e.sent, silence)
	_, e.err = d.clients[0].GetItem(ctx, &dynamodb.GetItemInput{TableName: aws.String(name), Key: key, ConsistentRead: aws.Bool(true)}, once)
	d.mu.Lock()
	defer d.mu.Unlock()
	e.ended = d.now()
	d.course.noteProbe(e)
}

// once turns the SDK's retries off: the next attempt may belong in another Region.
func once(o *dynamodb.Options) { o.Retryer = aws.NopRetryer{} }

// send sends a request to the Region of its turn.
func send[In, Out any](ctx context.Context, d *DB, name *string, key map[string]types.AttributeValue, in In, optFns []func(*dynamodb.Options),
	call func(*dynamodb.Client, context.Context, In, ...func(*dynamodb.Options)) (Out, error),
) (Out, error) {
	table := aws.ToString(name)
	e, quick := d.begin(table, key)
	if quick {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, silence)
		defer cancel()
	}
	if until, ok := ctx.Deadline(); ok {
		e.limit = until.Sub(d.began)
	}
	var out Out
	out, e.err = call(d.clients[e.region], ctx, in, optFns...)
	if why := d.end(e, table); why != "" {
		return out, &stayedError{e.err, fmt.Sprintf("no failover from %s: table %s: %s", d.names[0], table, why)}
	}
	return out, e.err
}

// stayedError is the error of a Region that was not left.
type stayedError struct {
	err error
	why string
}

func (e *stayedError) Error() string { return e.err.Error() + ": " + e.why }

func (e *stayedError) Unwrap() error { return e.err }

// NoFailover returns why, for callers with words of their own for the rest.
func (e *stayedError) NoFailover() string { return e.why }
