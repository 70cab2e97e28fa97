package locktest

import (
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"

	"github.com/leasehold-go/leasehold"
)

// process is a client and its network.
type process struct {
	env    *Env
	client *leasehold.Client
	others bool // not of the code under test

	// Guarded by env.mu.
	down chan struct{} // closed when requests go through again; nil: they do
	dead bool          // it was down when the test ended
}

// Disconnect makes all requests of clients fail; without clients, everyone's:
// those of Hold and Steal and of clients made later as well. A client that is
// never reconnected is a process that died.
//
// As on a network that loses everything, a request never arrives and has no
// answer: it takes until its deadline, three seconds at most, and is then
// repeated. A lock is lost when its trust ends, and TryAcquire and Release give
// up as they do by their own limits. In a bubble that costs nothing; outside,
// shorten Config.Lease and ReleaseGrace. DB is not disconnected.
func (e *Env) Disconnect(clients ...*leasehold.Client) {
	e.t.Helper()
	for _, p := range e.processesOf("disconnect", clients, true) {
		e.disconnect(p)
	}
}

// Reconnect undoes Disconnect: of clients, without clients of everyone.
// Requests that were under way are lost; they are repeated at once.
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

// processesOf finds the processes of clients; without clients all, and enters
// what becomes of later ones.
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
			e.t.Fatalf("locktest: %s: the client is not of this Env: use what its Client has returned", what)
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

// follow disconnects p if everyone is.
func (e *Env) follow(p *process) {
	e.mu.Lock()
	cut := e.cut
	e.mu.Unlock()
	if cut {
		e.disconnect(p)
	}
}

// errReset is the error of a request that was under way while the network came
// back.
var errReset = errors.New("locktest: the connection was lost")

// Do passes a request on if the network is up.
func (p *process) Do(r *http.Request) (*http.Response, error) {
	p.env.mu.Lock()
	down, dead := p.down, p.dead
	p.env.mu.Unlock()
	switch {
	case dead:
		return p.buried(r), nil
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

// buried is the answer to a process that was down when the test ended: it is to
// give up, and not to come to life again for the time that closing takes.
func (p *process) buried(r *http.Request) *http.Response {
	const body = `{"__type":"com.amazon.coral.service#AccessDeniedException","Message":"locktest: the test has ended"}`
	return &http.Response{
		Status: "400 Bad Request", StatusCode: http.StatusBadRequest, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{"Content-Type": {"application/x-amz-json-1.0"}},
		Body:   io.NopCloser(strings.NewReader(body)), ContentLength: int64(len(body)), Request: r,
	}
}
