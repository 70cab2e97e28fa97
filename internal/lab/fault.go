package lab

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"sync"
	"time"
)

// Fault decides how the network treats one request. It may send the request on once, never
// or twice, and return any answer.
type Fault func(*Request) (*http.Response, error)

// Request is a request in flight.
type Request struct {
	Call
	ctx  context.Context
	send func() (*http.Response, error)
}

// Context returns the context of the sender of the request.
func (r *Request) Context() context.Context { return r.ctx }

// Send passes the request to the engine and returns the answer, even if its sender has
// left.
func (r *Request) Send() (*http.Response, error) { return r.send() }

// WithContext returns a copy of the request with ctx as the context of its sender.
func (r *Request) WithContext(ctx context.Context) *Request {
	return &Request{Call: r.Call, ctx: ctx, send: r.send}
}

// ErrReset is the error of a broken connection.
var ErrReset = errors.New("connection reset by peer")

// Cut never answers, like a partition or a process that died.
func Cut(r *Request) (*http.Response, error) {
	<-r.ctx.Done()
	return nil, r.ctx.Err()
}

// LoseReply applies the write and resets the connection before its reply.
func LoseReply(r *Request) (*http.Response, error) {
	_, _ = r.Send()
	return nil, ErrReset
}

// Unheard applies the write and never answers.
func Unheard(r *Request) (*http.Response, error) {
	_, _ = r.Send()
	return Cut(r)
}

// Drop breaks the connection before the request has arrived.
func Drop(*Request) (*http.Response, error) { return nil, ErrReset }

// On returns a fault that applies the given fault to every request that satisfies the
// predicate fits. It passes all other requests on.
func On(fits func(Call) bool, fault Fault) Fault {
	return func(r *Request) (*http.Response, error) {
		if fits(r.Call) {
			return fault(r)
		}
		return r.Send()
	}
}

// Once returns a fault that applies the given fault to the first request that satisfies the
// predicate fits. It passes all other requests on.
func Once(fits func(Call) bool, fault Fault) Fault {
	var mu sync.Mutex
	done := false
	return func(r *Request) (*http.Response, error) {
		mu.Lock()
		hit := !done && fits(r.Call)
		done = done || hit
		mu.Unlock()
		if hit {
			return fault(r)
		}
		return r.Send()
	}
}

// Script returns a fault that applies the nth of faults to the nth commit, and passes other
// requests on.
func Script(faults ...Fault) Fault {
	var mu sync.Mutex
	n := 0
	return func(r *Request) (*http.Response, error) {
		mu.Lock()
		i := -1
		if r.Commits() {
			i = n
			n++
		}
		mu.Unlock()
		if i < 0 || i >= len(faults) || faults[i] == nil {
			return r.Send()
		}
		return faults[i](r)
	}
}

// Slow returns a fault that delivers the request at once, and its answer after d.
func Slow(d time.Duration) Fault { return Late(d, (*Request).Send) }

// Far returns a network with the given round trip.
func Far(roundTrip time.Duration) Fault {
	return func(r *Request) (*http.Response, error) {
		time.Sleep(roundTrip / 2)
		return Late(roundTrip/2, (*Request).Send)(r)
	}
}

// Late returns a fault that applies the given fault at once, and returns the answer after
// d.
func Late(d time.Duration, fault Fault) Fault {
	return func(r *Request) (*http.Response, error) {
		res, err := fault(r)
		select {
		case <-time.After(d):
			return res, err
		case <-r.ctx.Done():
			return nil, r.ctx.Err()
		}
	}
}

// ArriveAfter returns a fault that delivers the request after d, while its sender waits.
func ArriveAfter(d time.Duration) Fault {
	return func(r *Request) (*http.Response, error) {
		time.Sleep(d)
		return r.Send()
	}
}

// Delayed returns a fault that breaks the connection at once. It delivers the request after
// d, when its sender no longer waits for an answer.
func Delayed(d time.Duration) Fault {
	return func(r *Request) (*http.Response, error) {
		go func() {
			time.Sleep(d)
			_, _ = r.Send()
		}()
		return nil, ErrReset
	}
}

// Respond returns a fault that answers, in DynamoDB's place, every request that satisfies
// the predicate fits.
func Respond(fits func(Call) bool, res func() *http.Response) Fault {
	return On(fits, Answer(res))
}

// Answer returns a fault that answers every request in DynamoDB's place.
func Answer(res func() *http.Response) Fault {
	return func(*Request) (*http.Response, error) { return res(), nil }
}

// Refused returns a fault that refuses every request with an error code of DynamoDB.
func Refused(code string) Fault {
	return Answer(func() *http.Response { return Refusal(400, code) })
}

// Out answers every request as DynamoDB does in an outage.
func Out(*Request) (*http.Response, error) { return Refusal(503, "ServiceUnavailable"), nil }

// Throttled refuses every request as throttled.
func Throttled(r *Request) (*http.Response, error) {
	return Refused("ProvisionedThroughputExceededException")(r)
}

// ShowNothing removes the old item from a refusal, like an engine without
// ReturnValuesOnConditionCheckFailure.
func ShowNothing(r *Request) (*http.Response, error) {
	res, err := r.Send()
	if err != nil || res.StatusCode != http.StatusBadRequest {
		return res, err
	}
	body, err := io.ReadAll(res.Body)
	if err != nil || !bytes.Contains(body, []byte("ConditionalCheckFailedException")) {
		res.Body = io.NopCloser(bytes.NewReader(body))
		return res, err
	}
	return Refusal(400, "ConditionalCheckFailedException"), nil
}
