package fence

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go/middleware"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/leasehold-go/leasehold/internal/attempts"
	"github.com/leasehold-go/leasehold/internal/core"
	"github.com/leasehold-go/leasehold/internal/decide"
	"github.com/leasehold-go/leasehold/internal/protocol"
)

// Locks is the set of locks whose grants guard a commit.
type Locks interface {
	// Trusted reports whether all the locks are trusted. Once they are not, the commit sends
	// requests only to find out the outcome of an earlier request that had no answer.
	Trusted() bool

	// LockSession waits until this commit may send a request, and blocks other commits
	// until leave is called.
	LockSession(ctx context.Context) (leave func())

	// Throttled is called for each request that DynamoDB throttled, or rejected because of a
	// conflict with another transaction.
	Throttled(err error)
}

// Commit is one transaction of writes and guards. The diagram in doc.go shows its stages.
type Commit struct {
	env    *core.Env
	locks  Locks
	writes *request // request with the writes and the guards
	guards *request // request with the guards alone

	began      decide.Instant // when the first request with the idempotency token began
	requests   int
	unanswered bool // at least one request got no answer

	mu       sync.Mutex    // guards the fields below
	left     bool          // the caller no longer waits, so the commit sends nothing more
	lastErr  error         // error of the last request that has ended; nil if it succeeded
	inFlight chan struct{} // closed when the SDK no longer reads the caller's values for the request in flight; nil if no request is in flight
}

// Result is the outcome of a commit.
type Result struct {
	Step     decide.Step                // one of Committed, NotHeld, Cancelled, Rejected, GiveUp and Doubtful
	Err      error                      // error of the last request; if Step is Cancelled, error of the request in which a write failed
	Writes   []types.CancellationReason // if Step is Cancelled, one reason for each write
	Failed   map[int]protocol.Item      // if Step is NotHeld, the items of the failed guards (at least one guard); see decide.CommitReply
	Requests int
	Took     time.Duration
}

// New prepares a commit. Its transaction consists of the caller's writes, followed by the items of
// the slice "ends". That slice has the same order as guards. Each of its items is a guard, or the
// write that releases the lock if the commit is to release it.
func New(env *core.Env, locks Locks, writes, ends, guards []types.TransactWriteItem) *Commit {
	id := protocol.NewVersion()
	form := func(items []types.TransactWriteItem) *request {
		return &request{in: &dynamodb.TransactWriteItemsInput{TransactItems: items, ClientRequestToken: aws.String(id)}, guards: len(guards)}
	}
	return &Commit{env: env, locks: locks, writes: form(slices.Concat(writes, ends)), guards: form(guards)}
}

// Run sends requests until the outcome of the commit is known, or until the commit gives up. When
// ctx is done, Run still waits for the request in flight, but begins no other request. The caller
// must call Run only once.
func (c *Commit) Run(ctx context.Context) Result {
	c.began = c.env.Now()
	r := c.run(ctx)
	r.Requests, r.Took = c.requests, c.env.Now().Mono-c.began.Mono
	return r
}

func (c *Commit) run(ctx context.Context) Result {
	var last, cancelled Result
	var pauses attempts.Pauses
	stage, request := decide.Sending, c.writes
	for {
		reply, sent, err := c.send(ctx, request)
		if !sent {
			last.Step = decide.GiveUp
			if c.unanswered {
				last.Step = decide.Doubtful
			}
			return last
		}
		last = Result{Err: err}
		switch reply.Cause {
		case decide.WriteFailed:
			cancelled = Result{Step: decide.Cancelled, Err: err, Writes: reply.Writes}
		case decide.GuardFailed:
			last.Failed = reply.Failed
		case decide.Busy:
			c.locks.Throttled(err)
			c.env.Requests.Pause(ctx, &pauses)
		case decide.Unreachable:
			c.env.Requests.Pause(ctx, &pauses)
		}
		last.Step = decide.NextCommit(reply, decide.Course{
			Stage: stage, Unanswered: c.unanswered, Trusted: c.locks.Trusted(), Stopped: ctx.Err() != nil || c.isTokenOld(),
		})
		switch last.Step {
		case decide.Again:
		case decide.Void:
			stage, request = decide.Voiding, c.guards
		case decide.Reread:
			stage, request = decide.Rereading, c.writes
		case decide.Cancelled:
			return cancelled
		default:
			return last
		}
	}
}

// send sends a request once, and waits for its answer even if the caller of the commit no longer
// waits. The result "sent" is false if the method begin does not allow the request.
func (c *Commit) send(ctx context.Context, r *request) (_ decide.CommitReply, sent bool, _ error) {
	defer c.locks.LockSession(ctx)()
	inFlight := c.begin(ctx)
	if inFlight == nil {
		return decide.CommitReply{}, false, nil
	}
	read := sync.OnceFunc(func() { close(inFlight) })
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), attempts.Limit)
	defer cancel()
	reply, err := r.send(ctx, c, read)
	c.requests++
	c.unanswered = c.unanswered || reply.Effect == decide.Unknown
	c.mu.Lock()
	c.inFlight, c.lastErr = nil, err
	c.mu.Unlock()
	read() // a wrapper around the SDK client may drop the option that calls read, so read is called here, too
	return reply, true, err
}

// begin marks a request as in flight, and returns a new channel. It returns nil if the commit may
// not send a request. The caller must close the channel once the SDK no longer reads the values in
// the writes: Answered waits for this.
func (c *Commit) begin(ctx context.Context) (inFlight chan struct{}) {
	if ctx.Err() != nil || !c.unanswered && !c.locks.Trusted() {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.left {
		return nil
	}
	c.inFlight = make(chan struct{})
	return c.inFlight
}

// LastErr returns the error of the last request that has ended. It returns nil if that request
// succeeded, or if no request has ended.
func (c *Commit) LastErr() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.lastErr
}

// Answered implements attempts.Sent. It is called when the caller stops waiting for Run, which then
// begins no further request. It waits until the SDK no longer reads the caller's values. It returns
// false if a request is still in flight after that.
func (c *Commit) Answered() bool {
	c.mu.Lock()
	c.left = true
	read := c.inFlight
	c.mu.Unlock()
	if read == nil {
		return true
	}
	<-read
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.inFlight == nil
}

// request is one transaction that may be sent several times under one idempotency token. At
// most one copy is in flight at a time.
type request struct {
	in     *dynamodb.TransactWriteItemsInput
	guards int    // number of guards; they are the last items of the transaction
	body   []byte // serialized body of the first attempt
}

// send sends the request once, for the commit c. It calls the function "read" when the SDK has read
// the caller's values.
func (r *request) send(ctx context.Context, c *Commit, read func()) (decide.CommitReply, error) {
	reply, err := c.env.Requests.Commit(ctx, r.in, r.guards, r.inTheSameBytes(read), c.checkWhenSigned)
	if errors.Is(err, errTokenOld) {
		reply = decide.CommitReply{Effect: decide.NotApplied, Cause: decide.Unreachable}
	}
	return reply, err
}

// inTheSameBytes returns an SDK option that makes every attempt send the same bytes. Otherwise the
// order of a map's members would vary, and DynamoDB may take that for a different request
// (aws-sdk-go-v2 issue 1900). The option calls "read" once the caller's values are read.
func (r *request) inTheSameBytes(read func()) func(*dynamodb.Options) {
	replace := func(ctx context.Context, in middleware.SerializeInput, next middleware.SerializeHandler) (
		out middleware.SerializeOutput, md middleware.Metadata, err error,
	) {
		req, ok := in.Request.(*smithyhttp.Request)
		if !ok {
			return out, md, fmt.Errorf("leasehold: a request of unknown type %T", in.Request)
		}
		if r.body == nil {
			if r.body, err = io.ReadAll(req.GetStream()); err != nil {
				return out, md, err
			}
		}
		if in.Request, err = req.SetStream(bytes.NewReader(r.body)); err != nil {
			return out, md, err
		}
		read()
		return next.HandleSerialize(ctx, in)
	}
	return func(o *dynamodb.Options) {
		o.APIOptions = append(o.APIOptions, func(stack *middleware.Stack) error {
			return stack.Serialize.Add(middleware.SerializeMiddlewareFunc("leasehold.SameBytes", replace), middleware.After)
		})
	}
}

// tokenUse is how long after the start of a commit its requests may be signed. DynamoDB accepts a
// request only within five minutes of its signature, so all arrive within ten minutes of the start.
// DynamoDB keeps a token for ten minutes after the first request that used it has completed (API
// reference, TransactWriteItems).
const tokenUse = 5 * time.Minute

// errTokenOld is the error of a request that was signed but not sent, because its token was
// too old by then.
var errTokenOld = errors.New("this request was not sent: its idempotency token is more than five minutes old")

// isTokenOld reports whether the commit's idempotency token is too old for another request.
func (c *Commit) isTokenOld() bool { return c.env.Now().Since(c.began) >= tokenUse }

// checkWhenSigned makes the SDK check the token's age right after it has signed a request. The
// process may be paused before the signature, and DynamoDB checks only how long ago a request was
// signed.
func (c *Commit) checkWhenSigned(o *dynamodb.Options) {
	check := func(ctx context.Context, in middleware.FinalizeInput, next middleware.FinalizeHandler) (middleware.FinalizeOutput, middleware.Metadata, error) {
		if c.isTokenOld() {
			return middleware.FinalizeOutput{}, middleware.Metadata{}, errTokenOld
		}
		return next.HandleFinalize(ctx, in)
	}
	o.APIOptions = append(o.APIOptions, func(stack *middleware.Stack) error {
		return stack.Finalize.Add(middleware.FinalizeMiddlewareFunc("leasehold.TokenAge", check), middleware.After)
	})
}
