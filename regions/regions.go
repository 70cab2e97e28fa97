package regions

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/attempts"
	"github.com/leasehold-go/leasehold/internal/durations"
)

// DB is a leasehold.DB that sends requests to one of several Regions. It is safe for concurrent
// use.
type DB struct {
	clients []*dynamodb.Client // clients of the Regions; the first client is for the home Region
	names   []string           // names of the Regions of clients, in the same order
	began   time.Time

	mu     sync.Mutex // guards the fields below; not held during requests
	course course
	tables map[string]*table
}

var _, _ = leasehold.DB((*DB)(nil)), attempts.Regions((*DB)(nil))

// askEvery is the minimum time between two calls of DescribeTable for the same table.
const askEvery = time.Second

// table contains what a DB knows about one table.
type table struct {
	verdict verdict
	// asking is closed when a reply to DescribeTable has shown that requests may go to other Regions,
	// or when the calls in all Regions have returned. It is nil unless DescribeTable is in flight.
	asking chan struct{}
	asked  time.Duration // time when DescribeTable was last sent
	last   map[string]types.AttributeValue
}

// New returns a DB that sends requests to the Region of the client "home". If that Region does not
// serve, the DB sends requests to the Regions of the other clients. Each client must have a
// different Region. New panics if two clients have the same Region, because that is a mistake in
// the program. New sends no request.
//
// No client should get its credentials only from the home Region, because the STS endpoint of
// that Region may be down, too.
func New(home *dynamodb.Client, others ...*dynamodb.Client) *DB {
	d := &DB{clients: slices.Concat([]*dynamodb.Client{home}, others), began: time.Now(), tables: map[string]*table{}, course: course{regions: 1 + len(others)}}
	for _, client := range d.clients {
		name := client.Options().Region
		if slices.Contains(d.names, name) {
			panic(fmt.Sprintf("regions: two clients of Region %q: give each a Region of its own", name))
		}
		d.names = append(d.names, name)
	}
	return d
}

// Region returns the Region to which requests are sent now.
func (d *DB) Region() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.names[d.course.at]
}

// State returns the Region to which requests to a table are sent, and why they have left the
// previous Region or must stay in the home Region. It is for package leasehold, not for users.
func (d *DB) State(name string) attempts.RegionState {
	d.mu.Lock()
	defer d.mu.Unlock()
	t := d.table(name)
	s := attempts.RegionState{Region: d.names[0], Stays: t.verdict.why}
	if t.verdict.mayLeave() {
		s.Region, s.Changes, s.Left = d.names[d.course.at], 2*d.course.moves, d.course.left // twice, so that the first move exceeds the 1 of an earlier stay
	} else if t.verdict.known {
		s.Changes = 1
	}
	return s
}

// CheckTransactions returns a *leasehold.UnsupportedError if a table is known to be strongly
// consistent across Regions, because such a table has no transactions. If DescribeTable is in
// flight, CheckTransactions first waits for the reply, at most attempts.Limit. It is for package
// leasehold, not for users.
func (d *DB) CheckTransactions(ctx context.Context, name string) error {
	d.mu.Lock()
	t := d.table(name)
	asking, strong := t.asking, t.verdict.strong
	d.mu.Unlock()
	if asking != nil && !strong {
		select {
		case <-asking:
		case <-ctx.Done():
		}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if !t.verdict.strong {
		return nil
	}
	return &leasehold.UnsupportedError{Table: name, Feature: "transactions, as it is strongly consistent across Regions: " +
		"have the target compare Lock.Token, or keep the data in the lock's record"}
}

// Options returns the options of the home Region's client. They show leasehold.New how many idle
// connections the HTTP client keeps to each host. The clients of the other Regions usually share
// this HTTP client. Options is for package leasehold, not for users.
func (d *DB) Options() dynamodb.Options { return d.clients[0].Options() }

func (d *DB) now() time.Duration { return time.Since(d.began) }

// table returns what the DB knows about a table. The caller must hold mu.
func (d *DB) table(name string) *table {
	t := d.tables[name]
	if t == nil {
		t = &table{}
		if strings.HasPrefix(name, "arn:") {
			t.verdict = verdict{known: true, final: true, why: "its ARN names one Region: use the table's name"}
		}
		d.tables[name] = t
	}
	return t
}

// ask sends DescribeTable to every Region, unless the verdict on the table is known. It sends
// nothing while earlier requests are in flight, or within askEvery after them. The verdict is set
// once a reply lets requests go to other Regions, or after the last reply. The caller must hold mu.
func (d *DB) ask(name string, t *table) {
	now := d.now()
	if t.verdict.known || t.asking != nil || len(d.clients) == 1 || t.asked > 0 && durations.Less(now, t.asked) <= askEvery {
		return
	}
	t.asking, t.asked = make(chan struct{}), now
	all, left := verdict{}, len(d.clients) // guarded by mu
	for i, client := range d.clients {
		go func() {
			ctx, cancel := context.WithTimeout(context.Background(), attempts.Limit)
			defer cancel()
			out, err := client.DescribeTable(ctx, &dynamodb.DescribeTableInput{TableName: aws.String(name)}, attempts.Once)
			d.mu.Lock()
			defer d.mu.Unlock()
			all, left = all.with(judge(d.names[i], out, err, d.names)), left-1
			if t.asking != nil && (all.mayLeave() || left == 0) {
				t.verdict = t.verdict.with(all)
				close(t.asking)
				t.asking = nil
			}
		}()
	}
}

// begin chooses the Region for a request, and returns the request's exchange. The parameter "key"
// is the item's key, or nil if the request is not brief (see kind). If quick is true, the
// request waits only one second. The method calls ask, and sends a due probe.
func (d *DB) begin(name string, of kind, key map[string]types.AttributeValue) (e exchange, t *table, quick bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	t = d.table(name)
	d.ask(name, t)
	if key != nil {
		t.last = key
	}
	e = exchange{moves: d.course.moves, sent: d.now(), kind: of}
	if t.verdict.mayLeave() {
		if t.last != nil && d.course.probes(e.sent) {
			go d.probe(name, t.last)
		}
		e.region, quick = d.course.at, d.course.quick[of]
	}
	return e, t, quick
}

// probe sends a strongly consistent read of key to the home Region.
func (d *DB) probe(name string, key map[string]types.AttributeValue) {
	ctx, cancel := context.WithTimeout(context.Background(), silence)
	defer cancel()
	sent := d.now()
	e := exchange{sent: sent, limit: durations.Sum(sent, silence)}
	_, e.err = d.clients[0].GetItem(ctx, &dynamodb.GetItemInput{TableName: aws.String(name), Key: key, ConsistentRead: aws.Bool(true)}, attempts.Once)
	d.mu.Lock()
	defer d.mu.Unlock()
	e.ended = d.now()
	d.course.noteProbe(e)
}

// send sends a request to the Region that the method "begin" chooses.
func send[In, Out any](ctx context.Context, d *DB, name *string, of kind, key map[string]types.AttributeValue, in In, optFns []func(*dynamodb.Options),
	call func(*dynamodb.Client, context.Context, In, ...func(*dynamodb.Options)) (Out, error),
) (Out, error) {
	e, t, quick := d.begin(aws.ToString(name), of, key)
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
	d.mu.Lock()
	defer d.mu.Unlock()
	e.ended = d.now()
	d.course.note(e, t.verdict.mayLeave())
	if e.outcome() == failed && t.verdict.why != "" {
		t.verdict.known = t.verdict.final // if not, the reason may no longer apply: the next request asks again
		return out, &stayedError{e.err, fmt.Sprintf("no failover from %s: table %s: %s", d.names[0], *name, t.verdict.why)}
	}
	return out, e.err
}

// GetItem implements leasehold.DB.
func (d *DB) GetItem(ctx context.Context, in *dynamodb.GetItemInput, optFns ...func(*dynamodb.Options)) (*dynamodb.GetItemOutput, error) {
	return send(ctx, d, in.TableName, read, in.Key, in, optFns, (*dynamodb.Client).GetItem)
}

// UpdateItem implements leasehold.DB.
func (d *DB) UpdateItem(ctx context.Context, in *dynamodb.UpdateItemInput, optFns ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error) {
	return send(ctx, d, in.TableName, write, in.Key, in, optFns, (*dynamodb.Client).UpdateItem)
}

// DeleteItem implements leasehold.DB.
func (d *DB) DeleteItem(ctx context.Context, in *dynamodb.DeleteItemInput, optFns ...func(*dynamodb.Options)) (*dynamodb.DeleteItemOutput, error) {
	return send(ctx, d, in.TableName, write, in.Key, in, optFns, (*dynamodb.Client).DeleteItem)
}

// Query implements leasehold.DB.
func (d *DB) Query(ctx context.Context, in *dynamodb.QueryInput, optFns ...func(*dynamodb.Options)) (*dynamodb.QueryOutput, error) {
	return send(ctx, d, in.TableName, notBrief, nil, in, optFns, (*dynamodb.Client).Query)
}

// Scan implements leasehold.DB.
func (d *DB) Scan(ctx context.Context, in *dynamodb.ScanInput, optFns ...func(*dynamodb.Options)) (*dynamodb.ScanOutput, error) {
	return send(ctx, d, in.TableName, notBrief, nil, in, optFns, (*dynamodb.Client).Scan)
}

// BatchGetItem implements leasehold.DB.
func (d *DB) BatchGetItem(ctx context.Context, in *dynamodb.BatchGetItemInput, optFns ...func(*dynamodb.Options)) (*dynamodb.BatchGetItemOutput, error) {
	var table *string
	for name := range in.RequestItems {
		table = &name // all keys are in one table, because leasehold uses only one
	}
	return send(ctx, d, table, notBrief, nil, in, optFns, (*dynamodb.Client).BatchGetItem)
}

// TransactGetItems implements leasehold.DB. It always sends the request to the home Region. Other
// Regions would not help: only requests to a table that is strongly consistent across Regions
// (MRSC) may go there, and such a table refuses transactions in every Region.
func (d *DB) TransactGetItems(ctx context.Context, in *dynamodb.TransactGetItemsInput, optFns ...func(*dynamodb.Options)) (*dynamodb.TransactGetItemsOutput, error) {
	return d.clients[0].TransactGetItems(ctx, in, optFns...)
}

// TransactWriteItems implements leasehold.DB. It sends the request to the home Region, for the same
// reason as TransactGetItems.
func (d *DB) TransactWriteItems(ctx context.Context, in *dynamodb.TransactWriteItemsInput, optFns ...func(*dynamodb.Options)) (*dynamodb.TransactWriteItemsOutput, error) {
	return d.clients[0].TransactWriteItems(ctx, in, optFns...)
}

// stayedError wraps the error of a request that failed in the home Region when requests to the same
// table may not leave that Region. The field "why" contains the reason why they may not leave.
type stayedError struct {
	err error
	why string
}

func (e *stayedError) Error() string { return e.err.Error() + ": " + e.why }

func (e *stayedError) Unwrap() error { return e.err }

// NoFailover returns the reason why requests stay in the home Region, without the error of the
// request. Callers add the reason to their own messages.
func (e *stayedError) NoFailover() string { return e.why }
