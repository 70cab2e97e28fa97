//go:build linux

package contest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/leasehold-go/leasehold/proof/interop/engines"
	"github.com/leasehold-go/leasehold/proof/interop/peers"
	"github.com/leasehold-go/leasehold/table"

	"github.com/leasehold-go/leasehold/proof/bench/meter"
	"github.com/leasehold-go/leasehold/proof/bench/stats"
)

// Contest is the configuration of a benchmark that compares lock libraries.
type Contest struct {
	Engine     engines.Engine
	Distance   time.Duration // network delay that the meter adds to each round trip
	Rounds     int
	Scenarios  []Scenario
	Contenders []Contender
	// Progress is called before each run, with a description of the run.
	Progress func(format string, args ...any)
}

// takes returns the estimated duration of the contest for the contenders in c.Contenders.
func (c *Contest) takes() (d time.Duration) {
	for _, s := range c.Scenarios {
		d += s.takes * time.Duration(len(batches(s, c.present(s))))
	}
	return d * time.Duration(c.Rounds)
}

// Play runs all rounds of the contest. If ctx is cancelled, Play returns the results so far.
func (c *Contest) Play(ctx context.Context) (*Results, error) {
	r := &Results{
		Began: time.Now().UTC().Truncate(time.Second), Engine: c.Engine.Name + " " + c.Engine.Version,
		Distance: c.Distance, Rounds: c.Rounds, Machine: thisMachine(),
	}
	defer func() { r.Took = time.Since(r.Began).Truncate(time.Second) }()
	if err := c.install(ctx, r); err != nil {
		return r, err
	}
	c.Progress("this takes about %v on an idle machine; Ctrl-C shows what there is by then", c.takes().Round(time.Minute))
	for round := 1; round <= c.Rounds; round++ {
		if err := c.round(ctx, round, r); err != nil {
			return r, err
		}
	}
	return r, nil
}

// install installs the libraries of the contenders. If a library cannot be installed, the
// results list its contenders as absent, with the reason.
func (c *Contest) install(ctx context.Context, r *Results) error {
	var can []Contender
	for _, one := range c.Contenders {
		c.Progress("installing %s, if it is not there", one.peer.Name)
		err := one.peer.Install(ctx)
		switch {
		case errors.Is(err, peers.ErrNotInstallable):
			r.Absent = append(r.Absent, Absence{Contender: one.Name, Reason: strings.TrimPrefix(err.Error(), peers.ErrNotInstallable.Error()+": ")})
			continue
		case err != nil:
			return err
		}
		can = append(can, one)
		r.Contenders = append(r.Contenders, Described{one.Name, one.peer.Version, one.How})
		for _, s := range c.Scenarios {
			if why := one.reason(s); why != "" {
				r.Absent = append(r.Absent, Absence{s.Name, one.Name, why})
			}
		}
	}
	c.Contenders = can
	return nil
}

// round runs every scenario once with each contender, on a newly started server. The order
// of the contenders differs between rounds.
func (c *Contest) round(ctx context.Context, round int, r *Results) error {
	server, err := c.Engine.Start(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = server.Stop() }()
	if err := table.Create(ctx, server.Client(), table.Spec{Name: pings}); err != nil {
		return err
	}
	for _, s := range c.Scenarios {
		machine := processors()
		if err := sleepUntil(ctx, time.Now().Add(500*time.Millisecond)); err != nil {
			return err
		}
		others := machine.busy()
		playing := batches(s, c.present(s))
		rand.Shuffle(len(playing), func(i, j int) { playing[i], playing[j] = playing[j], playing[i] })
		for _, batch := range playing {
			c.Progress("round %d of %d: %s: %s", round, c.Rounds, s.Name, names(batch))
			runs := make([]Run, len(batch))
			_ = each(batch, func(i int, one Contender) error {
				stage := &stage{scenario: s, contender: one, round: round, server: server, table: fmt.Sprintf("%s-%d-%s", s.Name, round, simple(one.Name))}
				runs[i] = stage.run(ctx, c.Distance)
				runs[i].Others = others
				return nil
			})
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			r.Runs = append(r.Runs, runs...)
		}
	}
	return nil
}

// present returns the contenders that take part in a scenario.
func (c *Contest) present(s Scenario) (there []Contender) {
	for _, one := range c.Contenders {
		if one.reason(s) == "" {
			there = append(there, one)
		}
	}
	return there
}

// reason returns the reason why the contender does not take part in a scenario, or "" if it
// takes part.
func (c Contender) reason(s Scenario) string {
	if c.absent == nil {
		return ""
	}
	return c.absent(s)
}

// batches divides the contenders into groups whose members run at the same time. If s.together is
// true, all contenders form one group. Otherwise each runs alone, with one exception: if clients
// mostly wait in the scenario, the contenders that poll rarely (Contender.quiet) form a group.
func batches(s Scenario, there []Contender) (all [][]Contender) {
	if s.together {
		return [][]Contender{there}
	}
	var quiet []Contender
	for _, one := range there {
		if one.quiet && s.quietly() {
			quiet = append(quiet, one)
		} else {
			all = append(all, []Contender{one})
		}
	}
	if len(quiet) > 0 {
		all = append(all, quiet)
	}
	return all
}

// quietly reports whether clients mostly wait in the scenario. Several contenders that poll rarely
// can then run it at the same time without slowing each other down.
func (s Scenario) quietly() bool { return s.kind == contending || s.kind == sharing }

func names(batch []Contender) (text string) {
	for i, one := range batch {
		if i > 0 {
			text += "; "
		}
		text += one.Name
	}
	return text
}

// simple replaces spaces and commas in a name with underscores, because DynamoDB allows neither
// spaces nor commas in a table name.
func simple(name string) string {
	b := []byte(name)
	for i, c := range b {
		if c == ' ' || c == ',' {
			b[i] = '_'
		}
	}
	return string(b)
}

// stage is the environment of one run, in which one contender takes part in one scenario on
// one server.
type stage struct {
	scenario  Scenario
	contender Contender
	round     int
	server    *engines.Server
	table     string

	meter  *meter.Meter
	fleets []*fleet
}

// run runs the scenario on the stage and returns the result. If the run fails, the result
// contains the error.
func (s *stage) run(ctx context.Context, distance time.Duration) Run {
	const patience = 3 * time.Minute // time limit of a run, longer than any scenario takes
	ctx, cancel := context.WithTimeoutCause(ctx, patience, fmt.Errorf("not done within %v", patience))
	defer cancel()
	r := Run{Round: s.round, Scenario: s.scenario.Name, Contender: s.contender.Name}
	fail := func(err error) Run { r.Failed = err.Error(); return r }
	m, err := meter.Start(s.server.Endpoint, distance)
	if err != nil {
		return fail(err)
	}
	s.meter = m
	defer func() {
		for _, f := range s.fleets {
			f.kill()
		}
		_ = m.Close()
	}()
	if err := s.contender.peer.CreateTable(ctx, s.server, peers.Settings{Table: s.table}); err != nil {
		return fail(err)
	}
	if r.RoundTrip, err = s.roundTrip(ctx); err != nil {
		return fail(err)
	}
	machine := processors()
	r.Tables, err = s.scenario.play(ctx, s)
	r.Busy = machine.busy()
	if err != nil {
		return fail(err)
	}
	return r
}

// pings is the name of the table to which roundTrip writes.
const pings = "pings"

// roundTrip returns the median duration of a plain PutItem request through the meter, in
// ms.
func (s *stage) roundTrip(ctx context.Context) (float64, error) {
	const writes = 31
	db := s.server.Client(func(o *dynamodb.Options) { o.BaseEndpoint = aws.String(s.meter.Endpoint) })
	var took []float64
	for range writes {
		began := time.Now()
		_, err := db.PutItem(ctx, &dynamodb.PutItemInput{
			TableName: aws.String(pings), Item: map[string]types.AttributeValue{"key": &types.AttributeValueMemberS{Value: s.table}},
		})
		if err != nil {
			return 0, err
		}
		took = append(took, ms(time.Since(began)))
	}
	return stats.Of(took).Median, nil
}
