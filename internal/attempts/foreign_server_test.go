package attempts_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/attempts"
	"github.com/leasehold-go/leasehold/internal/lab"
	"github.com/leasehold-go/leasehold/internal/machine"
)

// lies are HTTP handlers of servers that are not DynamoDB. Some of these
// servers are hostile.
var lies = map[string]http.HandlerFunc{
	"a page":       func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "<html></html>") },
	"another JSON": func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, `{"name":"search"}`) },
	"nothing":      func(http.ResponseWriter, *http.Request) {},
	"elsewhere": func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "/there", http.StatusTemporaryRedirect)
	},
}

// foreignCalls are calls that must return a ForeignError if the server that answers is not
// DynamoDB.
var foreignCalls = map[string]func(context.Context, *leasehold.Client) error{
	"TryAcquire": func(ctx context.Context, c *leasehold.Client) error { return lab.ErrorOf(c.TryAcquire(ctx, "job")) },
	"Get":        func(ctx context.Context, c *leasehold.Client) error { return lab.ErrorOf(c.Get(ctx, "job")) },
	"List": func(ctx context.Context, c *leasehold.Client) error {
		for _, err := range c.List(ctx, leasehold.ListOptions{}) {
			if err != nil {
				return err
			}
		}
		return nil
	},
}

// at returns a leasehold client whose requests go to the server at url.
func at(t *testing.T, url string, options ...func(*http.Transport)) *leasehold.Client {
	t.Helper()
	transport := awshttp.NewBuildableClient().WithTransportOptions(options...)
	t.Cleanup(transport.GetTransport().CloseIdleConnections)
	db := dynamodb.New(dynamodb.Options{
		Region: "us-east-1", BaseEndpoint: aws.String(url), Credentials: credentials.NewStaticCredentialsProvider("a", "b", ""),
		HTTPClient: transport,
	})
	ofTheTest := func(m *machine.Machine) { m.Now = machine.BootedAt(time.Now()) }
	return lab.Must(leasehold.New(machine.DB{Client: db, Edit: ofTheTest}, lab.Config()))(t)
}

func isForeign(t *testing.T, name string, err error) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), "not DynamoDB's: check proxies and the endpoint") || !strings.Contains(err.Error(), "table locks") {
		t.Errorf("%s: %.500v", name, err)
	}
}

func TestReplyNotFromDynamoDBReturnsForeignError(t *testing.T) {
	for lie, answer := range lies {
		for name, call := range foreignCalls {
			synctest.Test(t, func(t *testing.T) {
				network := attempts.NewPipes()
				server := &http.Server{Handler: answer, ReadHeaderTimeout: time.Minute}
				t.Cleanup(func() { _ = server.Close() })
				go func() { _ = server.Serve(network) }()
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				isForeign(t, lie+", "+name, call(ctx, at(t, "http://liar", network.Connect)))
			})
		}
	}
}

func TestGetReturnsForeignErrorIfServerSpeaksFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := attempts.NewPipes()
		defer network.Close()
		go func() {
			for conn, err := network.Accept(); err == nil; conn, err = network.Accept() {
				_, _ = io.WriteString(conn, "SSH-2.0-OpenSSH_9.6\r\n")
				defer conn.Close()
			}
		}()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := at(t, "http://ssh", network.Connect).Get(ctx, "job")
		isForeign(t, "SSH", err)
	})
}

// pagesEndingAt returns a server that answers every request with a page without items.
// The reply to request n says that the next page starts at key(n).
func pagesEndingAt(t *testing.T, key func(page int) int) *httptest.Server {
	t.Helper()
	var pages atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/x-amz-json-1.0")
		fmt.Fprintf(w, `{"Count":0,"ScannedCount":0,"Items":[],"LastEvaluatedKey":{"key":{"S":"%d"}}}`, key(int(pages.Add(1))))
	}))
	t.Cleanup(server.Close)
	return server
}

func TestListingWithRepeatedKeyReturnsForeignError(t *testing.T) {
	for round := 1; round < 5; round++ {
		server := pagesEndingAt(t, func(page int) int { return page % round })
		isForeign(t, fmt.Sprintf("a circle of %d pages", round), foreignCalls["List"](t.Context(), at(t, server.URL)))
	}
}

// A listing does not end by itself if each page starts at a key after the previous one,
// because a table may be of any size. Only the end of its context ends it.
func TestEndlessListingEndsWhenContextEnds(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	server := pagesEndingAt(t, func(page int) int {
		if page == 100 {
			cancel()
		}
		return page
	})
	if err := foreignCalls["List"](ctx, at(t, server.URL)); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// Old local engines return no item with a failed condition. Errors of some other tools,
// such as Terraform's, then show an empty holder.
func TestHolderIsReadSeparatelyIfEngineOmitsOldItem(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		a, _ := w.Client(lab.Config())
		b, wire := w.Client(lab.Config())
		wire.SetFault(lab.ShowNothing)
		lock := w.Acquire(a, "job", leasehold.WithoutRenewal())
		var held *leasehold.HeldError
		if _, err := b.TryAcquire(t.Context(), "job"); !errors.As(err, &held) || held.Holder.Token != lock.Token() {
			t.Errorf("held: %v", err)
		}
		if sent := wire.Sent(); len(sent) != 2 || sent[1].Op != "GetItem" {
			t.Errorf("sent %v", sent)
		}
		w.Release(lock)

		lost := w.Acquire(b, "job", leasehold.WithoutRenewal())
		w.Delete("job")
		next := w.Acquire(a, "job")
		var gone *leasehold.LostError
		if err := lost.Renew(t.Context()); !errors.As(err, &gone) || gone.Reason != leasehold.LostReplaced || gone.By.Token != next.Token() {
			t.Errorf("lost: %v", err)
		}
		_ = lost.Release(t.Context())
		w.Release(next)

		if _, err := b.Acquire(t.Context(), "none", leasehold.IfExists()); !errors.Is(err, leasehold.ErrNotFound) {
			t.Errorf("none: %v", err)
		}
	})
}
