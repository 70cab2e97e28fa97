package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/spf13/cobra"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/cli/failure"
	"github.com/leasehold-go/leasehold/internal/cli/misuse"
	"github.com/leasehold-go/leasehold/internal/cli/requests"
	"github.com/leasehold-go/leasehold/internal/cli/scratch"
	"github.com/leasehold-go/leasehold/internal/cli/store"
	"github.com/leasehold-go/leasehold/internal/cli/wording"
	"github.com/leasehold-go/leasehold/internal/decide"
	"github.com/leasehold-go/leasehold/internal/records"
)

// On-demand prices, in dollars for a million request units, and where they are from.
const (
	writePrice = 0.625
	readPrice  = 0.125
	pricedAt   = "on-demand prices of us-east-1 since November 2024"
)

// A part of bench ends early once it has used so many units for each second it may
// take, so that the cost said at first is not exceeded.
const (
	writesPerSecond = 1000
	readsPerSecond  = 2000
)

// benchPrefix is what all keys of bench begin with.
const benchPrefix = "leasehold-bench/"

// benchClean bounds the deletion of the keys at the end.
const benchClean = 10 * time.Second

type benchFlags struct {
	duration              time.Duration
	clients               int
	yes                   bool
	writePrice, readPrice float64
}

func (a *app) newBench() *cobra.Command {
	f := benchFlags{duration: 10 * time.Second}
	cmd := &cobra.Command{
		Use:   "bench [flags]",
		Short: "Measure latency, hand-over and cost of your table",
		Long: `Measure the table: acquiring and releasing, renewing, handing over among
contending clients, taking over from a dead holder, and what each of them costs.
Says first what it will cost at most, and asks. Writes only keys that begin with
` + benchPrefix + `, and deletes them, also on Ctrl-C.

  acquire, release  one client, a free key
  renewal           one client
  hand-over         N clients contend for one key: from the start of a release
                    until another client is granted it
  takeover          from the last sign of a holder that died until a waiting
                    client is granted its key, with the shortest lease

Columns: operation, count, p50, p95, p99 in milliseconds; requests, write units
and read units of one operation, with those of the clients that wait meanwhile
(a hand-over is a release and a grant); dollars for a million operations.

The bill is at the ` + pricedAt + `, storage
apart; --write-price and --read-price are for other Regions. A table with
provisioned capacity shares it with its other users.`,
		Example: `  leasehold bench --table locks
  leasehold bench -d 60 -c 50 --write-price 0.75 --read-price 0.15
  leasehold bench --file /tmp/locks.db -y --json`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			switch {
			case f.clients < 2 || f.clients > 1000:
				return usageOf(cmd, "-c %d: use 2 to 1000 clients", f.clients)
			case f.writePrice < 0 || f.readPrice < 0:
				return usageOf(cmd, "a price cannot be negative")
			case !f.yes && !a.canAsk():
				return usageOf(cmd, "bench asks at a terminal, and there is none: use --yes")
			}
			return a.bench(cmd, f)
		},
	}
	fl := cmd.Flags()
	fl.VarP(durationFlag{d: &f.duration, min: 100 * time.Millisecond}, "duration", "d", "`DURATION` of each part; a takeover takes a lease, however short it is")
	fl.IntVarP(&f.clients, "clients", "c", 16, "`N` clients contend for one key")
	fl.BoolVarP(&f.yes, "yes", "y", false, "do not ask")
	fl.Float64Var(&f.writePrice, "write-price", writePrice, "`DOLLARS` for a million write units")
	fl.Float64Var(&f.readPrice, "read-price", readPrice, "`DOLLARS` for a million read units")
	return cmd
}

// bench is one run of the command.
type bench struct {
	app   *app
	flags benchFlags
	store *store.Store
	meter *requests.Meter
	name  string        // what all of its keys begin with
	lease time.Duration // the shortest
	keys  []leasehold.Key
}

func (a *app) bench(cmd *cobra.Command, f benchFlags) error {
	s, err := a.open(cmd, store.Opening{Make: true})
	if err != nil {
		return err
	}
	defer s.Close()
	proto, err := records.Of(s.Layout)
	if err != nil {
		return err
	}
	b := &bench{app: a, flags: f, store: s, name: scratch.Random(benchPrefix) + "/", lease: time.Second + proto.Skew()}
	ctx, done := a.untilSignal(cmd.Context())
	defer done()
	if err := b.mayDelete(ctx); err != nil {
		return failure.Answer(cause(ctx, err))
	}
	if err := b.agree(ctx); err != nil {
		return failure.Answer(cause(ctx, err))
	}
	s.DB, b.meter = requests.Metered(s.DB)
	err = b.run(ctx)
	if left := b.clean(); left != nil {
		a.say.Fail(left)
		err = errors.Join(err, failure.Exit(failure.CodeTrouble, nil))
	}
	if s := failure.Interrupted(context.Cause(ctx)); s != nil {
		return s
	}
	if err == nil {
		a.say.Text("%s: $%g for a million write units, $%g for a million read units; storage apart", b.pricedAt(), f.writePrice, f.readPrice)
	}
	return err
}

func (b *bench) pricedAt() string {
	if b.flags.writePrice == writePrice && b.flags.readPrice == readPrice {
		return "at the " + pricedAt
	}
	return "at the prices given"
}

// mayDelete returns an error if bench could not delete its keys, or if nobody
// answers.
func (b *bench) mayDelete(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, benchClean)
	defer cancel()
	err := scratchOf(b.store).Delete(ctx, scratchOf(b.store).Key(b.name, "bench")) // nobody has it yet
	var missing *types.ResourceNotFoundException
	switch {
	case errors.As(err, &missing):
		return leasehold.ErrTableNotFound
	case decide.Denied(err):
		return misuse.Errorf("bench could not delete its keys: allow dynamodb:DeleteItem in the caller's IAM policy")
	}
	return err
}

// agree says what bench will do and cost, and asks.
func (b *bench) agree(ctx context.Context) error {
	say := b.app.say.Always // what is agreed to must be seen
	if b.flags.yes {
		say = b.app.say.Note
	}
	took := 3*b.flags.duration + b.takeoverPart()
	writes, reads := took.Seconds()*writesPerSecond, took.Seconds()*readsPerSecond
	dollars := (writes*b.flags.writePrice + reads*b.flags.readPrice) / 1e6
	say("bench measures %s for about %s, writes only keys that begin with %s and deletes them",
		b.store.Where(), wording.Age(took+time.Second-1), benchPrefix)
	if b.store.File != "" {
		say("a local store costs nothing: the bill is that of the same requests to a table")
	} else {
		say("it uses at most about %.0f write units and %.0f read units: %s %s", writes, reads, dollarsText(dollars), b.pricedAt())
	}
	if provisioned := b.provisioned(ctx); provisioned > 0 {
		say("the table has %d write units a second: its other users, locks included, will be throttled meanwhile", provisioned)
	}
	if b.flags.yes {
		return ctx.Err()
	}
	return b.app.confirm(ctx, "Go on? [y/N] ", "nothing was measured")
}

// dollarsText formats a bill for people.
func dollarsText(dollars float64) string {
	if dollars > 0 && dollars < 0.01 {
		return "less than $0.01"
	}
	return fmt.Sprintf("$%.2f", dollars)
}

// provisioned returns the table's write units a second. 0: it is paid per request,
// or the caller may not ask.
func (b *bench) provisioned(ctx context.Context) int64 {
	out, err := b.store.DB.DescribeTable(ctx, &dynamodb.DescribeTableInput{TableName: aws.String(b.store.Table)})
	if err != nil || out.Table == nil || out.Table.ProvisionedThroughput == nil {
		return 0
	}
	return aws.ToInt64(out.Table.ProvisionedThroughput.WriteCapacityUnits)
}

// run measures the parts, one after another.
func (b *bench) run(ctx context.Context) error {
	if b.app.Stdout.Terminal && !b.app.flags.json {
		if _, err := fmt.Fprintf(b.app.Stdout, benchColumns, "OPERATION", "COUNT", "P50 MS", "P95 MS", "P99 MS", "REQUESTS", "WRITES", "READS", "$/MILLION"); err != nil {
			return err
		}
	}
	for _, part := range []struct {
		name    string
		limit   time.Duration
		measure func(context.Context, *part) error
	}{
		{"acquire and release", b.flags.duration, b.acquireAndRelease},
		{"renewal", b.flags.duration, b.renewal},
		{fmt.Sprintf("hand-over among %d clients", b.flags.clients), b.flags.duration, b.handOver},
		{"takeover after a lease of " + wording.Duration(b.lease), b.takeoverPart(), b.takeover},
	} {
		p := newPart(b, part.name, part.limit)
		err := p.run(ctx, part.measure)
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case err != nil:
			return failure.Answer(err)
		}
		for _, op := range p.operations {
			if err := b.write(op); err != nil {
				return err
			}
		}
	}
	return nil
}

// benchColumns is a line on a terminal.
const benchColumns = "%-9s  %7s  %8s  %8s  %8s  %8s  %6s  %6s  %9s\n"

// resultJSON is an operation as bench prints it.
type resultJSON struct {
	Operation         string  `json:"operation"`
	Table             string  `json:"table"`
	Count             int     `json:"count"`
	P50Ms             float64 `json:"p50Ms"`
	P95Ms             float64 `json:"p95Ms"`
	P99Ms             float64 `json:"p99Ms"`
	MaxMs             float64 `json:"maxMs"`
	Requests          float64 `json:"requests"`   // of one operation
	WriteUnits        float64 `json:"writeUnits"` // of one operation
	ReadUnits         float64 `json:"readUnits"`  // of one operation
	DollarsPerMillion float64 `json:"dollarsPerMillion"`
	WritePrice        float64 `json:"writePrice"` // dollars for a million write units
	ReadPrice         float64 `json:"readPrice"`
	Throttled         int     `json:"throttled,omitempty"` // requests, in all
	Clients           int     `json:"clients,omitempty"`
	LeaseMs           int64   `json:"leaseMs,omitempty"`
}

func (b *bench) write(op *operation) error {
	r := op.result(b.flags)
	r.Table = b.store.Table
	a := b.app
	a.say.Clear()
	if r.Throttled > 0 {
		a.say.Text("%s: %s throttled", r.Operation, wording.Count(r.Throttled, "request was", "requests were"))
	}
	if a.flags.json {
		return json.NewEncoder(a.Stdout).Encode(r)
	}
	number := func(v float64, digits int) string { return strconv.FormatFloat(v, 'f', digits, 64) }
	cells := []string{
		r.Operation, strconv.Itoa(r.Count), number(r.P50Ms, 2), number(r.P95Ms, 2), number(r.P99Ms, 2),
		number(r.Requests, 2), number(r.WriteUnits, 2), number(r.ReadUnits, 2), number(r.DollarsPerMillion, 3),
	}
	if !a.Stdout.Terminal {
		_, err := fmt.Fprintln(a.Stdout, strings.Join(cells, "\t"))
		return err
	}
	line := make([]any, len(cells))
	for i, c := range cells {
		line[i] = c
	}
	_, err := fmt.Fprintf(a.Stdout, benchColumns, line...)
	return err
}

// clean deletes the keys, also after a signal.
func (b *bench) clean() error {
	ctx, cancel := context.WithTimeout(context.Background(), benchClean)
	defer cancel()
	if err := scratchOf(b.store).Delete(ctx, b.keys...); err != nil {
		return fmt.Errorf("keys that begin with %s may be left in %s: delete them, or leave them to TTL: %s", b.name, b.store.Called(), failure.Text(err, b.store.Where()))
	}
	return nil
}
