package fence_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"

	"github.com/leasehold-go/leasehold/internal/attempts"
	"github.com/leasehold-go/leasehold/internal/core"
	"github.com/leasehold-go/leasehold/internal/decide"
	"github.com/leasehold-go/leasehold/internal/fence"
	"github.com/leasehold-go/leasehold/internal/lab"
	"github.com/leasehold-go/leasehold/internal/machine"
)

// fate is the outcome of one request of a commit, as the simulated network and DynamoDB decide it.
type fate string

const (
	answered  fate = "answered"
	replyLost fate = "reply lost"
	lost      fate = "lost"
	late      fate = "late" // the request arrives after a later request, or after Commit has returned
	throttled fate = "throttled"
	refused   fate = "refused"
)

// change is a change of the table that happens just before a request is sent.
type change string

const (
	nothing      change = "nothing"
	guardFails   change = "the guard fails"
	writeToggles change = "the write's condition changes"
	lateArrives  change = "late requests arrive"
)

type event struct {
	change change
	fate   fate
}

// table simulates DynamoDB and the network for one commit of one write with one guard. It remembers
// the body of the request that has used the idempotency token.
type table struct {
	attempts.DB // nil, because a commit calls only TransactWriteItems

	held, open bool // held: the guard's condition is true; open: the write's condition is true
	used       string
	applied    int
	late       []*dynamodb.TransactWriteItemsInput

	script    []event
	afterward func() // called when the script has no more events
	tokens    map[string]bool
	untrusted bool
	heard     func() // called when the commit reports that a request was throttled
	turn      func() // called before each request of the commit; the request is sent after turn has returned
}

var errSilence = errors.New("silence")

func (tb *table) TransactWriteItems(_ context.Context, in *dynamodb.TransactWriteItemsInput, _ ...func(*dynamodb.Options)) (*dynamodb.TransactWriteItemsOutput, error) {
	tb.tokens[*in.ClientRequestToken] = true
	next := event{nothing, answered}
	if len(tb.script) > 0 {
		next, tb.script = tb.script[0], tb.script[1:]
	}
	if len(tb.script) == 0 {
		tb.afterward()
	}
	switch next.change {
	case guardFails:
		tb.held = false
	case writeToggles:
		tb.open = !tb.open
	case lateArrives:
		tb.arrive()
	}
	switch next.fate {
	case replyLost:
		_ = tb.apply(in)
	case late:
		tb.late = append(tb.late, in)
	case throttled:
		return nil, &smithy.GenericAPIError{Code: "ThrottlingException", Fault: smithy.FaultClient}
	case refused:
		return nil, &smithy.GenericAPIError{Code: "AccessDeniedException", Fault: smithy.FaultClient}
	case answered:
		if err := tb.apply(in); err != nil {
			return nil, err
		}
		return &dynamodb.TransactWriteItemsOutput{}, nil
	}
	return nil, errSilence
}

func (tb *table) arrive() {
	for _, in := range tb.late {
		_ = tb.apply(in)
	}
	tb.late = nil
}

// apply executes a transaction. The transaction consists of a write and the guard, or of the
// guard alone.
func (tb *table) apply(in *dynamodb.TransactWriteItemsInput) error {
	body := fmt.Sprint(len(in.TransactItems))
	switch tb.used {
	case "":
	case body:
		return nil
	default:
		return &types.IdempotentParameterMismatchException{}
	}
	writes := len(in.TransactItems) == 2
	var reasons []types.CancellationReason
	if writes {
		reasons = append(reasons, reason(tb.open))
	}
	reasons = append(reasons, reason(tb.held))
	if writes && !tb.open || !tb.held {
		return &types.TransactionCanceledException{CancellationReasons: reasons}
	}
	tb.used = body
	if writes {
		tb.applied++
	}
	return nil
}

func reason(ok bool) types.CancellationReason {
	if ok {
		return types.CancellationReason{Code: aws.String("None")}
	}
	return types.CancellationReason{Code: aws.String("ConditionalCheckFailed")}
}

func (tb *table) Trusted() bool { return !tb.untrusted }
func (tb *table) LockSession(context.Context) (leave func()) {
	if tb.turn != nil {
		tb.turn()
	}
	return func() {}
}
func (tb *table) Throttled(error) {
	if tb.heard != nil {
		tb.heard()
	}
}

func (tb *table) commit() *fence.Commit {
	tb.tokens = map[string]bool{}
	if tb.afterward == nil {
		tb.afterward = func() {}
	}
	one := []types.TransactWriteItem{{}}
	sender := &attempts.Sender{DB: tb, Chance: func() float64 { return 0 }, Log: slog.New(slog.DiscardHandler)}
	return fence.New(&core.Env{Requests: sender, Machine: machine.Machine{Now: func() decide.Instant { return decide.Instant{} }}}, tb, one, one, one)
}

// afterwards is what happens after the three events of a test case.
type afterwards string

const (
	healed    afterwards = "everything is answered"
	stopped   afterwards = "the caller leaves"
	untrusted afterwards = "trust ends"
)

// TestCommitReportsWhetherWritesWereApplied runs a commit with every sequence of fates of three
// requests. A write that Commit reports as applied was applied exactly once. A write that it
// reports as not applied is never applied, even by a request that arrives late.
func TestCommitReportsWhetherWritesWereApplied(t *testing.T) {
	var events []event
	for _, change := range []change{nothing, guardFails, writeToggles, lateArrives} {
		for _, fate := range []fate{answered, replyLost, lost, late, throttled, refused} {
			events = append(events, event{change, fate})
		}
	}
	steps := map[decide.Step]int{}
	for _, open := range []bool{true, false} {
		for _, after := range []afterwards{healed, stopped, untrusted} {
			for _, first := range events {
				for _, second := range events {
					for _, third := range events {
						script := []event{first, second, third}
						steps[try(t, open, after, script)]++
						if t.Failed() {
							t.Fatalf("open %v, then %s: %v", open, after, script)
						}
					}
				}
			}
		}
	}
	for _, step := range []decide.Step{decide.Committed, decide.NotHeld, decide.Cancelled, decide.Rejected, decide.GiveUp, decide.Doubtful} {
		if steps[step] == 0 {
			t.Errorf("step %v was never reached: %v", step, steps)
		}
	}
}

func try(t *testing.T, open bool, after afterwards, script []event) decide.Step {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	tb := &table{held: true, open: open, script: script}
	tb.afterward = func() {
		switch after {
		case stopped:
			cancel()
		case untrusted:
			tb.untrusted = true
		}
	}
	r := tb.commit().Run(ctx)
	applied := tb.applied
	tb.open = true
	tb.arrive()
	lab.Want(t, "tokens", len(tb.tokens), 1)
	switch r.Step {
	case decide.Committed:
		lab.Want(t, "times applied", applied, 1)
		lab.Want(t, "commit", r.Err, nil)
	case decide.Doubtful:
		if after == healed && !slices.ContainsFunc(script, func(e event) bool { return e.fate == refused }) {
			t.Error("the outcome is unknown, although the later requests were answered")
		}
	default:
		if tb.applied != 0 || r.Err == nil {
			t.Errorf("step %v: applied %d times, error %v", r.Step, tb.applied, r.Err)
		}
	}
	_, first := r.Failed[0]
	switch {
	case tb.applied > 1:
		t.Errorf("applied %d times", tb.applied)
	case r.Step == decide.NotHeld && (tb.held || len(r.Failed) != 1 || !first):
		t.Errorf("not held: held %v, guards %v", tb.held, r.Failed)
	case r.Step == decide.Cancelled && (len(r.Writes) != 1 || *r.Writes[0].Code != "ConditionalCheckFailed"):
		t.Errorf("cancelled by %v", r.Writes)
	}
	return r.Step
}

func TestCommitCancelledBeforeFirstRequestSendsNothing(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	tb := &table{held: true, open: true, turn: cancel} // the context ends while the commit waits for permission to send
	if r := tb.commit().Run(ctx); r.Step != decide.GiveUp || r.Requests != 0 || tb.applied != 0 {
		t.Errorf("step %v, %d requests, applied %d times", r.Step, r.Requests, tb.applied)
	}
}

func TestThrottledCommitIsNotRetriedAfterCancellation(t *testing.T) {
	tb := &table{held: true, open: true, script: []event{{nothing, throttled}}}
	c := tb.commit()
	tb.heard = func() {
		if !c.Answered() {
			t.Error("Answered reported a request in flight")
		}
	}
	if r := c.Run(t.Context()); r.Step != decide.GiveUp || r.Requests != 1 || tb.applied != 0 {
		t.Errorf("step %v, %d requests, applied %d times", r.Step, r.Requests, tb.applied)
	}
}

// The first request of the commit gets no reply. The caller cancels the context while the
// commit waits before it sends the request again.
func TestCommitCancelledBeforeRetryHasUnknownOutcome(t *testing.T) {
	tb := &table{held: true, open: true, script: []event{{nothing, late}}}
	c := tb.commit()
	turns := 0
	tb.turn = func() {
		if turns++; turns == 2 {
			c.Answered()
		}
	}
	if r := c.Run(t.Context()); r.Step != decide.Doubtful || r.Requests != 1 {
		t.Errorf("step %v, %d requests", r.Step, r.Requests)
	}
}
