package attempts_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
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

// lies are HTTP handlers of servers that are not DynamoDB.
var lies = map[string]http.HandlerFunc{
	"HTML page":    func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "<html></html>") },
	"another JSON": func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, `{"name":"search"}`) },
	"empty reply":  func(http.ResponseWriter, *http.Request) {},
	"redirect": func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "/there", http.StatusTemporaryRedirect)
	},
}

// foreignCalls are calls that must fail with a ForeignError if the server is not DynamoDB.
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
	lab.WantText(t, name, err, "not DynamoDB's: check proxies and the endpoint", "table locks")
}

func TestCallFailsIfServerIsNotDynamoDB(t *testing.T) {
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

func TestGetFailsIfServerSpeaksSSH(t *testing.T) {
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

func TestListingFailsIfServerRepeatsPages(t *testing.T) {
	for round := 1; round < 5; round++ {
		server := pagesEndingAt(t, func(page int) int { return page % round })
		isForeign(t, fmt.Sprintf("a cycle of %d pages", round), foreignCalls["List"](t.Context(), at(t, server.URL)))
	}
}

// The server sends page after page, each with a later start key. A very large table would do the
// same, so the client continues the listing until the caller's context is cancelled.
func TestListingOfEndlessTableStopsWhenContextEnds(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	server := pagesEndingAt(t, func(page int) int {
		if page == 100 {
			cancel()
		}
		return page
	})
	lab.WantErr(t, "listing", foreignCalls["List"](ctx, at(t, server.URL)), context.Canceled)
}

// When a condition fails, an old DynamoDB-compatible engine does not return the item. The client
// must then read the record to learn which client holds the lock.
func TestClientReadsRecordIfReplyAboutFailedConditionHasNoItem(t *testing.T) {
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

		lab.WantErr(t, "none", lab.ErrorOf(b.Acquire(t.Context(), "none", leasehold.IfExists())), leasehold.ErrNotFound)
	})
}

func TestErrorOfTimedOutCallIncludesErrorOfLastAnsweredAttempt(t *testing.T) {
	type op = func(context.Context, *leasehold.Client, *leasehold.Lock) error
	closing := func(ctx context.Context, c *leasehold.Client, _ *leasehold.Lock) error { return c.Close(ctx) }
	type row struct {
		config leasehold.Config
		end    op
	}
	lab.Each(t, map[string]row{
		"Release":                    {lab.Config(), func(ctx context.Context, _ *leasehold.Client, l *leasehold.Lock) error { return l.Release(ctx) }},
		"Close":                      {lab.Config(), closing},
		"Close under a shared lease": {lab.SharedConfig(), closing},
		"Renew":                      {lab.Config(), func(ctx context.Context, _ *leasehold.Client, l *leasehold.Lock) error { return l.Renew(ctx) }},
		"Break": {lab.Config(), func(ctx context.Context, c *leasehold.Client, l *leasehold.Lock) error {
			return c.Break(ctx, l.Record(), leasehold.BreakOptions{})
		}},
		"Commit": {lab.Config(), func(ctx context.Context, _ *leasehold.Client, l *leasehold.Lock) error { return l.Commit(ctx, nil) }},
		"CommitAndRelease": {lab.Config(), func(ctx context.Context, _ *leasehold.Client, l *leasehold.Lock) error {
			return l.CommitAndRelease(ctx, nil)
		}},
		"Resume": {lab.Config(), func(ctx context.Context, c *leasehold.Client, l *leasehold.Lock) error {
			g, err := l.Detach()
			if err != nil {
				return err
			}
			return lab.ErrorOf(c.Resume(ctx, g))
		}},
	}, func(t *testing.T, w *lab.World, r row) {
		var opts []leasehold.AcquireOption
		// Turn off background renewals, because Renew sends nothing while a background renewal is
		// in flight. With a shared lease, WithoutRenewal is neither allowed nor needed: a lock's
		// record is renewed only every twenty minutes.
		if !r.config.SharedLease {
			opts = append(opts, leasehold.WithoutRenewal())
		}
		c, wire, lock := w.Holding(r.config, opts...)
		began := time.Now()
		wire.SetFault(func(*lab.Request) (*http.Response, error) {
			if time.Since(began) > 2*time.Second {
				time.Sleep(5 * time.Second) // the reply comes only after the deadline of the call's context
			}
			return lab.Refusal(400, "ThrottlingException"), nil
		})
		err := r.end(w.Within(5*time.Second), c, lock)
		lab.Want(t, "took", time.Since(began), 5*time.Second)
		lab.WantErr(t, "the call", err, leasehold.ErrUnknownOutcome)
		lab.WantText(t, "the call", err, "throttled: raise the table's capacity")
		wire.SetFault(nil)
		_ = lock.Release(t.Context())
		lab.Elapse(time.Minute)
	})
}

// endedUnseen is a context that has ended. The first call of Err still returns nil, so the
// code under test notices the end of the context only at the second call.
type endedUnseen struct {
	context.Context
	asked bool
}

func (c *endedUnseen) Err() error {
	if !c.asked {
		c.asked = true
		return nil
	}
	return c.Context.Err()
}

func TestMethodsBreakAndResumeDoNotWaitForReplyIfCancelled(t *testing.T) {
	type call = func(context.Context, *leasehold.Client, leasehold.Grant, leasehold.Record) error
	lab.Each(t, map[string]call{
		"Break": func(ctx context.Context, c *leasehold.Client, _ leasehold.Grant, r leasehold.Record) error {
			return c.Break(ctx, r, leasehold.BreakOptions{})
		},
		"Resume": func(ctx context.Context, c *leasehold.Client, g leasehold.Grant, _ leasehold.Record) error {
			return lab.ErrorOf(c.Resume(ctx, g))
		},
	}, func(t *testing.T, w *lab.World, end call) {
		c, wire, lock := w.Holding(lab.Config())
		record, grant := lock.Record(), w.Detach(lock)
		wire.SetFault(lab.Slow(time.Second))
		began := time.Now()
		lab.WantErr(t, "the call", end(&endedUnseen{Context: w.Ended()}, c, grant, record), leasehold.ErrUnknownOutcome)
		lab.WantTook(t, "the call took", began, 0, 0)
		lab.Elapse(time.Minute)
	})
}

func TestLostConnectionIsNotReportedAsForeignServer(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, wire := w.Client(lab.Config())
		wire.SetFault(lab.Drop)
		err := lab.ErrorOf(c.TryAcquire(t.Context(), "job"))
		if foreign := (*attempts.ForeignError)(nil); err == nil || errors.As(err, &foreign) {
			t.Errorf("%v", err)
		}
	})
}
