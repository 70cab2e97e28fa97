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

// In all worlds, AWS sometimes refuses the requests of one process or of all: credentials have
// expired or are unknown, or access is denied. For every wait, the checker checks promise 11 of
// docs/guarantees.md: a temporary refusal ends no wait.

const (
	// refusalWindow is the length of a window of time. In each window, at most one refusal
	// begins for each process, and at most one for all processes together.
	refusalWindow = 5 * time.Second
	briefRefusal  = time.Second / 3
	longRefusal   = 5 * time.Second // a long refusal lasts longer than the usual lease
)

// refusal returns the kind and the name of the refusal that the process meets at the given
// instant. It returns none if AWS does not refuse the process's requests at that instant.
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

// refusalCodes contains the error code with which AWS answers in each kind of refusal.
var refusalCodes = map[fault]string{
	expiredAWhile: "ExpiredTokenException",
	unknownAWhile: "UnrecognizedClientException",
	deniedAWhile:  "AccessDeniedException",
}

// isRefused reports whether the body of a reply contains one of refusalCodes.
func isRefused(body []byte) bool {
	return slices.ContainsFunc(slices.Collect(maps.Values(refusalCodes)), func(code string) bool {
		return bytes.Contains(body, []byte(`"`+code+`"`))
	})
}

// isRefusal reports whether err is a refusal by AWS, and whether this refusal is a denial of
// access. It reads the code in the error's message, because broken variants change the error's own
// code in the reply.
func isRefusal(err error) (refusal, denied bool) {
	var api smithy.APIError
	if !errors.As(err, &api) {
		return false, false
	}
	denied = api.ErrorMessage() == refusalCodes[deniedAWhile]
	return denied || api.ErrorMessage() == refusalCodes[expiredAWhile] || api.ErrorMessage() == refusalCodes[unknownAWhile], denied
}

// wait contains what the checker knows of a call that may wait for a lock. A denial of access
// may end the call only if DynamoDB has not yet answered a request of the call for the key.
type wait struct { // guarded by checker.mu
	answered map[string]bool // keys for which DynamoDB has answered a request of the call

	// The next two fields hold what was known when AWS last refused a request of the call. Later
	// answers must not count: before the call returns, the client may send one more request, to
	// undo its attempt.
	answeredBefore map[string]bool
	acceptedBefore bool // DynamoDB had accepted the credentials of the process before the refusal
}

type waitKey struct{}

// mayWait returns a context for a call that may wait for a lock. The context contains a new wait.
func mayWait(ctx context.Context) context.Context {
	return context.WithValue(ctx, waitKey{}, &wait{answered: map[string]bool{}})
}

// heardOf records what a reply shows about the process's credentials and about the wait to which
// the request belongs.
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

// onEvent receives the events of the process's client. It checks each wait that ended without a
// lock. In worlds whose only faults are refusals, it also checks each lock that expired.
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

// gaveUp reports a violation if a refusal ended a wait wrongly. Refused credentials may end a wait
// only if DynamoDB has not accepted the client's credentials before. Denied access may end a wait
// only if DynamoDB has not yet answered the call for the key.
func (c *process) gaveUp(ctx context.Context, err error) {
	refusal, denied := isRefusal(err)
	w, _ := ctx.Value(waitKey{}).(*wait)
	if !refusal || w == nil || ctx.Err() != nil || errors.Is(err, leasehold.ErrClosed) || strings.Contains(err.Error(), "gave up after") {
		return // for example, a call with NoWait ends after ten seconds
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

// expired reports a violation if a lock expired although AWS refused no request of the process in
// the last 1.5 seconds. It is called only in worlds whose only faults are refusals.
func (c *process) expired(lost *leasehold.LostError) {
	const retried = 1500 * time.Millisecond // longest pause between two attempts of a renewal, plus a round trip
	for ago := time.Duration(0); ago < retried; ago += briefRefusal / 4 {
		if what, _ := c.refusal(time.Now().Add(-ago)); what != none {
			return
		}
	}
	c.violated("18: process %d has lost %v, which it could have renewed: %v", c.id, lost.Key, lost)
}

// refused returns the kind of refusal that a request of the process meets now. It returns
// none if AWS does not refuse the request.
func (c *process) refused() fault {
	what, name := c.refusal(time.Now())
	if what == none || !c.happens(what, name) {
		return none
	}
	return what
}

// The only faults in this world are refusals by AWS, each for a while. Holders may lose
// only locks that they could not renew because of a refusal.
func TestSimulationOfRefusedRequestsFindsNoViolation(t *testing.T) {
	forSeeds(t, worldSeeds, simulateRefusals)
}

func simulateRefusals(t *testing.T, seed uint64, watched world) {
	w := world{refusalsAlone: true, shared: seed%3 == 0, work: (*process).holdsThroughRefusals}.watchedAs(watched)
	w.kinds = []fault{expiredAWhile, unknownAWhile, deniedAWhile}
	simulate(t, seed, w)
}

// holdsThroughRefusals acquires a lock, holds it for a while and releases it.
func (c *process) holdsThroughRefusals(r *worker) {
	ctx, cancel := context.WithTimeout(r.ctx(), 5*time.Second+upTo(r, 10*time.Second))
	defer cancel()
	lock := c.acquires(ctx, "acquire", keyNames[r.IntN(len(keyNames))])
	if lock == nil {
		return
	}
	c.rest(r, 6000)
	c.commit(r, lock, 3*time.Second)
	c.releases(r, lock)
}

func TestSimulationCatchesWaiterGivingUpAfterRefusedRequest(t *testing.T) {
	areFound(t, 100,
		broken{"a wait that ends by refused credentials", []string{"invariant 18: a wait"}, misread(replacing("#ExpiredTokenException", "#ValidationException"), simulate)},
		broken{"a wait that ends by a denial", []string{"invariant 18: a wait"}, misread(replacing("#AccessDeniedException", "#ValidationException"), simulate)},
	)
}
