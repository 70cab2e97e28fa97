package lab

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"strings"
	"sync"

	"github.com/leasehold-go/leasehold/localdynamo"
)

// Wire is the network between one client and the engine. It records all requests. A Fault decides
// what happens to each request.
type Wire struct {
	Meter *Meter // counts the capacity that requests consume; nil to count nothing

	engine *localdynamo.Engine
	over   context.Context // cancelled when the test ends, which cancels the requests in flight

	mu    sync.Mutex
	calls []Call
	fault Fault
}

// Wire returns a new Wire to the engine. The Wire delivers all requests until SetFault is
// called.
func (w *World) Wire() *Wire { return &Wire{engine: w.Engine, over: w.over} }

// Do sends one request of the client. With this method, a Wire is an HTTP client for the SDK.
func (w *Wire) Do(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	_, op, _ := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
	c := Call{Op: op, Body: body}
	w.mu.Lock()
	w.calls = append(w.calls, c)
	fault := w.fault
	w.mu.Unlock()
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	defer context.AfterFunc(w.over, cancel)()
	sent := &Request{Call: c, ctx: ctx, send: func() (*http.Response, error) {
		again := r.Clone(context.WithoutCancel(r.Context()))
		again.Body = io.NopCloser(bytes.NewReader(w.Meter.ask(body)))
		again.ContentLength = -1
		res, err := w.engine.RoundTrip(again)
		w.Meter.count(op, res)
		return res, err
	}}
	if fault == nil {
		return sent.Send()
	}
	return fault(sent)
}

// SetFault sets the Fault that the Wire applies to requests; nil removes it.
func (w *Wire) SetFault(f Fault) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.fault = f
}

// Sent returns the requests that were sent since the last call of Sent.
func (w *Wire) Sent() []Call {
	w.mu.Lock()
	defer w.mu.Unlock()
	calls := w.calls
	w.calls = nil
	return calls
}
