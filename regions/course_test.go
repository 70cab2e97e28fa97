package regions

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"

	"github.com/leasehold-go/leasehold/internal/lab"
)

var (
	errReset  = errors.New("connection reset by peer")
	errServer = &smithy.GenericAPIError{Code: "InternalServerError", Fault: smithy.FaultServer}
)

// wrongClockError imitates the SDK's wrapper around the error of a request that was signed with a
// wrong clock.
type wrongClockError struct{ error }

func (e wrongClockError) Unwrap() error        { return e.error }
func (e wrongClockError) RetryableError() bool { return true }

func TestOutcomeOfRequestDecidesWhetherRegionCountsAsFailed(t *testing.T) {
	const at = time.Minute
	for name, c := range map[string]struct {
		err   error
		took  time.Duration
		limit time.Duration // time limit of the request, counted from its start
		want  outcome
	}{
		"answered":                     {nil, time.Millisecond, time.Second, serves},
		"condition failed":             {&types.ConditionalCheckFailedException{}, time.Millisecond, time.Second, serves},
		"throttled":                    {&types.ProvisionedThroughputExceededException{}, time.Millisecond, time.Second, serves},
		"conflict of two Regions":      {&types.ReplicatedWriteConflictException{}, time.Millisecond, time.Second, serves},
		"refused":                      {&smithy.GenericAPIError{Code: "AccessDeniedException", Fault: smithy.FaultClient}, time.Millisecond, time.Second, saysNothing},
		"signed by a wrong clock":      {wrongClockError{&smithy.GenericAPIError{Code: "InvalidSignatureException", Fault: smithy.FaultClient}}, time.Millisecond, time.Second, saysNothing},
		"timeout of credentials":       {&v4.SigningError{Err: context.DeadlineExceeded}, time.Second, time.Second, saysNothing},
		"reset":                        {errReset, time.Millisecond, time.Second, failed},
		"server error":                 {errServer, time.Millisecond, time.Second, failed},
		"timeout":                      {context.DeadlineExceeded, time.Second, time.Second, failed},
		"timeout, noticed at once":     {context.DeadlineExceeded, time.Second + noticedLate, time.Second, failed},
		"timeout, noticed late":        {context.DeadlineExceeded, time.Second + noticedLate + 1, time.Second, saysNothing},
		"shortest timeout that counts": {context.DeadlineExceeded, shortestWait, shortestWait, failed},
		"timeout too short to count":   {context.DeadlineExceeded, shortestWait - 1, shortestWait - 1, saysNothing},
		"cancelled":                    {context.Canceled, time.Second, time.Minute, saysNothing},
		"reset, noticed late":          {errReset, time.Minute, time.Second, failed},
		"cancelled at once":            {context.Canceled, 0, time.Second, saysNothing},
	} {
		t.Run(name, func(t *testing.T) {
			e := exchange{sent: at, ended: at + c.took, limit: at + c.limit, err: c.err}
			lab.Want(t, "outcome", e.outcome(), c.want)
		})
	}
}

// TestOutcomesOfRequestsDetermineWhichRegionIsUsedNext runs scripts of request outcomes in three
// Regions. It checks which Region the client uses after each script.
func TestOutcomesOfRequestsDetermineWhichRegionIsUsedNext(t *testing.T) {
	type step func(*course)
	fails := func(at time.Duration) step {
		return func(c *course) {
			c.note(exchange{region: c.at, moves: c.moves, sent: at, ended: at, err: errReset, kind: write}, true)
		}
	}
	answers := func(at, took time.Duration) step {
		return func(c *course) {
			c.note(exchange{region: c.at, moves: c.moves, sent: at, ended: at + took, kind: write}, true)
		}
	}
	scans := func(c *course) { c.note(exchange{region: c.at, moves: c.moves, ended: 1}, true) }
	probed := func(from, to time.Duration, err error) step {
		return func(c *course) {
			for at := from; at <= to; at += probeEvery {
				c.noteProbe(exchange{sent: at, ended: at + 10*time.Millisecond, limit: at + silence, err: err})
			}
		}
	}
	probedAt := func(at time.Duration) step {
		return func(c *course) { c.noteProbe(exchange{sent: at, ended: at, limit: at + silence}) }
	}
	const s = time.Second
	none, reads, writes := [write + 1]bool{}, [write + 1]bool{read: true}, [write + 1]bool{write: true}
	for name, c := range map[string]struct {
		steps []step
		at    int
		quick [write + 1]bool // kinds of requests with the short time limit
	}{
		"starts in home Region":                  {nil, 0, none},
		"quick reply shortens time limit":        {[]step{answers(0, s)}, 0, writes},
		"slow reply does not shorten it":         {[]step{answers(0, s+1)}, 0, none},
		"later slow reply does not lengthen it":  {[]step{answers(0, s), answers(2*s, s+1)}, 0, writes},
		"leaves failed Region":                   {[]step{fails(s)}, 1, none},
		"scan does not shorten time limit":       {[]step{scans}, 0, none},
		"move restores time limit":               {[]step{answers(0, s), fails(s)}, 1, none},
		"leaves second failed Region":            {[]step{fails(s), fails(2 * s)}, 2, none},
		"returns home if all others fail":        {[]step{fails(s), fails(2 * s), fails(3 * s)}, 0, none},
		"returns home after 30 s of probes":      {[]step{fails(s), probed(10*s, 40*s, nil)}, 0, reads},
		"returns home after exactly 30 s":        {[]step{fails(s), probedAt(10 * s), probedAt(40 * s)}, 0, reads},
		"stays away after 25 s of probes":        {[]step{fails(s), probed(10*s, 35*s, nil)}, 1, none},
		"stays away if a probe failed":           {[]step{fails(s), probed(10*s, 20*s, nil), probed(25*s, 25*s, errReset), probed(30*s, 55*s, nil)}, 1, none},
		"stays away twice as long after relapse": {[]step{fails(s), probed(10*s, 40*s, nil), fails(100 * s), probed(110*s, 165*s, nil)}, 1, none},
		"returns home after twice as long":       {[]step{fails(s), probed(10*s, 40*s, nil), fails(100 * s), probed(110*s, 170*s, nil)}, 0, reads},
		"failure after two minutes is relapse":   {[]step{fails(s), probedAt(10 * s), probedAt(40 * s), fails(40*s + relapse), probed(170*s, 205*s, nil)}, 1, none},
		"later failure is no relapse":            {[]step{fails(s), probed(10*s, 40*s, nil), fails(200 * s), probed(210*s, 240*s, nil)}, 0, reads},
	} {
		t.Run(name, func(t *testing.T) {
			on := course{regions: 3}
			for _, step := range c.steps {
				step(&on)
			}
			lab.Want(t, "Region, and whether its time limit is short", [2]any{on.at, on.quick}, [2]any{c.at, c.quick})
		})
	}
}

func TestFailureOfRequestSentBeforeFailoverCausesNoNewFailover(t *testing.T) {
	c := course{regions: 3}
	before := exchange{sent: 1, ended: 2, err: errReset}
	c.note(before, true)
	c.note(before, true)
	lab.Want(t, "Region after two failures in the previous Region", c.at, 1)
	round := course{regions: 3}
	for range 3 {
		round.leave(3, errReset)
	}
	round.note(before, true)
	lab.Want(t, "Region after a request from before all moves", round.at, 0)
	home := exchange{moves: c.moves, sent: 1, ended: 2, err: errReset} // a request for a table whose requests stay in the home Region
	c.note(home, true)
	lab.Want(t, "Region after a failure in the home Region", c.at, 1)
}

func TestClientStaysInHomeRegionIfFailoverIsNotAllowed(t *testing.T) {
	c := course{regions: 3}
	c.note(exchange{ended: 1, err: errReset}, false)
	lab.Want(t, "Region", c.at, 0)
}

func TestReturnToHomeRegionWaitsAtMostEightMinutes(t *testing.T) {
	c := course{regions: 2}
	now := time.Second
	for range 10 {
		c.leave(now, errReset)
		c.back, c.at = now+time.Second, 0
		now += 2 * time.Second
	}
	lab.Want(t, "wait", c.wait, longestHome)
}

func TestProbeOfHomeRegionIsDueEveryFiveSeconds(t *testing.T) {
	c := course{regions: 2}
	lab.Want(t, "a probe is due while requests go home", c.probes(time.Hour), false)
	c.leave(time.Second, errReset)
	var sent []time.Duration
	for at := time.Second; at < 20*time.Second; at += time.Second {
		if c.probes(at) {
			sent = append(sent, at)
		}
	}
	if len(sent) != 3 || sent[0] != time.Second+probeEvery {
		t.Errorf("probes at %v", sent)
	}
}

// global returns the description of a global table, as DescribeTable in one of its Regions
// returns it.
func global(mode types.MultiRegionConsistency, others ...string) *types.TableDescription {
	d := &types.TableDescription{MultiRegionConsistency: mode}
	for _, name := range others {
		d.Replicas = append(d.Replicas, types.ReplicaDescription{RegionName: aws.String(name), ReplicaStatus: types.ReplicaStatusActive})
	}
	return d
}

func TestFailoverNeedsStrongConsistencyAndReplicas(t *testing.T) {
	strong := types.MultiRegionConsistencyStrong
	creating := global(strong, "b", "c")
	creating.Replicas[1].ReplicaStatus = types.ReplicaStatusCreating
	denied := &smithy.GenericAPIError{Code: "AccessDeniedException", Fault: smithy.FaultClient}
	outage := errors.New("no such host")
	type answer struct {
		region string
		table  *types.TableDescription
		err    error
	}
	for name, c := range map[string]struct {
		answers []answer
		known   bool
		why     string
	}{
		"strong":                          {[]answer{{"a", global(strong, "b", "c"), nil}}, true, ""},
		"strong, lists own Region too":    {[]answer{{"a", global(strong, "a", "b", "c"), nil}}, true, ""},
		"eventual":                        {[]answer{{"a", global(types.MultiRegionConsistencyEventual, "b", "c"), nil}}, true, "it is no global table with multi-Region strong consistency"},
		"in one Region":                   {[]answer{{"a", &types.TableDescription{}, nil}}, true, "it is no global table with multi-Region strong consistency"},
		"one Region missing":              {[]answer{{"a", global(strong, "b"), nil}}, true, "it has no active replica in c"},
		"one Region not ready":            {[]answer{{"a", creating, nil}}, true, "it has no active replica in c"},
		"denied":                          {[]answer{{"a", nil, denied}}, true, "DescribeTable in a: " + denied.Error()},
		"outage at home":                  {[]answer{{"a", nil, outage}, {"b", global(strong, "a", "c"), nil}}, true, ""},
		"home denies":                     {[]answer{{"a", nil, denied}, {"b", global(strong, "a", "c"), nil}}, true, ""},
		"home is strong, another denies":  {[]answer{{"a", global(strong, "b", "c"), nil}, {"b", nil, denied}}, true, ""},
		"reply without table":             {[]answer{{"a", nil, nil}}, false, ""},
		"one Region missing, home denies": {[]answer{{"b", global(strong, "a"), nil}, {"a", nil, denied}}, true, "DescribeTable in a: " + denied.Error()},
		"outage everywhere":               {[]answer{{"a", nil, outage}, {"b", nil, outage}, {"c", nil, outage}}, false, ""},
		"outage at home, another denies":  {[]answer{{"a", nil, outage}, {"b", nil, denied}}, true, "DescribeTable in b: " + denied.Error()},
	} {
		t.Run(name, func(t *testing.T) {
			var got verdict
			for _, a := range c.answers {
				got = got.with(judge(a.region, &dynamodb.DescribeTableOutput{Table: a.table}, a.err, []string{"a", "b", "c"}))
			}
			isStrong := slices.ContainsFunc(c.answers, func(a answer) bool {
				return a.table != nil && a.table.MultiRegionConsistency == strong
			})
			isFinal := strings.HasPrefix(c.why, "it is no global table")
			lab.Want(t, "verdict", got, verdict{c.known, isStrong, c.why, isFinal})
		})
	}
}
