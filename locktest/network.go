package locktest

import (
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/leasehold-go/leasehold"
)

// process is a client that has its own network and its own clock.
type process struct {
	env    *Env
	client *leasehold.Client
	// Whether the process belongs to Hold or Steal, and not to the code under test.
	others bool
	ahead  atomic.Int64 // nanoseconds by which the clock of the process is ahead of time.Now

	// env.mu guards the fields below.
	down chan struct{} // closed by Reconnect; nil while the process is connected
	dead bool          // whether the process was disconnected when the test ended
}

// Disconnect cuts clients off from the network. Without arguments it cuts off all clients,
// including those of Hold and Steal and those that are created later. A client that is never
// reconnected is like a process that has died.
//
// While a client is cut off, all its requests are lost: they do not reach DynamoDB and get no
// reply. The client waits for each reply until the request's deadline, at most three seconds,
// and then retries. The client loses a lock when the lock's TrustedUntil has passed. Its
// TryAcquire and Release return errors after their own time limits. In a bubble these waits take
// no real time. Outside a bubble, set a shorter Config.Lease and ReleaseGrace to shorten them.
// Disconnect does not affect the client that DB returns.
func (e *Env) Disconnect(clients ...*leasehold.Client) {
	e.t.Helper()
	for _, p := range e.processesOf("disconnect", clients, true) {
		e.disconnect(p)
	}
}

// Reconnect connects the given clients to the network again, or all clients if none are given.
// Requests in flight are lost, and the clients retry them immediately.
func (e *Env) Reconnect(clients ...*leasehold.Client) {
	e.t.Helper()
	for _, p := range e.processesOf("reconnect", clients, false) {
		e.mu.Lock()
		if p.down != nil {
			close(p.down)
			p.down = nil
		}
		e.mu.Unlock()
	}
}

// processesOf returns the processes of the given clients. Without clients it returns all processes,
// and stores "cut" in the Env: whether later processes start disconnected. The parameter "what" is
// the name of the calling method, for error messages.
func (e *Env) processesOf(what string, clients []*leasehold.Client, cut bool) []*process {
	e.t.Helper()
	e.mu.Lock()
	all := slices.Clone(e.processes)
	if len(clients) == 0 {
		e.cut = cut
	}
	e.mu.Unlock()
	if len(clients) == 0 {
		return all
	}
	var found []*process
	for _, c := range clients {
		i := slices.IndexFunc(all, func(p *process) bool { return c != nil && p.client == c })
		if i < 0 {
			e.t.Fatalf("locktest: %s: the client does not belong to this Env: use one that its method Client has returned", what)
		}
		found = append(found, all[i])
	}
	return found
}

func (e *Env) disconnect(p *process) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if p.down == nil && !e.ended {
		p.down = make(chan struct{})
	}
}

// follow disconnects a new process if a call of Disconnect has disconnected all processes.
func (e *Env) follow(p *process) {
	e.mu.Lock()
	cut := e.cut
	e.mu.Unlock()
	if cut {
		e.disconnect(p)
	}
}

// errReset is the error of a request that was in flight when Reconnect was called.
var errReset = errors.New("locktest: the connection was lost")

// Do sends a request of the process, or loses it while the process is disconnected. It
// implements the HTTP client of the SDK.
func (p *process) Do(r *http.Request) (*http.Response, error) {
	p.env.mu.Lock()
	down, dead := p.down, p.dead
	p.env.mu.Unlock()
	switch {
	case dead:
		return p.refuse(r), nil
	case down == nil:
		return p.env.engine.RoundTrip(r)
	}
	select {
	case <-down:
		return nil, errReset
	case <-r.Context().Done():
		return nil, r.Context().Err()
	}
}

// refuse returns an error response to a request of a process that was disconnected when the
// test ended. The client does not retry a request after this error, so closing the client does
// not take long.
func (p *process) refuse(r *http.Request) *http.Response {
	const body = `{"__type":"com.amazon.coral.service#AccessDeniedException","Message":"locktest: the test has ended"}`
	return &http.Response{
		Status: "400 Bad Request", StatusCode: http.StatusBadRequest, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{"Content-Type": {"application/x-amz-json-1.0"}},
		Body:   io.NopCloser(strings.NewReader(body)), ContentLength: int64(len(body)), Request: r,
	}
}
