package behaviour_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/lab"
	"github.com/leasehold-go/leasehold/layout"
	"github.com/leasehold-go/leasehold/localdynamo"
)

func TestNewRejectsInvalidConfig(t *testing.T) {
	db := localdynamo.New().Client()
	for _, tc := range []struct {
		name   string
		change func(*leasehold.Config)
		says   string
	}{
		{"no table", func(c *leasehold.Config) { c.Table = "" }, "Table"},
		{"a lease under a second", func(c *leasehold.Config) { c.Lease = 999 * time.Millisecond }, "Lease"},
		{"renewals too rare", func(c *leasehold.Config) { c.RenewEvery = 6*time.Second + 1 }, "RenewEvery"},
		{"a negative period", func(c *leasehold.Config) { c.RenewEvery = -1 }, "RenewEvery"},
		{"a margin of the lease", func(c *leasehold.Config) { c.Margin = 20 * time.Second }, "Margin"},
		{"a margin that leaves too little of the shortest lease", func(c *leasehold.Config) { c.Lease, c.Margin = time.Second, 501*time.Millisecond }, "Margin"},
		{"a negative margin", func(c *leasehold.Config) { c.Margin = -1 }, "Margin"},
		{"a negative poll", func(c *leasehold.Config) { c.PollMax = -1 }, "PollMax"},
		{"a negative retention", func(c *leasehold.Config) { c.Retention = -time.Hour }, "Retention"},
		{"a retention of what is deleted", func(c *leasehold.Config) { c.Retention, c.DeleteOnRelease = time.Hour, true }, "DeleteOnRelease"},
		{"deleted and kept for ever", func(c *leasehold.Config) { c.Retention, c.DeleteOnRelease = leasehold.Forever, true }, "DeleteOnRelease"},
		{"a nil pointer to a layout", func(c *leasehold.Config) { c.Layout = (*layout.Native)(nil) }, "not a pointer"},
		{"a nil pointer to another", func(c *leasehold.Config) { c.Layout = (*layout.DyndbMutex)(nil) }, "not a pointer"},
		{"a pointer to a layout", func(c *leasehold.Config) { c.Layout = &layout.AWSLabs{} }, "not a pointer"},
		{"an owner that is too long", func(c *leasehold.Config) { c.Owner = strings.Repeat("o", 256) }, "Owner has 256 bytes: at most 255"},
		{"a negative grace", func(c *leasehold.Config) { c.ReleaseGrace = -1 }, "ReleaseGrace"},
		{"a layout that clashes", func(c *leasehold.Config) { c.Layout = layout.Native{PartitionKey: "data"} }, "partition key"},
	} {
		cfg := lab.Config()
		tc.change(&cfg)
		if c, err := leasehold.New(db, cfg); err == nil || c != nil || !strings.Contains(err.Error(), tc.says) {
			t.Errorf("%s: %v", tc.name, err)
		}
	}
	if _, err := leasehold.New(nil, lab.Config()); err == nil {
		t.Error("nil: no error")
	}
	if _, err := leasehold.New((*dynamodb.Client)(nil), lab.Config()); err == nil {
		t.Error("a nil *dynamodb.Client: no error")
	}
	_, err := leasehold.New(nil, leasehold.Config{Lease: time.Millisecond, PollMax: -1})
	for _, says := range []string{"Table", "Lease", "PollMax", "client is nil"} {
		if err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("the one error lacks %s: %v", says, err)
		}
	}
	if _, err := leasehold.New(db, leasehold.Config{Table: "locks"}); err != nil {
		t.Errorf("the defaults: %v", err)
	}
}

func TestNewAcceptsConfigValuesAtLimits(t *testing.T) {
	for name, cfg := range map[string]leasehold.Config{
		"the shortest lease":          {Lease: time.Second},
		"the least trust":             {Lease: time.Second, Margin: 500 * time.Millisecond},
		"the rarest renewals":         {Lease: 20 * time.Second, Margin: 2 * time.Second, RenewEvery: 6 * time.Second},
		"the least trust, by a clock": {Lease: 2700 * time.Millisecond, Margin: 200 * time.Millisecond, Layout: layout.DynamoDLM{}},
	} {
		cfg.Table = "locks"
		if _, err := leasehold.New(localdynamo.New().Client(), cfg); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestDynamoDBErrorsNameTableAndAdvice(t *testing.T) {
	for _, tc := range []struct {
		name  string
		fault lab.Fault
		is    error
		says  string
	}{
		{"no such table", refuse("ResourceNotFoundException"), leasehold.ErrTableNotFound, "leasehold table create"},
		{"access denied", refuse("AccessDeniedException"), nil, "IAM policy"},
		{"expired credentials", refuse("ExpiredTokenException"), nil, "expired"},
		{"unknown credentials", refuse("UnrecognizedClientException"), nil, "credentials"},
		{"a limit of the account", refuse("LimitExceededException"), nil, "ask AWS for more"},
		{"a full index", refuse("ItemCollectionSizeLimitExceededException"), nil, "without one"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			lab.InBubble(t, func(t *testing.T, w *lab.World) {
				c, wire := w.Client(lab.Config())
				wire.SetFault(tc.fault)
				began := time.Now()
				_, err := c.Acquire(t.Context(), "job")
				var op *leasehold.OpError
				if !errors.As(err, &op) || op.Op != "acquire" || op.Table != "locks" || tc.is != nil && !errors.Is(err, tc.is) {
					t.Fatalf("error %v", err)
				}
				if !strings.Contains(err.Error(), tc.says) || !strings.Contains(err.Error(), "table locks") {
					t.Errorf("message %q", err)
				}
				if time.Since(began) > time.Second {
					t.Errorf("after %v", time.Since(began))
				}
			})
		})
	}
	t.Run("wrong key schema", func(t *testing.T) {
		lab.InBubble(t, func(t *testing.T, w *lab.World) {
			_, err := w.DB.CreateTable(t.Context(), &dynamodb.CreateTableInput{
				TableName: aws.String("other"), BillingMode: types.BillingModePayPerRequest,
				KeySchema:            []types.KeySchemaElement{{AttributeName: aws.String("id"), KeyType: types.KeyTypeHash}},
				AttributeDefinitions: []types.AttributeDefinition{{AttributeName: aws.String("id"), AttributeType: types.ScalarAttributeTypeS}},
			})
			if err != nil {
				t.Fatal(err)
			}
			cfg := lab.Config()
			cfg.Table = "other"
			c, _ := w.Client(cfg)
			if _, err := c.Acquire(t.Context(), "job"); err == nil || !strings.Contains(err.Error(), "table check") {
				t.Errorf("error %v", err)
			}
		})
	})
	t.Run("no credentials", func(t *testing.T) {
		c, err := leasehold.New(dynamodb.New(dynamodb.Options{Region: "local", Credentials: aws.CredentialsProviderFunc(
			func(context.Context) (aws.Credentials, error) { return aws.Credentials{}, errors.New("none found") },
		)}), lab.Config())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.Acquire(t.Context(), "job"); err == nil || !strings.Contains(err.Error(), "no credentials") {
			t.Errorf("error %v", err)
		}
	})
}

func refuse(code string) lab.Fault {
	return func(*lab.Request) (*http.Response, error) {
		return lab.Refusal(400, code), nil
	}
}

func TestWaiterDoesNotFailUnderContention(t *testing.T) { // in dynamolock contention is an error
	for _, code := range []string{"ThrottlingException", "ProvisionedThroughputExceededException", "RequestLimitExceeded", "TransactionConflictException"} {
		t.Run(code, func(t *testing.T) {
			lab.InBubble(t, func(t *testing.T, w *lab.World) {
				var throttled int
				cfg := lab.Config()
				cfg.OnEvent = func(_ context.Context, e leasehold.Event) {
					if e.Kind == leasehold.EventThrottled {
						throttled++
					}
				}
				c, wire := w.Client(cfg)
				refusals := 0
				wire.SetFault(func(r *lab.Request) (*http.Response, error) {
					if refusals++; refusals <= 5 {
						return lab.Refusal(400, code), nil
					}
					return r.Send()
				})
				w.Release(w.Acquire(c, "job"))
				if throttled != 5 {
					t.Errorf("%d events", throttled)
				}
			})
		})
	}
}

func TestDurationWithoutUnitIsRejectedWithSuggestedUnit(t *testing.T) {
	db := localdynamo.New().Client()
	for _, tc := range []struct {
		name   string
		change func(*leasehold.Config)
		says   []string
	}{
		{"renewals", func(c *leasehold.Config) { c.RenewEvery = 5 }, []string{"RenewEvery is 5ns", "5 * time.Second"}},
		{"the longest pause", func(c *leasehold.Config) { c.PollMax = 1 }, []string{"PollMax is 1ns", "1 * time.Second"}},
		{"the margin", func(c *leasehold.Config) { c.Margin = 2 }, []string{"Margin is 2ns", "2 * time.Second"}},
		{"milliseconds", func(c *leasehold.Config) { c.Margin = 2000 }, []string{"Margin is 2µs", "2000 * time.Millisecond"}},
		{"the lease", func(c *leasehold.Config) { c.Lease = 20 }, []string{"Lease is 20ns", "20 * time.Second", "at least 1s"}},
		{"the retention", func(c *leasehold.Config) { c.Retention = 86400 }, []string{"Retention is 86.4µs"}},
		{"the grace", func(c *leasehold.Config) { c.ReleaseGrace = 2 }, []string{"ReleaseGrace is 2ns"}},
		{"a margin a hair below the lease", func(c *leasehold.Config) { c.Margin = 20*time.Second - 1 }, []string{"Margin is 19.999999999s", "leaves 1ns", "at least 500ms"}},
		{"all at once", func(c *leasehold.Config) {
			c.RenewEvery, c.PollMax, c.Margin, c.ReleaseGrace = 5, 1, 30*time.Second, -1
		},
			[]string{"RenewEvery is 5ns", "PollMax is 1ns", "Margin is 30s", "ReleaseGrace is -1ns"}},
		{"two negative ones", func(c *leasehold.Config) { c.RenewEvery, c.Margin = -1, -1 }, []string{"RenewEvery is -1ns", "Margin is -1ns"}},
	} {
		cfg := lab.Config()
		tc.change(&cfg)
		_, err := leasehold.New(db, cfg)
		for _, says := range tc.says {
			if err == nil || !strings.Contains(err.Error(), says) {
				t.Errorf("%s: %q is missing in: %v", tc.name, says, err)
			}
		}
	}
	for name, change := range map[string]func(*leasehold.Config){
		"negative lease":            func(c *leasehold.Config) { c.Lease = -time.Second },
		"negative lease and margin": func(c *leasehold.Config) { c.Lease, c.Margin = -time.Second, time.Second },
		"negative lease and skew":   func(c *leasehold.Config) { c.Lease, c.MaxSkew = -time.Second, time.Second },
		"no trust left":             func(c *leasehold.Config) { c.Lease, c.Margin = 2*time.Second, 1900*time.Millisecond },
	} {
		cfg := lab.Config()
		change(&cfg)
		_, err := leasehold.New(db, cfg)
		if n := strings.Count(fmt.Sprint(err), "leasehold: config: "); n != 1 {
			t.Errorf("%s: %d problems: %v", name, n, err)
		}
	}
	for name, change := range map[string]func(*leasehold.Config){
		"a millisecond": func(c *leasehold.Config) { c.PollMax = time.Millisecond },
		"a short lease": func(c *leasehold.Config) { c.Lease = time.Second },
		"for ever":      func(c *leasehold.Config) { c.Retention = leasehold.Forever },
	} {
		cfg := lab.Config()
		change(&cfg)
		if _, err := leasehold.New(db, cfg); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestClientLogsIfIdleConnectionLimitIsTooLow(t *testing.T) {
	for name, tc := range map[string]struct {
		idle, locks int
		shared      bool
		warns       int
	}{
		"ten for each":                       {10, 109, false, 0},
		"more than ten for each":             {10, 300, false, 1},
		"more, with a shared lease":          {10, 300, true, 0},
		"as many as renewals may be at once": {128, 1300, false, 0},
	} {
		t.Run(name, func(t *testing.T) {
			lab.InBubble(t, func(t *testing.T, w *lab.World) {
				var book logBook
				cfg := lab.Config()
				cfg.SharedLease, cfg.Logger = tc.shared, slog.New(slog.NewTextHandler(&book, nil))
				pool := &pool{w.Wire(), tc.idle}
				c := w.ClientOf(w.Connect(nil, func(o *dynamodb.Options) { o.HTTPClient = pool }), cfg)
				w.AcquireMany(c, "job", tc.locks)
				if n := strings.Count(strings.Join(book.lines(), "\n"), "MaxIdleConnsPerHost="+fmt.Sprint(tc.idle)); n != tc.warns {
					t.Errorf("%d warnings", n)
				}
				if err := c.Close(t.Context()); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// pool is a wire that looks like the SDK's own HTTP client.
type pool struct {
	*lab.Wire
	idle int
}

func (p *pool) GetTransport() *http.Transport {
	return awshttp.NewBuildableClient().WithTransportOptions(func(tr *http.Transport) { tr.MaxIdleConnsPerHost = p.idle }).GetTransport()
}

func TestSharedLeaseRejectsUnsupportedOptions(t *testing.T) {
	cfg := lab.SharedConfig()
	cfg.Layout = layout.AWSLabs{}
	if _, err := leasehold.New(lab.New(t).DB, cfg); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("awslabs: %v", err)
	}
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, wire := w.Client(lab.SharedConfig())
		for _, o := range []leasehold.AcquireOption{leasehold.WithLease(time.Minute), leasehold.WithoutRenewal()} {
			if _, err := c.Acquire(t.Context(), "job", o); !errors.Is(err, errors.ErrUnsupported) {
				t.Errorf("%T: %v", o, err)
			}
		}
		if sent := wire.Sent(); len(sent) != 0 {
			t.Errorf("%d requests for options that cannot be had", len(sent))
		}
		if _, err := w.Acquire(c, "job").Detach(); !errors.Is(err, errors.ErrUnsupported) {
			t.Errorf("Detach: %v", err)
		}
		_ = c.Close(t.Context())
	})
}

func TestRetentionIsRejectedIfReleasedRecordsCannotExpire(t *testing.T) {
	for _, l := range []layout.Layout{layout.AWSLabs{}, layout.Dynamolock{}, layout.PythonDynamoDBLock{}, layout.DynamoDLM{}} {
		cfg := lab.ConfigOf("locks", l)
		cfg.Retention = time.Hour
		var unsupported *leasehold.UnsupportedError
		if _, err := leasehold.New(lab.New(t).DB, cfg); !errors.As(err, &unsupported) || *unsupported != (leasehold.UnsupportedError{Table: "locks", Layout: l.Name(), Feature: "Retention"}) {
			t.Errorf("%s: %v", l.Name(), err)
		}
	}
}
