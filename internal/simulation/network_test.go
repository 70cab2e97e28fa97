package simulation

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/leasehold-go/leasehold/internal/lab"
)

// troubles are faults that happen only in the networks of some worlds. The networks of all
// worlds lose, delay, repeat and refuse requests.
type troubles struct {
	refusals bool          // AWS answers some requests with AccessDeniedException, although it has applied some of these requests
	noOld    bool          // the reply to a failed condition does not contain the item
	copies   time.Duration // longest delay with which a second copy of a request arrives; zero for no second copies
	keys     bool          // writes of single keys are throttled for several seconds at a time
	table    bool          // all requests are throttled for several seconds at a time
	pauses   bool          // some processes are paused at the moment at which they send a request

	// If set, AWS refuses some requests because their credentials have expired. For several
	// seconds at a time, a process has no credentials at all.
	credentials bool
}

// fate contains the random numbers drawn for one request. These numbers determine which fault
// the request meets, and how long the request and the reply are delayed.
type fate struct {
	percent     int
	odd         int           // random number below 1000 that chooses among the faults that only some networks have
	late        time.Duration // additional delay if the fault is that the request or its reply is late
	there, back time.Duration // delays of the request and of its reply
	rng         *rand.Rand    // source of the further random numbers for this request
	to          string        // description of the request; the id of its fault is computed from it
	heard       time.Duration // time from the cancellation of the request until hang returns
}

func (c *process) fateOf(ctx context.Context, sent *request) fate {
	asks := sent.asks()
	c.asksFor(ctx, asks)
	if who, ok := ctx.Value(workerKey{}).(string); ok {
		asks += " for " + who
	}
	c.checker.mu.Lock()
	n := c.asked[asks]
	c.asked[asks]++
	c.history.enter("process %d sends %s", c.id, asks)
	c.checker.mu.Unlock()
	rng := drawn(c.seed, "fate", c.id, asks, n)
	return fate{
		rng.IntN(100), rng.IntN(1000), upTo(rng, 5*time.Second), upTo(rng, 2*time.Millisecond), upTo(rng, 2*time.Millisecond), rng,
		fmt.Sprintf("of process %d, %s, number %d", c.id, asks, n+1), upTo(drawn(c.seed, "heard", c.id, asks, n), time.Microsecond),
	}
}

// Do sends a request of the process's client over the simulated network.
func (c *process) Do(r *http.Request) (*http.Response, error) {
	c.yield()
	defer c.yield()
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	if c.plan.tamper != nil {
		body = c.plan.tamper(r, body)
	}
	_, op, _ := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
	sent := newRequest(c, lab.Call{Op: op, Body: body})
	f := c.fateOf(r.Context(), sent)
	c.sent(sent)
	deliver := func() (*http.Response, error) {
		again := r.Clone(context.WithoutCancel(r.Context()))
		again.Body, again.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
		return c.applied(sent, func() (*http.Response, error) { return c.w.Engine.RoundTrip(again) })
	}
	res, err := c.meets(r.Context(), sent, f, deliver)
	if err == nil {
		if c.plan.net.noOld {
			res = withoutOld(res)
		}
		if c.plan.misread != nil {
			res = changed(res, c.plan.misread)
		}
		c.received(sent, res)
		c.heardOf(r.Context(), sent, res)
	}
	return res, err
}

// changed passes the body of a reply to the function change, and replaces the body with the result.
func changed(res *http.Response, change func([]byte) []byte) *http.Response {
	body := change(bodyOf(res))
	res.Body, res.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	res.Header.Del("X-Amz-Crc32")
	return res
}

// faultOf returns the fault that is chosen for the request. The caller must then call happens,
// because the plan of the run may exclude this fault.
func (c *process) faultOf(sent *request, f fate) fault {
	c.mu.Lock()
	defer c.mu.Unlock()
	mended := !c.goesOn()
	switch net, p := c.plan.net, f.percent; {
	case c.dead:
		return inCrash
	case time.Now().Before(c.asleepTil):
		return inSuspend
	case !mended && time.Now().Before(c.cutTil):
		return inPartition
	case !mended && time.Now().Before(c.outTil):
		return inOutage
	case net.keys && !mended && c.throttled(sent):
		return hotKey
	case net.table && !mended && c.inTrouble("table", 5):
		return hotTable
	case net.credentials && !mended && f.odd >= 800 && f.odd < 830:
		return expired
	case net.refusals && !mended && f.odd < 50:
		return denied
	case net.refusals && !mended && f.odd < 75 && sent.manner != commits: // DynamoDB never answers an applied commit with a denial of access
		return deniedAfter
	case mended || p < 60:
		return none
	case p < 65:
		return requestLost
	case p < 68:
		return resetBefore
	case p < 74:
		return replyLost
	case p < 78:
		return resetAfter
	case p < 84:
		return requestLate
	case p < 88:
		return replyLate
	case p < 92:
		return repeated
	case p < 94:
		return throttledOnce
	case p < 96:
		return conflict
	case p < 98:
		return serverError
	default:
		return unavailable
	}
}

// meets sends a request over the network, where the request meets its fault.
func (c *process) meets(ctx context.Context, sent *request, f fate, deliver func() (*http.Response, error)) (*http.Response, error) {
	if sent.manner == commits {
		f.late *= 3 // a late commit is delayed even longer, so that it sometimes arrives after its grant has ended
	}
	what, more := c.faultOf(sent, f), none
	if !slices.Contains([]fault{inCrash, inSuspend, inPartition, inOutage}, what) && c.goesOn() {
		what = cmp.Or(c.refused(), what)
	}
	to := f.to
	if what == hotTable {
		to = fmt.Sprint("window ", int(c.window()))
	}
	// For these faults, other code has already called happens.
	decided := []fault{none, inCrash, inPartition, inSuspend, inOutage, expiredAWhile, unknownAWhile, deniedAWhile}
	if !slices.Contains(decided, what) && !c.happens(what, to) {
		what = none
	}
	net := c.plan.net
	// The network makes no second copy of a refused commit: the client reports the refusal to its
	// caller at once, and need not notice that such a copy is applied afterwards.
	refused := sent.manner == commits && (refusalCodes[what] != "" || net.table && slices.Contains([]fault{hotTable, expired, denied, throttledOnce, conflict}, what))
	if net.copies > 0 && f.odd >= 900 && !refused {
		if late := upTo(f.rng, net.copies); c.happens(repeatedMuch, f.to) {
			more = repeatedMuch
			c.copied(late, deliver)
		}
	}
	if c.plan.net.pauses && c.goesOn() && f.odd >= 830 && f.odd < 860 && c.happens(pause, f.to) {
		c.standStill(upTo(f.rng, 2*usualLease))
	}
	if what == none && c.isPaused() > 0 {
		what = inPause
	}
	c.counts(ctx, sent, cmp.Or(what, more))

	pass := func(there, back time.Duration) (*http.Response, error) { return c.pass(ctx, f, there, back, deliver) }
	switch what {
	case inCrash, inPartition, inSuspend, requestLost:
		return f.hang(ctx)
	case inOutage, serverError:
		return c.refuse(ctx, f, lab.Refusal(500, "InternalServerError"))
	case hotKey, throttledOnce, hotTable:
		return c.refuse(ctx, f, lab.Refusal(400, "ThrottlingException"))
	case denied:
		return c.refuse(ctx, f, lab.Refusal(400, "AccessDeniedException"))
	case expiredAWhile, unknownAWhile, deniedAWhile:
		return c.refuse(ctx, f, lab.Refusal(400, refusalCodes[what]))
	case expired:
		return c.refuse(ctx, f, lab.Refusal(400, "ExpiredTokenException"))
	case inPause: // the request is sent when the process continues
		return pass(c.isPaused()+f.there, f.back)
	case deniedAfter:
		_, _ = pass(f.there, f.back)
		return lab.Refusal(400, "AccessDeniedException"), nil
	case resetBefore:
		return c.refuse(ctx, f, nil)
	case replyLost:
		_, _ = pass(f.there, f.back)
		return f.hang(ctx)
	case resetAfter:
		_, _ = pass(f.there, f.back)
		return nil, lab.ErrReset
	case requestLate: // the request may arrive after its sender has cancelled it
		return pass(f.late, f.back)
	case replyLate:
		return pass(f.there, f.late)
	case repeated:
		c.copied(f.late, deliver)
		return pass(f.there, f.back)
	case conflict:
		return c.refuse(ctx, f, lab.Conflict(sent.Call))
	case unavailable:
		_, _ = pass(f.there, f.back)
		return lab.Refusal(503, "ServiceUnavailable"), nil
	default:
		return pass(f.there, f.back)
	}
}

// throttled reports whether writes of the request's key are throttled now.
func (c *process) throttled(sent *request) bool {
	keys := sent.keys
	if sent.manner == reads || len(keys) == 0 || !slices.Contains(keyNames, keys[0]) {
		return false
	}
	const window = 5 * time.Second
	at := time.Since(c.began)
	return drawn(c.seed, "throttled", keys[0], at/window).IntN(3) == 0 && at%window > window/10
}

// window returns the number of the current window of three seconds. During a window, the result of
// inTrouble does not change.
func (c *process) window() time.Duration {
	const lasts = 3 * time.Second
	return time.Since(c.began) / lasts
}

// inTrouble reports whether a fault affects the process or table with the given name during
// the whole current window. On average this happens in one of n windows.
func (c *process) inTrouble(what string, n int) bool {
	return drawn(c.seed, "trouble of", what, c.window()).IntN(n) == 0
}

// wallet is a process in its role as the credential provider of its client.
type wallet process

// Retrieve returns credentials. For several seconds at a time it instead returns an error.
func (w *wallet) Retrieve(ctx context.Context) (aws.Credentials, error) {
	c := (*process)(w)
	who := fmt.Sprint("process ", c.id)
	if c.goesOn() && c.inTrouble(who, 8) && c.happens(noCredentials, fmt.Sprint("of ", who, ", window ", int(c.window()))) {
		c.counts(ctx, &request{by: c, at: time.Now(), manner: other}, noCredentials)
		return aws.Credentials{}, errors.New("no credentials can be had")
	}
	return aws.Credentials{AccessKeyID: "simulated", SecretAccessKey: "simulated"}, nil
}

// copied delivers a second copy of a request after about the given delay.
func (c *process) copied(late time.Duration, deliver func() (*http.Response, error)) {
	go func() {
		c.after(late, drawn(c.seed, "copy", late))
		_, _ = deliver()
	}()
}

// withoutOld removes from an error reply the items that DynamoDB returns with a failed condition.
// Some DynamoDB-compatible engines do not return them.
func withoutOld(res *http.Response) *http.Response {
	if res.StatusCode == http.StatusOK {
		return res
	}
	return changed(res, func(body []byte) []byte {
		return edited(body, func(out map[string]any) {
			delete(out, "Item")
			reasons, _ := out["CancellationReasons"].([]any)
			for _, reason := range reasons {
				delete(reason.(map[string]any), "Item")
			}
		})
	})
}

// hang simulates a request that gets no reply. It returns an error after the sender has cancelled
// the request, and after a short further delay. The delay differs between requests, so that the
// scheduler does not decide which of two senders continues first.
func (f fate) hang(ctx context.Context) (*http.Response, error) {
	<-ctx.Done()
	time.Sleep(f.heard)
	return nil, ctx.Err()
}

// pass delivers a request after a delay, and returns the reply after another delay. The delays are
// the parameters "there" and "back". If the sender's context is done before the reply arrives, pass
// returns an error.
func (c *process) pass(ctx context.Context, f fate, there, back time.Duration, deliver func() (*http.Response, error)) (*http.Response, error) {
	type reply struct {
		res *http.Response
		err error
	}
	replied := make(chan reply, 1)
	go func() {
		c.after(there, f.rng)
		res, err := deliver()
		c.after(back, f.rng)
		replied <- reply{res, err}
	}()
	var r reply
	select {
	case r = <-replied:
	case <-ctx.Done():
		r.res, r.err = f.hang(ctx)
	}
	for d := c.isPaused(); d > 0; d = c.isPaused() { // a paused process receives the reply only after the pause
		time.Sleep(d + back)
	}
	return r.res, r.err
}

// refuse answers a request without delivering it to the table. The answer is the reply res, or a
// reset of the connection if res is nil.
func (c *process) refuse(ctx context.Context, f fate, res *http.Response) (*http.Response, error) {
	return c.pass(ctx, f, f.there, f.back, func() (*http.Response, error) {
		if res == nil {
			return nil, lab.ErrReset
		}
		return res, nil
	})
}
