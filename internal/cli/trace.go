package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
)

// trace watches every request, to log it with -v and to know for how long
// DynamoDB has not answered.
func (a *app) trace(s *store) func(*dynamodb.Options) {
	return func(o *dynamodb.Options) {
		o.HTTPClient = &tracer{next: o.HTTPClient, health: &s.health, requests: &s.requests, say: a.say, verbose: a.flags.verbose}
	}
}

type tracer struct {
	next     aws.HTTPClient
	health   *health
	requests *sync.RWMutex // as in store
	say      *messages
	verbose  bool
}

func (t *tracer) Do(r *http.Request) (*http.Response, error) {
	t.requests.RLock()
	defer t.requests.RUnlock()
	began := time.Now()
	response, err := t.next.Do(r)
	took := time.Since(began).Round(100 * time.Microsecond)
	_, operation, _ := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
	switch {
	case err != nil:
		switch {
		case errors.Is(err, context.DeadlineExceeded):
			t.health.failed("no answer in time", began)
		case r.Context().Err() == nil: // a cancelled request says nothing about DynamoDB
			t.health.failed(err.Error(), began)
		}
		t.log("%s: %v in %v", operation, oneLine(err.Error()), took)
	case response.StatusCode >= http.StatusInternalServerError:
		t.health.failed(response.Status, began)
		t.log("%s: %s in %v", operation, response.Status, took)
	case response.StatusCode >= http.StatusBadRequest:
		code := errorCode(response)
		if isThrottling(code) {
			t.health.throttled(code, began)
		} else {
			t.health.answered()
		}
		t.log("%s: %s in %v", operation, code, took)
	default:
		t.health.answered()
		t.log("%s: %d in %v", operation, response.StatusCode, took)
	}
	return response, err
}

func (t *tracer) log(format string, args ...any) {
	if t.verbose {
		t.say.note(format, args...)
	}
}

// errorCode reads DynamoDB's error code, and leaves the body to be read again.
func errorCode(r *http.Response) string {
	const longest = 64 << 10
	head, err := io.ReadAll(io.LimitReader(r.Body, longest))
	r.Body = struct {
		io.Reader
		io.Closer
	}{io.MultiReader(bytes.NewReader(head), r.Body), r.Body}
	var body struct {
		Type string `json:"__type"`
	}
	if err != nil || json.Unmarshal(head, &body) != nil || body.Type == "" {
		return r.Status
	}
	_, code, found := strings.Cut(body.Type, "#")
	if !found {
		code = body.Type
	}
	return code
}

// isThrottling reports whether an error code means that there were too many
// requests.
func isThrottling(code string) bool {
	switch code {
	case "ProvisionedThroughputExceededException", "ThrottlingException", "RequestLimitExceeded":
		return true
	}
	return false
}

// health remembers since when DynamoDB has not answered, or has throttled every
// request. It is safe for concurrent use.
type health struct {
	mu        sync.Mutex
	since     time.Time // zero: the last request was answered
	why       string
	throttles bool // it answers, but throttles
}

func (h *health) failed(why string, at time.Time) { h.notDone(why, false, at) }

func (h *health) throttled(code string, at time.Time) { h.notDone(code, true, at) }

func (h *health) notDone(why string, throttles bool, at time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.since.IsZero() {
		h.since = at
	}
	h.why, h.throttles = oneLine(why), throttles
}

func (h *health) answered() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.since = time.Time{}
}

// trouble returns for how long and why no request has succeeded.
func (h *health) trouble() trouble {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.since.IsZero() {
		return trouble{}
	}
	return trouble{time.Since(h.since), h.why, h.throttles}
}

// trouble says that requests fail. The zero value means that they do not.
type trouble struct {
	lasts     time.Duration
	why       string
	throttled bool
}

// line says what happens and what to do.
func (t trouble) line(server string) string {
	if t.throttled {
		return fmt.Sprintf("%s has throttled every request for %s: still trying: raise the table's capacity, or make it pay per request: %s", server, age(t.lasts), t.why)
	}
	return fmt.Sprintf("no answer from %s for %s: still trying: %s: check the network, the region and the endpoint", server, age(t.lasts), t.why)
}
