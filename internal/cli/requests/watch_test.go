package requests

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/leasehold-go/leasehold/internal/lab"
	"github.com/leasehold-go/leasehold/localdynamo"
	"github.com/leasehold-go/leasehold/table"
)

// answering is an HTTP client. Each function in the field "answers" answers one of the first
// requests. A localdynamo engine answers all later requests.
type answering struct {
	dynamodb.HTTPClient
	answers []func(*http.Request) (*http.Response, error)
}

func (c *answering) Do(r *http.Request) (*http.Response, error) {
	if len(c.answers) == 0 {
		return c.HTTPClient.Do(r)
	}
	answer := c.answers[0]
	c.answers = c.answers[1:]
	return answer(r)
}

func replying(code int, body string) func(*http.Request) (*http.Response, error) {
	return func(*http.Request) (*http.Response, error) {
		return &http.Response{
			StatusCode: code, Status: http.StatusText(code), Header: http.Header{}, Body: io.NopCloser(strings.NewReader(body)),
		}, nil
	}
}

func getItem(t *testing.T, answers []func(*http.Request) (*http.Response, error), watches ...Watch) {
	t.Helper()
	engine := localdynamo.New()
	t.Cleanup(func() { _ = engine.Close() })
	lab.OK(t, table.Create(t.Context(), engine.Client(), table.Spec{Name: "locks"}))
	db := engine.Client(func(o *dynamodb.Options) {
		o.HTTPClient = &answering{o.HTTPClient, answers}
		o.Retryer = retry.AddWithMaxBackoffDelay(retry.NewStandard(), time.Millisecond)
	})
	for _, w := range watches {
		db = dynamodb.New(db.Options(), w.Client)
	}
	_, _ = db.GetItem(t.Context(), &dynamodb.GetItemInput{
		TableName: aws.String("locks"), Key: map[string]types.AttributeValue{"key": &types.AttributeValueMemberS{Value: "k"}},
	})
}

func TestEachHTTPRequestIsReportedOnceToEveryWatchCallback(t *testing.T) {
	var first, second []Request
	getItem(t, []func(*http.Request) (*http.Response, error){replying(503, "")},
		Watch{Each: func(r Request) { first = append(first, r) }},
		Watch{Each: func(r Request) { second = append(second, r) }, Units: true})
	for _, saw := range [][]Request{first, second} {
		if len(saw) != 2 || saw[0].Code != 503 || saw[0].Err == nil || saw[1].Err != nil || saw[1].Operation != "GetItem" ||
			saw[1].Units == nil || *saw[1].Units != 0.5 {
			t.Errorf("saw %+v", saw)
		}
	}
}

func TestOutcomeTextOfFailedRequestStatesCause(t *testing.T) {
	for _, c := range []struct {
		answer   func(*http.Request) (*http.Response, error)
		outcome  string
		answered bool
	}{
		{replying(200, "{}"), "ok", true},
		{replying(400, `{"__type":"com.amazon.coral.service#AccessDeniedException","Message":"no"}`), "AccessDeniedException", false},
		{replying(400, `{"__type":"x#ExpiredTokenException"}`), "ExpiredTokenException", false},
		{replying(400, `{"__type":"x#ConditionalCheckFailedException"}`), "ConditionalCheckFailedException", true},
		{replying(400, `{"__type":"x#ThrottlingException"}`), "ThrottlingException", false},
		{replying(403, `<html>`), "Forbidden", false},
		{replying(403, `{}`), "Forbidden", false},
		{replying(500, `{"__type":"x#InternalServerError","message":"boltstore: no space"}`), "Internal Server Error", false},
		{replying(200, `<html>`), "the answer is not DynamoDB's: check proxies and the endpoint: ", false},
		{func(*http.Request) (*http.Response, error) { return nil, errors.New("unplugged") }, "unplugged", false},
		{func(*http.Request) (*http.Response, error) { return nil, context.DeadlineExceeded }, "no reply from eu-west-1", false},
	} {
		var saw []Request
		getItem(t, []func(*http.Request) (*http.Response, error){c.answer}, Watch{Each: func(r Request) { saw = append(saw, r) }})
		if got := saw[0].outcome(region); !strings.HasPrefix(got, c.outcome) || saw[0].answered() != c.answered {
			t.Errorf("%q, want %q; answered: %v", got, c.outcome, saw[0].answered())
		}
	}
}
