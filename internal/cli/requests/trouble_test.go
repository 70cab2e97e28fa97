package requests

import (
	"context"
	"errors"
	"net"
	"net/url"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/smithy-go"

	"github.com/leasehold-go/leasehold/internal/lab"
)

var region = Server{Location: "eu-west-1"}

func throttled(at time.Time) Request {
	return Request{Began: at, Err: &smithy.GenericAPIError{Code: "ThrottlingException"}, Code: 400}
}

func TestMessageAboutFailedRequestsContainsAdvice(t *testing.T) {
	h := &Health{}
	lab.Want(t, "at first", h.Trouble(region), (Trouble{server: region}))
	h.saw(throttled(time.Now().Add(-time.Minute)))
	lab.Want(t, "news", h.Trouble(region).News().Line, "DynamoDB has throttled every request for 1m0s: still trying: raise the table's capacity, or make it pay per request: ThrottlingException")
	h.saw(Request{Began: time.Now(), Err: &smithy.GenericAPIError{Code: "ExpiredTokenException"}, Code: 400})
	lab.Want(t, "news", h.Trouble(region).News().Line, "DynamoDB has rejected every request for 1m0s: still trying: ExpiredTokenException: the credentials have expired: renew them")
	h.saw(Request{Began: time.Now(), Err: context.DeadlineExceeded})
	lab.Want(t, "news", h.Trouble(Server{"~/locks.db", true}).News().Line, "no answer from ~/locks.db for 1m0s: still trying: no reply from ~/locks.db: find the process that keeps the file locked: fuser(1) names it")
	h.saw(Request{Began: time.Now(), Err: errors.New("cannot allocate memory")})
	lab.Want(t, "news", h.Trouble(Server{"~/locks.db", true}).News().Line, "no answer from ~/locks.db for 1m0s: still trying: cannot allocate memory: leasehold doctor says more")
	h.saw(Request{})
	lab.Want(t, "at last", h.Trouble(region), (Trouble{server: region, answers: 1}))
}

// If the configured Region does not exist in AWS, its DynamoDB endpoint has no DNS entry.
// The first DNS lookup then fails immediately.
func TestUnknownHostOfDynamoDBIsReportedImmediately(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		none := Request{Began: time.Now(), Err: &url.Error{Op: "Post", URL: "https://dynamodb.eu-wset-1.amazonaws.com/", Err: &net.OpError{
			Op: "dial", Net: "tcp", Err: &net.DNSError{Err: "no such host", Name: "dynamodb.eu-wset-1.amazonaws.com", IsNotFound: true},
		}}}
		wset, h, told := Server{Location: "eu-wset-1"}, &Health{}, &Telling{}
		h.saw(none)
		n, due := told.news(h.Trouble(wset), time.Now())
		if want := "DNS has no host for DynamoDB in eu-wset-1: still trying: no connection to https://dynamodb.eu-wset-1.amazonaws.com/: lookup dynamodb.eu-wset-1.amazonaws.com: no such host: " +
			"check the Region and the endpoint: --region, --endpoint-url, or the variable or profile that sets them"; !due || n.Line != want || n.Kind != NoAnswer || !n.Lasting {
			t.Errorf("due %v: %+v", due, n)
		}
		if n, due := told.news(h.Trouble(wset), time.Now()); due {
			t.Errorf("again: %+v", n)
		}
		answered, told := &Health{}, &Telling{} // here DynamoDB first answers a request, so the host exists
		answered.saw(Request{})
		answered.saw(none)
		if n, due := told.news(answered.Trouble(wset), time.Now()); due {
			t.Errorf("after an answer: %+v", n)
		}
	})
}

func TestRequestFailuresAreReportedOncePerMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, told := &Health{}, &Telling{}
		var said []string
		second := func() {
			time.Sleep(time.Second)
			if n, due := told.news(h.Trouble(region), time.Now()); due {
				said = append(said, n.Line)
			}
		}
		const minutes = 5
		for range minutes * 6 { // in each round of ten seconds, DynamoDB first throttles requests and then answers one
			h.saw(throttled(time.Now()))
			for range 8 {
				second()
			}
			h.saw(Request{})
			time.Sleep(time.Second)
			second()
		}
		if len(said) != 2*minutes {
			t.Fatalf("in %d minutes: %q", minutes, said)
		}
		for pair := range slices.Chunk(said, 2) {
			lab.WantMatch(t, "first news of a pair", pair[0], "^DynamoDB has throttled every request for 3s")
			lab.Want(t, "second news of a pair", pair[1], "DynamoDB answers again, after 10s")
		}
	})
}

func TestUnansweredRequestIsReportedBeforeItFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &Health{}
		p := h.Begin()
		time.Sleep(3 * time.Second)
		lab.WantMatch(t, "news", h.Trouble(region).News().Line, "^no credentials for 3s: still trying: no request was sent yet: check what provides them: ")
		p.sent()
		lab.Want(t, "news", h.Trouble(region).News().Line, "no answer from DynamoDB for 3s: still trying: no reply from eu-west-1: check the network, the region and the endpoint")
		p.End()
		lab.Want(t, "trouble after the call", h.Trouble(region).lasts, 0)
	})
}
