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

// Fault decides how the network treats one request. It may deliver the request once, twice or
// not at all, and may return any response.
type Fault func(*Request) (*http.Response, error)

// Request is a request that the client has sent, and that a Fault may deliver.
type Request struct {
	Call
	ctx  context.Context
	send func() (*http.Response, error)
}

// Context returns the context of the request, which the client has set.
func (r *Request) Context() context.Context { return r.ctx }

// Send delivers the request to the engine and returns the response. It does so even if the
// request's context has ended.
func (r *Request) Send() (*http.Response, error) { return r.send() }

// WithContext returns a copy of the request with ctx as its context.
func (r *Request) WithContext(ctx context.Context) *Request {
	return &Request{Call: r.Call, ctx: ctx, send: r.send}
}

// ErrReset is the error of a request whose connection was reset.
var ErrReset = errors.New("connection reset by peer")

// Cut is a Fault that loses the request, as in a network partition. The client waits until the
// request's context ends.
func Cut(r *Request) (*http.Response, error) {
	<-r.ctx.Done()
	return nil, r.ctx.Err()
}

// LoseReply is a Fault that resets the connection after the request is applied, but before the
// reply arrives.
func LoseReply(r *Request) (*http.Response, error) {
	_, _ = r.Send()
	return nil, ErrReset
}

// Unheard is a Fault that applies the request but loses the reply. The client waits until the
// request's context ends, and then gets an error.
func Unheard(r *Request) (*http.Response, error) {
	_, _ = r.Send()
	return Cut(r)
}

// Drop is a Fault that resets the connection before the request arrives.
func Drop(*Request) (*http.Response, error) { return nil, ErrReset }

// On returns a fault that applies the given fault to every request for which the function "fits"
// returns true. It delivers all other requests.
func On(fits func(Call) bool, fault Fault) Fault {
	return func(r *Request) (*http.Response, error) {
		if fits(r.Call) {
			return fault(r)
		}
		return r.Send()
	}
}

// Once returns a fault that applies the given fault to the first request for which the function
// "fits" returns true. It delivers all other requests.
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

// Script returns a fault that applies the first given fault to the first commit, the second fault
// to the second commit, and so on. It delivers a commit whose fault is nil, each commit after the
// last fault, and all requests that are not commits.
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

// Slow returns a fault that delivers the request immediately, and the response after d.
func Slow(d time.Duration) Fault { return Late(d, (*Request).Send) }

// Far returns a fault that delays the request by half the given round trip, and the response by
// the other half.
func Far(roundTrip time.Duration) Fault {
	return func(r *Request) (*http.Response, error) {
		time.Sleep(roundTrip / 2)
		return Late(roundTrip/2, (*Request).Send)(r)
	}
}

// Late returns a fault that applies the given fault immediately, but returns the result only after
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

// ArriveAfter returns a fault that delivers the request after d. The client waits for the response.
func ArriveAfter(d time.Duration) Fault {
	return func(r *Request) (*http.Response, error) {
		time.Sleep(d)
		return r.Send()
	}
}

// Delayed returns a fault that resets the connection immediately, and delivers the request only
// after d. By then the client no longer waits for the response.
func Delayed(d time.Duration) Fault {
	return func(r *Request) (*http.Response, error) {
		go func() {
			time.Sleep(d)
			_, _ = r.Send()
		}()
		return nil, ErrReset
	}
}

// Respond returns a fault that does not deliver a request for which the function "fits" returns
// true, but answers it with the result of res. The fault delivers all other requests.
func Respond(fits func(Call) bool, res func() *http.Response) Fault {
	return On(fits, Answer(res))
}

// Answer returns a fault that answers every request with the result of res, and delivers no
// request.
func Answer(res func() *http.Response) Fault {
	return func(*Request) (*http.Response, error) { return res(), nil }
}

// Refused returns a fault that answers every request with the given DynamoDB error code, and
// delivers no request.
func Refused(code string) Fault {
	return Answer(func() *http.Response { return Refusal(400, code) })
}

// Out is a Fault that returns the error of a DynamoDB outage for every request.
func Out(*Request) (*http.Response, error) { return Refusal(503, "ServiceUnavailable"), nil }

// Throttled is a Fault that returns DynamoDB's throttling error for every request.
func Throttled(r *Request) (*http.Response, error) {
	return Refused("ProvisionedThroughputExceededException")(r)
}

// ShowNothing is a Fault that removes the old item from the error of a failed condition, as if
// the engine did not support ReturnValuesOnConditionCheckFailure.
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
