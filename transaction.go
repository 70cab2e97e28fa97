package leasehold

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go/middleware"

	"github.com/leasehold-go/leasehold/internal/attempts"
	"github.com/leasehold-go/leasehold/internal/decide"
	"github.com/leasehold-go/leasehold/internal/protocol"
)

// tokenUse is how long requests are signed under one token. DynamoDB keeps a
// token for ten minutes after the first request that used it was completed (API
// reference, TransactWriteItems), and takes no request that was signed more
// than five minutes before it arrives.
const tokenUse = 5 * time.Minute

// errTokenOld is why a request was not sent that had been signed too late.
var errTokenOld = errors.New("this request was not sent: its idempotency token is more than five minutes old")

// transaction is one call of Commit: the caller's writes and a guard for each
// lock, or its release, all under one idempotency token.
type transaction struct {
	c      *Client
	caller context.Context
	ctx    context.Context // ends with the caller's, or when the client closes
	stop   context.CancelFunc
	holds  []*holding
	rows   []*holding // all that is guarded: holds, and their sessions
	writes int
	token  string
	whole  *form                // all of it
	void   *form                // the guards alone
	ended  func(*holding) error // why nothing is begun under a lock any more; nil: it may be
	losses []*LostError         // of holds: how they were found to be lost

	began decide.Instant
	took  time.Duration // once it has been run
	sent  int
	open  bool // some request has had no answer

	mu    sync.Mutex    // guards what follows
	taken chan struct{} // of the request on its way: closed when the caller's values have been read; nil: none is
}

// form is a request that may be sent more than once.
type form struct {
	items  []types.TransactWriteItem
	guards int
	bytes  sameBytes
}

// newTransaction prepares a commit: ends has the guard of each of holds, or its
// release. The guards of their sessions are added.
func newTransaction(ctx context.Context, holds []*holding, writes, ends []types.TransactWriteItem) *transaction {
	rows := guarded(holds)
	t := &transaction{
		c: holds[0].c, caller: ctx, holds: holds, rows: rows, ended: (*holding).ended, losses: make([]*LostError, len(holds)), writes: len(writes), token: protocol.NewVersion(),
		whole: &form{items: slices.Concat(writes, ends, guardsOf(rows[len(holds):])), guards: len(rows)},
		void:  &form{items: guardsOf(rows), guards: len(rows)},
	}
	t.ctx, t.stop = t.c.untilClosing(ctx)
	return t
}

// commit takes the turn of every lock, one after the other, and runs t. The
// turns end before anybody is told, who may commit or release the locks.
func (t *transaction) commit() error {
	ran, err := t.inTurn()
	if ran {
		t.report(err)
	}
	return err
}

// inTurn runs t in the turn of every lock, and says whether it came to that.
func (t *transaction) inTurn() (ran bool, err error) {
	defer t.stop()
	for _, h := range t.holds {
		select {
		case h.committing <- struct{}{}:
			defer h.endTurn()
		case <-t.ctx.Done():
			return false, notSent(h, context.Cause(t.ctx))
		case <-h.over:
			return false, h.ended()
		}
	}
	_, err = t.run()
	return true, err
}

// run sends the transaction until what became of it is known, or cannot be,
// and says which. It is called once.
func (t *transaction) run() (decide.Step, error) {
	defer t.stop()
	t.began = t.c.now()
	var failed error // what the writes were cancelled by
	step, err := t.next(&failed)
	t.took = t.c.now().Mono - t.began.Mono
	return step, err
}

// report tells how it ended.
func (t *transaction) report(err error) {
	t.c.emit(context.WithoutCancel(t.caller), Event{
		Kind: EventCommitted, Key: t.holds[0].key, Token: t.holds[0].token,
		Took: t.took, Requests: t.sent, Err: err,
	})
}

func (t *transaction) next(failed *error) (decide.Step, error) {
	stage, f := decide.Sending, t.whole
	var last error
	for n := 0; ; n++ {
		leave := t.takeTurns()
		if !t.takeOff() {
			leave()
			return t.unsettled(last)
		}
		reply, err := t.send(f)
		leave()
		last = err
		t.open = t.open || reply.Effect == decide.Unknown
		if reply.Cause == decide.WriteFailed {
			*failed = &CommitError{Table: t.c.cfg.Table, Key: t.holds[0].key, Reasons: reply.Reasons[:t.writes], Err: err}
		}
		if reply.Cause == decide.Busy || reply.Cause == decide.Unreachable {
			pause(t.ctx.Done(), t.c.backoff(n, time.Second))
		}
		switch step := decide.NextCommit(reply, decide.Course{
			Stage: stage, Open: t.open, Trusted: t.trusted(), Stopped: t.ctx.Err() != nil || t.tokenIsOld(),
		}); step {
		case decide.Again:
		case decide.Void:
			stage, f = decide.Voiding, t.void
		case decide.Reread:
			stage, f = decide.Rereading, t.whole
		case decide.Landed:
			return step, nil
		case decide.NotHeld:
			return step, t.lost(reply, err)
		case decide.Cancelled:
			return step, *failed
		case decide.Rejected:
			return step, opError("commit", t.c.cfg.Table, t.holds[0].key, err)
		default:
			return t.unsettled(err)
		}
	}
}

// takeOff counts a request as being on its way, unless there is no use in it:
// from then on a caller that leaves leaves an open question.
func (t *transaction) takeOff() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.caller.Err() != nil || t.ctx.Err() != nil || !t.open && !t.trusted() {
		return false
	}
	t.taken = make(chan struct{})
	return true
}

// landed ends the way of a request.
func (t *transaction) landed() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.taken = nil
}

// left is what a caller is told that leaves: nothing was sent, or all was
// answered; or the outcome is unknown.
func (t *transaction) left(ctx context.Context, done <-chan error) error {
	taken := t.onItsWay()
	if taken == nil {
		return <-done // at once: a caller that has left sends nothing more
	}
	select {
	case err := <-done:
		return err
	case <-taken:
	}
	if t.onItsWay() == nil { // answered by now
		return <-done
	}
	return t.c.unknownOutcome("commit", t.holds[0].key, context.Cause(ctx))
}

func (t *transaction) onItsWay() chan struct{} {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.taken
}

// send sends a form once, and waits for the answer whatever becomes of the
// caller.
func (t *transaction) send(f *form) (decide.CommitReply, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.caller), attemptLimit)
	defer cancel()
	taken := t.onItsWay()
	f.bytes.taken = sync.OnceFunc(func() { close(taken) })
	defer f.bytes.taken() // a wrapper may have taken no options
	defer t.landed()
	t.sent++
	_, err := t.c.db.TransactWriteItems(ctx, &dynamodb.TransactWriteItemsInput{
		TransactItems: f.items, ClientRequestToken: aws.String(t.token),
	}, attempts.NoRetries, f.bytes.options, t.whileTokenIsYoung)
	reply := decide.ClassifyCommit(err, len(f.items), f.guards)
	reply.Cause, err = t.c.requests.CauseOf(reply.Cause, err)
	if errors.Is(err, errTokenOld) {
		reply = decide.CommitReply{Effect: decide.NotApplied, Cause: decide.Unreachable}
	}
	if reply.Cause == decide.Busy {
		t.c.emit(ctx, Event{Kind: EventThrottled, Key: t.holds[0].key, Token: t.holds[0].token, Requests: 1, Err: err})
	}
	return reply, err
}

// tokenIsOld reports whether DynamoDB may soon forget the token.
func (t *transaction) tokenIsOld() bool { return t.c.now().Since(t.began) >= tokenUse }

// whileTokenIsYoung has the SDK look at the token's age once more when it has
// signed a request. A process that stood still after the look before may have
// signed it only now, and DynamoDB would take it for five minutes more.
func (t *transaction) whileTokenIsYoung(o *dynamodb.Options) {
	look := func(ctx context.Context, in middleware.FinalizeInput, next middleware.FinalizeHandler) (middleware.FinalizeOutput, middleware.Metadata, error) {
		if t.tokenIsOld() {
			return middleware.FinalizeOutput{}, middleware.Metadata{}, errTokenOld
		}
		return next.HandleFinalize(ctx, in)
	}
	o.APIOptions = append(o.APIOptions, func(stack *middleware.Stack) error {
		return stack.Finalize.Add(middleware.FinalizeMiddlewareFunc("leasehold.TokenAge", look), middleware.After)
	})
}

// trusted reports whether something may be begun under all the locks.
func (t *transaction) trusted() bool {
	return !slices.ContainsFunc(t.holds, func(h *holding) bool { return t.ended(h) != nil })
}

// takeTurns waits for the turn of every session, in one order, and keeps others
// out until leave is called.
func (t *transaction) takeTurns() (leave func()) {
	rows := t.rows[len(t.holds):]
	leaves := make([]func(), len(rows))
	for i, row := range slices.SortedFunc(slices.Values(rows), func(a, b *holding) int { return compareKeys(a.key, b.key) }) {
		leaves[i] = row.heads.turn(t.ctx)
	}
	return func() {
		for _, leave := range leaves {
			leave()
		}
	}
}

// lost ends the locks whose guards failed, or those of whose session, and
// returns how the first was lost.
func (t *transaction) lost(reply decide.CommitReply, err error) error {
	failed := make([]failedGuard, len(reply.Failed))
	for i, guard := range reply.Failed {
		row, item := t.rows[guard], reply.Reasons[len(reply.Reasons)-len(t.rows)+guard].Item
		if item == nil { // there is none, or the engine does not return it
			item = t.c.read(context.WithoutCancel(t.caller), row.key).item
		}
		failed[i] = failedGuard{row, item}
	}
	t.losses = loseBy(failed, t.holds, func(h *holding) error {
		if !h.isOver() {
			return err
		}
		if otherwise := t.ended(h); !errors.Is(otherwise, ErrLost) {
			return joined(otherwise, err)
		}
		return err
	})
	return t.losses[slices.IndexFunc(t.losses, func(lost *LostError) bool { return lost != nil })]
}

// unsettled is the error of a commit that is not repeated any more.
func (t *transaction) unsettled(last error) (decide.Step, error) {
	cause := context.Cause(t.ctx)
	if t.open {
		return decide.Doubtful, t.c.unknownOutcome("commit", t.holds[0].key, errors.Join(cause, last))
	}
	for _, h := range t.holds {
		if err := t.ended(h); err != nil {
			return decide.GiveUp, joined(err, last)
		}
	}
	return decide.GiveUp, &OpError{Op: "commit", Table: t.c.cfg.Table, Key: t.holds[0].key,
		Err: fmt.Errorf("not committed: %w", errors.Join(cause, last))}
}

// outlived says how a lock that was given up here would be lost by now, nil while
// it would still be trusted.
func (h *holding) outlived() error {
	if h.session != nil {
		if h.session.row.ended() == nil {
			return nil
		}
		return h.session.lossOf(h)
	}
	h.mu.Lock()
	now := h.c.now()
	lasts := !now.Past(h.until) || h.throughOutage(now)
	h.mu.Unlock()
	if lasts {
		return nil
	}
	return h.lostError(LostExpired, nil, nil)
}
