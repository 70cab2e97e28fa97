package requests

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/smithy-go"
)

var region = Server{Location: "eu-west-1"}

func throttled(at time.Time) Request {
	return Request{Began: at, Err: &smithy.GenericAPIError{Code: "ThrottlingException"}, Reply: Reply{Code: 400}}
}

func TestTroubleSaysWhatToDo(t *testing.T) {
	h := &Health{}
	if got := h.Trouble(region); got != (Trouble{server: region}) {
		t.Errorf("at first: %v", got)
	}
	h.saw(throttled(time.Now().Add(-time.Minute)))
	if got := h.Trouble(region).Line(); got != "DynamoDB has throttled every request for 1m0s: still trying: raise the table's capacity, or make it pay per request: ThrottlingException" {
		t.Error(got)
	}
	h.saw(Request{Began: time.Now(), Err: errors.New("connection refused")})
	if got := h.Trouble(Server{"~/locks.db", true}).Line(); got != "no answer from ~/locks.db for 1m0s: still trying: connection refused: find the process that keeps the file locked: leasehold doctor or fuser(1) names it" {
		t.Error(got)
	}
	h.saw(Request{})
	if got := h.Trouble(region); got != (Trouble{server: region, answers: 1}) {
		t.Errorf("at last: %v", got)
	}
}

func TestTroubleThatComesAndGoesIsSaidOnceAMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, told := &Health{}, &teller{}
		var said []string
		second := func() {
			time.Sleep(time.Second)
			if n, due := told.news(h.Trouble(region), time.Now()); due {
				said = append(said, n.Line)
			}
		}
		const minutes = 5
		for range minutes * 6 { // ten seconds each: throttled, then answered
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
			if !strings.HasPrefix(pair[0], "DynamoDB has throttled every request for 3s") || pair[1] != "DynamoDB answers again, after 10s" {
				t.Errorf("said %q", pair)
			}
		}
	})
}

func TestARequestWithoutAReplyIsTroubleBeforeItFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &Health{}
		p := h.Begin()
		time.Sleep(3 * time.Second)
		if got := h.Trouble(region).Line(); !strings.HasPrefix(got, "no credentials for 3s: still trying: no request was sent yet: check what provides them: ") {
			t.Error(got)
		}
		p.sent()
		if got := h.Trouble(region).Line(); got != "no answer from DynamoDB for 3s: still trying: no reply from eu-west-1: check the network, the region and the endpoint" {
			t.Error(got)
		}
		p.End()
		if got := h.Trouble(region); got.lasts != 0 {
			t.Errorf("after the call: %v", got)
		}
	})
}
