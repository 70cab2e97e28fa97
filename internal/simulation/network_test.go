package simulation

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/leasehold-go/leasehold/internal/lab"
)

// troubles are what a network has beside losing, delaying, repeating and
// refusing requests for a moment.
type troubles struct {
	refusals bool          // some requests are not allowed, whether or not they have landed
	noOld    bool          // a failed condition does not show what it met
	copies   time.Duration // how late the latest copies of requests are
	keys     bool          // writes of single keys are throttled for seconds, and those of no other
}

// fate is what the network does with one request.
type fate struct {
	percent     int
	odd         int           // in 1000: of what only some networks do
	late        time.Duration // what is late, by how much
	there, back time.Duration
	rng         *rand.Rand // of what else happens to it
}

func (c *process) fateOf(ctx context.Context, sent lab.Call) fate {
	asks := asks(sent)
	if who, ok := ctx.Value(workerKey{}).(string); ok {
		asks += " for " + who
	}
	c.checker.mu.Lock()
	n := c.asked[asks]
	c.asked[asks]++
	c.history.enter("process %d sends %s", c.id, asks)
	c.checker.mu.Unlock()
	rng := drawn(c.seed, "fate", c.id, asks, n)
	return fate{rng.IntN(100), rng.IntN(1000), upTo(rng, 5*time.Second), upTo(rng, 2*time.Millisecond), upTo(rng, 2*time.Millisecond), rng}
}

// asks says what a request asks of which keys, without what is random in it. Of
// two at one instant the lengths tell which is which.
func asks(c lab.Call) string {
	manner := "is about"
	switch {
	case c.Reads():
		manner = "reads"
	case c.Commits():
		manner = "commits"
	case c.Releases():
		manner = "releases"
	case c.HandsOver():
		manner = "hands over"
	case c.Grants():
		manner = "grants"
	}
	return fmt.Sprintf("%s that %s %s, in %d bytes", c.Op, manner, strings.Join(c.Keys(), ", "), len(c.Body))
}

// Do is the network of the process.
func (c *process) Do(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	if c.plan.tamper != nil {
		body = c.plan.tamper(r, body)
	}
	_, op, _ := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
	sent := &request{Call: lab.Call{Op: op, Body: body}, by: c, at: time.Now()}
	f := c.fateOf(r.Context(), sent.Call)
	c.sent(sent)
	deliver := func() (*http.Response, error) {
		again := r.Clone(context.WithoutCancel(r.Context()))
		again.Body, again.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
		return c.applied(sent, func() (*http.Response, error) { return c.w.Engine.RoundTrip(again) })
	}
	res, err := c.fault(r.Context(), sent.Call, f, deliver)
	if err == nil {
		if c.plan.net.noOld {
			res = withoutOld(res)
		}
		c.received(sent, res)
	}
	return res, err
}

// fault is what the network does with one request.
func (c *process) fault(ctx context.Context, sent lab.Call, f fate, deliver func() (*http.Response, error)) (*http.Response, error) {
	c.mu.Lock()
	dead, cutTil, asleepTil, outTil := c.dead, c.cutTil, c.asleepTil, c.outTil
	c.mu.Unlock()
	if sent.Commits() {
		f.late *= 3 // so that it outlives its grant now and then
	}
	mended := false
	select {
	case <-c.quit:
		mended = true
	default:
	}
	pass := func(there, back time.Duration) (*http.Response, error) { return c.pass(ctx, f, there, back, deliver) }
	if net := c.plan.net; net.copies > 0 && f.odd >= 900 {
		c.copied(upTo(f.rng, net.copies), deliver)
	}
	switch p := f.percent; {
	case dead, time.Now().Before(asleepTil), !mended && time.Now().Before(cutTil):
		return hang(ctx)
	case !mended && time.Now().Before(outTil):
		return c.refuse(ctx, f, lab.Refusal(500, "InternalServerError"))
	case c.plan.net.keys && !mended && c.throttled(sent):
		return c.refuse(ctx, f, lab.Refusal(400, "ThrottlingException"))
	case c.plan.net.refusals && !mended && f.odd < 50:
		return c.refuse(ctx, f, lab.Refusal(400, "AccessDeniedException"))
	case c.plan.net.refusals && !mended && f.odd < 75 && !sent.Commits(): // a copy before this one was not
		_, _ = pass(f.there, f.back)
		return lab.Refusal(400, "AccessDeniedException"), nil
	case mended || p < 60:
		return pass(f.there, f.back)
	case p < 65: // the request is lost
		return hang(ctx)
	case p < 68:
		return nil, lab.ErrReset
	case p < 74: // the reply is lost
		_, _ = pass(f.there, f.back)
		return hang(ctx)
	case p < 78:
		_, _ = pass(f.there, f.back)
		return nil, lab.ErrReset
	case p < 84: // the request is late, perhaps too late for its caller
		return pass(f.late, f.back)
	case p < 88: // the reply is late
		return pass(f.there, f.late)
	case p < 92: // the network repeats it
		c.copied(f.late, deliver)
		return pass(f.there, f.back)
	case p < 94:
		return c.refuse(ctx, f, lab.Refusal(400, "ThrottlingException"))
	case p < 96:
		return c.refuse(ctx, f, lab.Conflict(sent))
	case p < 98: // a server error, before and after the write
		return c.refuse(ctx, f, lab.Refusal(500, "InternalServerError"))
	default:
		_, _ = pass(f.there, f.back)
		return lab.Refusal(503, "ServiceUnavailable"), nil
	}
}

// throttled reports whether the key of a write is too hot just now.
func (c *process) throttled(sent lab.Call) bool {
	keys := sent.Keys()
	if sent.Reads() || len(keys) == 0 || !slices.Contains(keyNames, keys[0]) {
		return false
	}
	const window = 5 * time.Second
	at := time.Since(c.began)
	return drawn(c.seed, "throttled", keys[0], at/window).IntN(3) == 0 && at%window > window/10
}

// copied delivers a request once more.
func (c *process) copied(late time.Duration, deliver func() (*http.Response, error)) {
	go func() {
		c.after(late, drawn(c.seed, "copy", late))
		_, _ = deliver()
	}()
}

// withoutOld takes from a reply the items that conditions have met.
func withoutOld(res *http.Response) *http.Response {
	if res.StatusCode == http.StatusOK {
		return res
	}
	body, _ := io.ReadAll(res.Body)
	var out map[string]any
	if json.Unmarshal(body, &out) == nil {
		delete(out, "Item")
		reasons, _ := out["CancellationReasons"].([]any)
		for _, reason := range reasons {
			delete(reason.(map[string]any), "Item")
		}
		body, _ = json.Marshal(out)
	}
	res.Body, res.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	return res
}

// hang never answers.
func hang(ctx context.Context) (*http.Response, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

// pass delivers a request, and its reply if that is still waited for.
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
	select {
	case r := <-replied:
		return r.res, r.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// refuse answers in the table's place.
func (c *process) refuse(ctx context.Context, f fate, res *http.Response) (*http.Response, error) {
	return c.pass(ctx, f, f.there, f.back, func() (*http.Response, error) { return res, nil })
}
