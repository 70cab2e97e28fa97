package behaviour_test

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/lab"
	"github.com/leasehold-go/leasehold/layout"
	"github.com/leasehold-go/leasehold/localdynamo"
)

func TestNewRejectsInvalidConfig(t *testing.T) {
	db := localdynamo.New().Client()
	type says []string // strings that the error's text must contain
	for _, tc := range []struct {
		name   string
		change func(*leasehold.Config)
		says
	}{
		{"no table", func(c *leasehold.Config) { c.Table = "" }, says{"Table"}},
		{"a lease under a second", func(c *leasehold.Config) { c.Lease = 999 * time.Millisecond }, says{"Lease"}},
		{"renewals too rare", func(c *leasehold.Config) { c.RenewEvery = 6*time.Second + 1 }, says{"RenewEvery"}},
		{"a margin as long as the lease", func(c *leasehold.Config) { c.Margin = 20 * time.Second }, says{"Margin"}},
		{"a margin that leaves too little of the shortest lease", func(c *leasehold.Config) { c.Lease, c.Margin = time.Second, 501*time.Millisecond }, says{"Margin"}},
		{"a negative poll", func(c *leasehold.Config) { c.PollMax = -1 }, says{"PollMax"}},
		{"a negative retention", func(c *leasehold.Config) { c.Retention = -time.Hour }, says{"Retention"}},
		{"a retention with DeleteOnRelease", func(c *leasehold.Config) { c.Retention, c.DeleteOnRelease = time.Hour, true }, says{"DeleteOnRelease"}},
		{"DeleteOnRelease with Forever", func(c *leasehold.Config) { c.Retention, c.DeleteOnRelease = leasehold.Forever, true }, says{"DeleteOnRelease"}},
		{"a nil pointer to a layout", func(c *leasehold.Config) { c.Layout = (*layout.Native)(nil) }, says{"not a pointer"}},
		{"a nil pointer to another layout", func(c *leasehold.Config) { c.Layout = (*layout.DyndbMutex)(nil) }, says{"not a pointer"}},
		{"a pointer to a layout", func(c *leasehold.Config) { c.Layout = &layout.AWSLabs{} }, says{"not a pointer"}},
		{"an owner that is too long", func(c *leasehold.Config) { c.Owner = strings.Repeat("o", 256) }, says{"Owner has 256 bytes: at most 255"}},
		{"a partition key with a reserved name", func(c *leasehold.Config) { c.Layout = layout.Native{PartitionKey: "data"} }, says{"partition key"}},
		{"renewals without a unit", func(c *leasehold.Config) { c.RenewEvery = 5 }, says{"RenewEvery is 5ns", "5 * time.Second"}},
		{"the longest pause without a unit", func(c *leasehold.Config) { c.PollMax = 1 }, says{"PollMax is 1ns", "1 * time.Second"}},
		{"the margin without a unit", func(c *leasehold.Config) { c.Margin = 2 }, says{"Margin is 2ns", "2 * time.Second"}},
		{"the margin in milliseconds without a unit", func(c *leasehold.Config) { c.Margin = 2000 }, says{"Margin is 2µs", "2000 * time.Millisecond"}},
		{"the lease without a unit", func(c *leasehold.Config) { c.Lease = 20 }, says{"Lease is 20ns", "20 * time.Second", "at least 1s"}},
		{"the retention without a unit", func(c *leasehold.Config) { c.Retention = 86400 }, says{"Retention is 86.4µs"}},
		{"the grace without a unit", func(c *leasehold.Config) { c.ReleaseGrace = 2 }, says{"ReleaseGrace is 2ns"}},
		{"a margin just below the lease", func(c *leasehold.Config) { c.Margin = 20*time.Second - 1 }, says{"Margin is 19.999999999s", "leaves 1ns", "at least 500ms"}},
		{"four invalid fields", func(c *leasehold.Config) {
			c.RenewEvery, c.PollMax, c.Margin, c.ReleaseGrace = 5, 1, 30*time.Second, -1
		}, says{"RenewEvery is 5ns", "PollMax is 1ns", "Margin is 30s", "ReleaseGrace is -1ns"}},
		{"two negative durations", func(c *leasehold.Config) { c.RenewEvery, c.Margin = -1, -1 }, says{"RenewEvery is -1ns", "Margin is -1ns"}},
	} {
		cfg := lab.Config()
		tc.change(&cfg)
		c, err := leasehold.New(db, cfg)
		lab.Want(t, tc.name+": client", c, nil)
		lab.WantText(t, tc.name, err, tc.says...)
	}
	for name, nothing := range map[string]leasehold.DB{"nil": nil, "a nil *dynamodb.Client": (*dynamodb.Client)(nil)} {
		lab.WantFailed(t, name, lab.ErrorOf(leasehold.New(nothing, lab.Config())))
	}
	_, err := leasehold.New(nil, leasehold.Config{Lease: time.Millisecond, PollMax: -1})
	lab.WantText(t, "new", err, "Table", "Lease", "PollMax", "client is nil")
}

func TestConfigErrorMentionsInvalidLeaseOnlyOnce(t *testing.T) {
	for name, cfg := range map[string]leasehold.Config{
		"negative lease":            {Lease: -time.Second},
		"negative lease and margin": {Lease: -time.Second, Margin: time.Second},
		"negative lease and skew":   {Lease: -time.Second, MaxSkew: time.Second},
		"no trust left":             {Lease: 2 * time.Second, Margin: 1900 * time.Millisecond},
	} {
		cfg.Table = "locks"
		_, err := leasehold.New(localdynamo.New().Client(), cfg)
		lab.Want(t, name+": problems", strings.Count(fmt.Sprint(err), "leasehold: config: "), 1)
	}
}

func TestNewAcceptsConfigValuesAtLimits(t *testing.T) {
	for name, cfg := range map[string]leasehold.Config{
		"the defaults":                  {},
		"the shortest lease":            {Lease: time.Second},
		"the least trust":               {Lease: time.Second, Margin: 500 * time.Millisecond},
		"the rarest renewals":           {Lease: 20 * time.Second, Margin: 2 * time.Second, RenewEvery: 6 * time.Second},
		"the least trust by wall clock": {Lease: 2700 * time.Millisecond, Margin: 200 * time.Millisecond, Layout: layout.DynamoDLM{}},
		"a pause of a millisecond":      {PollMax: time.Millisecond},
		"retention for ever":            {Retention: leasehold.Forever},
	} {
		cfg.Table = "locks"
		lab.WantErr(t, name, lab.ErrorOf(leasehold.New(localdynamo.New().Client(), cfg)), nil)
	}
}

func TestAcquireAddsTableAndAdviceToDynamoDBErrors(t *testing.T) {
	type row struct {
		code string
		is   error
		says string
	}
	lab.Each(t, map[string]row{
		"no such table":          {"ResourceNotFoundException", leasehold.ErrTableNotFound, "leasehold table create"},
		"access denied":          {"AccessDeniedException", nil, "IAM policy"},
		"expired credentials":    {"ExpiredTokenException", nil, "expired"},
		"unknown credentials":    {"UnrecognizedClientException", nil, "credentials"},
		"a limit of the account": {"LimitExceededException", nil, "ask AWS for more"},
		"a full index":           {"ItemCollectionSizeLimitExceededException", nil, "without one"},
	}, func(t *testing.T, w *lab.World, tc row) {
		c, wire := w.Client(lab.Config())
		wire.SetFault(lab.Refused(tc.code))
		began := time.Now()
		_, err := c.Acquire(t.Context(), "job")
		if op := as[*leasehold.OpError](err); op == nil || op.Op != "acquire" || op.Table != "locks" || tc.is != nil && !errors.Is(err, tc.is) {
			t.Fatalf("error %v", err)
		}
		lab.WantText(t, "acquire", err, tc.says, "table locks")
		lab.WantTook(t, "returned after", began, 0, time.Second)
	})
	t.Run("wrong key schema", func(t *testing.T) {
		lab.InBubble(t, func(t *testing.T, w *lab.World) {
			c, _ := w.Work().Client(lab.ConfigOf("work", nil))
			lab.WantText(t, "acquire", lab.ErrorOf(c.Acquire(t.Context(), "job")), "table check")
		})
	})
}

func TestAcquireRetriesAfterThrottlingOrTransactionConflict(t *testing.T) { // in dynamolock, Acquire fails if DynamoDB reports contention
	for _, code := range []string{"ThrottlingException", "ProvisionedThroughputExceededException", "RequestLimitExceeded", "TransactionConflictException"} {
		t.Run(code, func(t *testing.T) {
			lab.InBubble(t, func(t *testing.T, w *lab.World) {
				c, wire, events := logged(w, lab.Config())
				refusals := 0
				wire.SetFault(func(r *lab.Request) (*http.Response, error) {
					if refusals++; refusals <= 5 {
						return lab.Refused(code)(r)
					}
					return r.Send()
				})
				w.Release(w.Acquire(c, "job"))
				lab.Want(t, "events", len(events.of(leasehold.EventThrottled)), 5)
			})
		})
	}
}

func TestClientWarnsIfIdleConnectionLimitIsTooLow(t *testing.T) {
	type row struct {
		idle, locks int
		shared      bool
		warns       int
	}
	lab.Each(t, map[string]row{
		"ten locks per connection":                {10, 109, false, 0},
		"thirty locks per connection":             {10, 300, false, 1},
		"thirty under a shared lease":             {10, 300, true, 0},
		"a connection for each renewal in flight": {128, 1300, false, 0},
	}, func(t *testing.T, w *lab.World, tc row) {
		var log eventLog
		cfg := lab.Config()
		cfg.SharedLease, cfg.Logger = tc.shared, slog.New(slog.NewTextHandler(&log, nil))
		pool := &pool{w.Wire(), tc.idle}
		c := w.ClientOf(w.Connect(nil, func(o *dynamodb.Options) { o.HTTPClient = pool }), cfg)
		w.AcquireMany(c, "job", tc.locks)
		lab.Want(t, "warnings", strings.Count(strings.Join(log.lines(), "\n"), "MaxIdleConnsPerHost="+fmt.Sprint(tc.idle)), tc.warns)
		closes(w, c)
	})
}

// pool is a Wire that has the method GetTransport, like the SDK's own HTTP client. The field "idle"
// is the transport's limit of idle connections per host.
type pool struct {
	*lab.Wire
	idle int
}

func (p *pool) GetTransport() *http.Transport {
	return awshttp.NewBuildableClient().WithTransportOptions(func(tr *http.Transport) { tr.MaxIdleConnsPerHost = p.idle }).GetTransport()
}

func TestClientWithSharedLeaseRejectsUnsupportedFeatures(t *testing.T) {
	cfg := lab.SharedConfig()
	cfg.Layout = layout.AWSLabs{}
	lab.WantErr(t, "awslabs", lab.ErrorOf(leasehold.New(lab.New(t).DB, cfg)), errors.ErrUnsupported)
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, wire := w.Client(lab.SharedConfig())
		for _, o := range []leasehold.AcquireOption{leasehold.WithLease(time.Minute), leasehold.WithoutRenewal()} {
			lab.WantErr(t, fmt.Sprintf("%T", o), lab.ErrorOf(c.Acquire(t.Context(), "job", o)), errors.ErrUnsupported)
		}
		wantSent(t, wire, 0)
		lab.WantErr(t, "Detach", lab.ErrorOf(w.Acquire(c, "job").Detach()), errors.ErrUnsupported)
		_ = c.Close(t.Context())
	})
}

func TestNewRejectsRetentionIfLayoutDoesNotSupportIt(t *testing.T) {
	for _, l := range []layout.Layout{layout.AWSLabs{}, layout.Dynamolock{}, layout.PythonDynamoDBLock{}, layout.DynamoDLM{}} {
		cfg := lab.ConfigOf("locks", l)
		cfg.Retention = time.Hour
		var unsupported *leasehold.UnsupportedError
		if _, err := leasehold.New(lab.New(t).DB, cfg); !errors.As(err, &unsupported) || *unsupported != (leasehold.UnsupportedError{Table: "locks", Layout: l.Name(), Feature: "Retention"}) {
			t.Errorf("%s: %v", l.Name(), err)
		}
	}
}
