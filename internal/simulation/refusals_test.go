package simulation

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/smithy-go"

	"github.com/leasehold-go/leasehold"
)

// In every world AWS refuses one process, or all of them, for a while: credentials have
// expired or are unknown, or access is denied. Every wait is checked for promise 11 of
// docs/guarantees.md: if the client was accepted before, a refusal does not end its wait.

const (
	refusalWindow = 5 * time.Second // length of a window; in each, at most one refusal of each process and one refusal of all processes begin
	briefRefusal  = time.Second / 3
	longRefusal   = 5 * time.Second // length of a long refusal, longer than the usual lease
)

// refusal returns how AWS refuses the process at the given instant, and the name of the
// refusal. It returns none if AWS does not refuse the process.
func (c *process) refusal(at time.Time) (what fault, name string) {
	since := at.Sub(c.began)
	for _, who := range []string{fmt.Sprint("process ", c.id), "everybody"} {
		for n := max(since/refusalWindow-1, 0); n <= since/refusalWindow; n++ {
			rng := drawn(c.seed, "refusal of", who, int(n))
			lasts := time.Duration(0)
			switch p := rng.IntN(100); {
			case p < 25:
				lasts = briefRefusal
			case p < 35:
				lasts = longRefusal
			}
			what = []fault{expiredAWhile, unknownAWhile, deniedAWhile}[rng.IntN(3)]
			if begins := n*refusalWindow + upTo(rng, refusalWindow); since >= begins && since < begins+lasts {
				return what, fmt.Sprintf("of %s, number %d", who, int(n)+1)
			}
		}
	}
	return none, ""
}

// refusalCodes are AWS's error codes for each refusal.
var refusalCodes = map[fault]string{
	expiredAWhile: "ExpiredTokenException",
	unknownAWhile: "UnrecognizedClientException",
	deniedAWhile:  "AccessDeniedException",
}

// isRefused reports whether a reply is a refusal.
func isRefused(body []byte) bool {
	return slices.ContainsFunc(slices.Collect(maps.Values(refusalCodes)), func(code string) bool {
		return bytes.Contains(body, []byte(`"`+code+`"`))
	})
}

// isRefusal reports whether an error is about refused credentials or denied access. It
// reads the text of the error, which shows the reason even if the client received another
// code.
func isRefusal(err error) (refusal, denied bool) {
	var api smithy.APIError
	if !errors.As(err, &api) {
		return false, false
	}
	denied = api.ErrorMessage() == refusalCodes[deniedAWhile]
	return denied || api.ErrorMessage() == refusalCodes[expiredAWhile] || api.ErrorMessage() == refusalCodes[unknownAWhile], denied
}

// wait is a call that may wait. A denial may end the wait only if DynamoDB has not yet
// answered a request that the wait has sent for the key.
type wait struct { // checker.mu guards it
	answered map[string]bool

	// These fields hold the state at the last refusal. Later answers must not count. A wait
	// may undo something before it ends, and DynamoDB answers those requests, too.
	answeredBefore map[string]bool
	acceptedBefore bool // DynamoDB had accepted the process before the refusal
}

type waitKey struct{}

// mayWait returns the context for a call that may wait.
func mayWait(ctx context.Context) context.Context {
	return context.WithValue(ctx, waitKey{}, &wait{answered: map[string]bool{}})
}

// heardOf records what a reply proves: that the credentials of the process are valid, that
// the wait that sent the request has been answered, or that the wait was refused.
func (c *process) heardOf(ctx context.Context, sent *request, res *http.Response) {
	body := bodyOf(res)
	c.checker.mu.Lock()
	defer c.checker.mu.Unlock()
	w, _ := ctx.Value(waitKey{}).(*wait)
	if w != nil && sent.manner != releases && isRefused(body) {
		w.answeredBefore, w.acceptedBefore = maps.Clone(w.answered), c.accepted
	}
	if res.StatusCode == http.StatusOK || strings.Contains(string(body), "ConditionalCheckFailedException") {
		c.accepted = true
	}
	if w == nil || res.StatusCode != http.StatusOK || sent.manner != reads && sent.manner != grants {
		return
	}
	for _, key := range sent.keys {
		w.answered[key] = true
	}
}

func (c *process) wasAccepted() bool {
	c.checker.mu.Lock()
	defer c.checker.mu.Unlock()
	return c.accepted
}

// onEvent checks waits that have ended, and locks that were lost.
func (c *process) onEvent(ctx context.Context, e leasehold.Event) {
	switch e.Kind {
	case leasehold.EventGaveUp:
		c.gaveUp(ctx, e.Err)
	case leasehold.EventLost:
		if lost := (*leasehold.LostError)(nil); errors.As(e.Err, &lost) && lost.Reason == leasehold.LostExpired && c.plan.refusalsAlone {
			c.expired(lost)
		}
	}
}

// gaveUp checks a wait that ended by a refusal and not by its context.
func (c *process) gaveUp(ctx context.Context, err error) {
	refusal, denied := isRefusal(err)
	w, _ := ctx.Value(waitKey{}).(*wait)
	if !refusal || w == nil || ctx.Err() != nil || errors.Is(err, leasehold.ErrClosed) || strings.Contains(err.Error(), "gave up after") {
		return // not checked; this includes the error of NoWait, which gives up after ten seconds
	}
	op := (*leasehold.OpError)(nil)
	c.checker.mu.Lock()
	defer c.checker.mu.Unlock()
	switch {
	case denied && errors.As(err, &op) && w.answeredBefore[op.Key.Partition]:
		c.note("18: a wait of process %d was denied after DynamoDB has answered for %v: %v", c.id, op.Key, err)
	case !denied && w.acceptedBefore:
		c.note("18: a wait of process %d, which was accepted before, has ended by refused credentials: %v", c.id, err)
	}
}

// expired checks a lock that was lost because no renewal succeeded. Since there are no
// other faults, the reason can only be a refusal that lasted too long.
func (c *process) expired(lost *leasehold.LostError) {
	const retried = 1500 * time.Millisecond // longest pause between renewals, plus a round trip
	for ago := time.Duration(0); ago < retried; ago += briefRefusal / 4 {
		if what, _ := c.refusal(time.Now().Add(-ago)); what != none {
			return
		}
	}
	c.violated("18: process %d has lost %v, which it could have renewed: %v", c.id, lost.Key, lost)
}

// refused returns how AWS refuses a request of the process now. It returns none if AWS does
// not refuse the request.
func (c *process) refused() fault {
	what, name := c.refusal(time.Now())
	if what == none || !c.happens(what, name) {
		return none
	}
	return what
}

// The only fault is that AWS refuses requests for a while. Holders lose the locks that they
// could not renew, and no others.
func TestSimulationOfRefusedRequests(t *testing.T) {
	forSeeds(t, worldSeeds, simulateRefusals)
}

func simulateRefusals(t *testing.T, seed uint64, watched world) {
	w := world{refusalsAlone: true, shared: seed%3 == 0, work: (*process).holdsThroughRefusals}.watchedAs(watched)
	w.kinds = []fault{expiredAWhile, unknownAWhile, deniedAWhile}
	simulate(t, seed, w)
}

// holdsThroughRefusals holds a lock for a while.
func (c *process) holdsThroughRefusals(r *worker) {
	ctx, cancel := context.WithTimeout(r.ctx(), 5*time.Second+upTo(r, 10*time.Second))
	defer cancel()
	asked, over := c.operation(ctx, "acquire")
	lock, err := c.client.Acquire(asked, keyNames[r.IntN(len(keyNames))])
	over()
	if err != nil {
		return
	}
	c.believes(c, lock)
	c.rest(r, 6000)
	c.commit(r, lock, 3*time.Second)
	c.releases(r, lock)
}

func TestSimulationCatchesWaitEndedByRefusedRequest(t *testing.T) {
	areFound(t, 100,
		broken{"a wait that ends by refused credentials", []string{"invariant 18: a wait"}, misread(replacing("#ExpiredTokenException", "#ValidationException"), simulate)},
		broken{"a wait that ends by a denial", []string{"invariant 18: a wait"}, misread(replacing("#AccessDeniedException", "#ValidationException"), simulate)},
	)
}
