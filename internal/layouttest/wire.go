package layouttest

import (
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/leasehold-go/leasehold/internal/lab"
)

// wire is the network between one client and the engine. It records the requests, and can
// make them fail.
type wire struct {
	next    dynamodb.HTTPClient
	latency time.Duration // latency that the wire adds to each request; zero if the engine has a latency of its own

	mu    sync.Mutex
	ops   []string
	fault func(op string) fault // chooses the fault of each request; nil for no faults
}

// fault is a way in which the network handles a request.
type fault int

const (
	deliver   fault = iota
	loseReply       // the request is applied, but its reply is lost
	refuse          // the reply has status 400, for a reason other than a failed condition
	throttle
	fail // the reply has status 500, and the request is not applied
	drop // the request does not reach the engine
)

func (w *wire) Do(r *http.Request) (*http.Response, error) {
	_, op, _ := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
	w.mu.Lock()
	w.ops = append(w.ops, op)
	what := deliver
	if w.fault != nil {
		what = w.fault(op)
	}
	w.mu.Unlock()
	switch what {
	case refuse:
		return lab.Refusal(http.StatusBadRequest, "AccessDeniedException"), nil
	case throttle:
		return lab.Refusal(http.StatusBadRequest, "ProvisionedThroughputExceededException"), nil
	case fail:
		return lab.Refusal(http.StatusInternalServerError, "InternalServerError"), nil
	case drop:
		return nil, lab.ErrReset
	}
	if w.latency > 0 {
		time.Sleep(w.latency)
	}
	res, err := w.next.Do(r)
	if what == loseReply && err == nil {
		_, _ = io.Copy(io.Discard, res.Body)
		_ = res.Body.Close()
		return nil, lab.ErrReset
	}
	return res, err
}

// sent returns the operations of the requests that were sent since the last call of sent.
func (w *wire) sent() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	ops := w.ops
	w.ops = nil
	return ops
}

// The method "once" makes w apply the given fault to the next write. Reads are not affected.
func (w *wire) once(what fault) {
	done := false
	w.always(func(op string) fault {
		if done || op == "GetItem" {
			return deliver
		}
		done = true
		return what
	})
}

// The method "always" makes w call f for every request, to choose the fault of the request. If f is
// nil, no fault is applied.
func (w *wire) always(f func(op string) fault) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.fault = f
}
