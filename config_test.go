package leasehold_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os/exec"
	"reflect"
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
	"github.com/leasehold-go/leasehold/rwlock"
)

func TestNewRefusesABadConfig(t *testing.T) {
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
		{"a negative poll", func(c *leasehold.Config) { c.PollMin = -1 }, "PollMin"},
		{"polls the wrong way round", func(c *leasehold.Config) { c.PollMin, c.PollMax = time.Second, time.Millisecond }, "PollMax"},
		{"too few renewals at a time", func(c *leasehold.Config) { c.RenewConcurrency = 1 }, "RenewConcurrency"},
		{"a negative retention", func(c *leasehold.Config) { c.Retention = -time.Hour }, "Retention"},
		{"a retention of what is deleted", func(c *leasehold.Config) { c.Retention, c.DeleteOnRelease = time.Hour, true }, "DeleteOnRelease"},
		{"deleted and kept for ever", func(c *leasehold.Config) { c.Retention, c.DeleteOnRelease = leasehold.Forever, true }, "DeleteOnRelease"},
		{"a nil pointer to a layout", func(c *leasehold.Config) { c.Layout = (*layout.Native)(nil) }, "not a pointer"},
		{"a nil pointer to another", func(c *leasehold.Config) { c.Layout = (*layout.DyndbMutex)(nil) }, "not a pointer"},
		{"a pointer to a layout", func(c *leasehold.Config) { c.Layout = &layout.AWSLabs{} }, "not a pointer"},
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
	_, err := leasehold.New(nil, leasehold.Config{Lease: time.Millisecond, PollMin: -1})
	for _, says := range []string{"Table", "Lease", "PollMin", "client is nil"} {
		if err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("the one error lacks %s: %v", says, err)
		}
	}
	if _, err := leasehold.New(db, leasehold.Config{Table: "locks"}); err != nil {
		t.Errorf("the defaults: %v", err)
	}
}

func TestNewTakesWhatIsJustWithinItsLimits(t *testing.T) {
	for name, cfg := range map[string]leasehold.Config{
		"the shortest lease":          {Lease: time.Second},
		"the least trust":             {Lease: time.Second, Margin: 500 * time.Millisecond},
		"the rarest renewals":         {Lease: 20 * time.Second, Margin: 2 * time.Second, RenewEvery: 6 * time.Second},
		"the fewest at a time":        {RenewConcurrency: 16},
		"polls at one pace":           {PollMin: time.Second, PollMax: time.Second},
		"the least trust, by a clock": {Lease: 2700 * time.Millisecond, Margin: 200 * time.Millisecond, Layout: layout.DynamoDLM{}},
	} {
		cfg.Table = "locks"
		if _, err := leasehold.New(localdynamo.New().Client(), cfg); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestNewWarnsOfFewIdleConnections(t *testing.T) {
	for name, tc := range map[string]struct {
		idle, concurrency int
		warns             bool
	}{"more renewals than connections": {10, 64, true}, "enough": {64, 64, false}, "by default": {10, 0, false}} {
		var log bytes.Buffer
		cfg := lab.Config()
		cfg.Logger, cfg.RenewConcurrency = slog.New(slog.NewTextHandler(&log, nil)), tc.concurrency
		pool := awshttp.NewBuildableClient().WithTransportOptions(func(tr *http.Transport) { tr.MaxIdleConnsPerHost = tc.idle })
		if _, err := leasehold.New(dynamodb.New(dynamodb.Options{HTTPClient: pool}), cfg); err != nil {
			t.Fatal(err)
		}
		if got := strings.Contains(log.String(), "MaxIdleConnsPerHost"); got != tc.warns {
			t.Errorf("%s: warned %v", name, got)
		}
	}
}

func TestErrorsOfDynamoDBNameTheTableAndWhatToDo(t *testing.T) {
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

func TestContentionIsNoErrorToAWaiter(t *testing.T) { // dynamolock: it surfaces as one
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

func TestTheLockPackagesImportTheAWSSDKAlone(t *testing.T) {
	out, err := exec.Command("go", "list", "-deps", "-f", "{{if not .Standard}}{{.ImportPath}}{{end}}",
		"github.com/leasehold-go/leasehold", "github.com/leasehold-go/leasehold/layout", "github.com/leasehold-go/leasehold/byname").Output()
	if err != nil {
		t.Fatal(err)
	}
	allowed := []string{
		"github.com/aws/aws-sdk-go-v2", "github.com/aws/smithy-go",
		"github.com/leasehold-go/leasehold/layout", "github.com/leasehold-go/leasehold/internal",
	}
	for _, path := range strings.Fields(string(out)) {
		ok := path == "github.com/leasehold-go/leasehold" || path == "github.com/leasehold-go/leasehold/byname"
		for _, a := range allowed {
			ok = ok || path == a || strings.HasPrefix(path, a+"/")
		}
		if !ok {
			t.Errorf("the lock packages import %s", path)
		}
	}
}

func TestSemaphoresAndReadWriteLocksHaveOneDoorEach(t *testing.T) {
	client, rw := reflect.TypeFor[*leasehold.Client](), reflect.TypeFor[*rwlock.RWLock]()
	for i := range rw.NumMethod() {
		name := rw.Method(i).Name
		if _, ok := client.MethodByName(name); ok {
			t.Errorf("the client has %s, too", name)
		}
	}
	for i := range client.NumMethod() {
		m := client.Method(i)
		for j := range m.Type.NumOut() {
			if _, ok := m.Type.Out(j).MethodByName("Resize"); ok {
				t.Errorf("%s of the client makes semaphores, too", m.Name)
			}
		}
	}
}

func TestANumberWithoutItsUnitIsRefusedWithTheLikelyOne(t *testing.T) {
	db := localdynamo.New().Client()
	for _, tc := range []struct {
		name   string
		change func(*leasehold.Config)
		says   []string
	}{
		{"renewals", func(c *leasehold.Config) { c.RenewEvery = 5 }, []string{"RenewEvery is 5ns", "5 * time.Second"}},
		{"the longest pause", func(c *leasehold.Config) { c.PollMax = 1 }, []string{"PollMax is 1ns", "1 * time.Second"}},
		{"the shortest pause", func(c *leasehold.Config) { c.PollMin = 25 }, []string{"PollMin is 25ns"}},
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
		"a millisecond": func(c *leasehold.Config) { c.PollMin, c.PollMax = time.Millisecond, time.Millisecond },
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

func TestTheIdleConnectionsAreNoticedByTheNumberOfLocks(t *testing.T) {
	for _, shared := range []bool{false, true} {
		lab.InBubble(t, func(t *testing.T, w *lab.World) {
			var book logBook
			cfg := lab.Config()
			cfg.SharedLease, cfg.Logger = shared, slog.New(slog.NewTextHandler(&book, nil))
			pool := &pool{Wire: w.Wire()}
			c := w.ClientOf(w.Connect(nil, func(o *dynamodb.Options) { o.HTTPClient = pool }), cfg)
			for i := range 300 {
				if i == 100 && strings.Contains(strings.Join(book.lines(), ""), "MaxIdleConnsPerHost") {
					t.Error("warned of a hundred locks")
				}
				w.Acquire(c, fmt.Sprint(i))
			}
			if n := bytes.Count([]byte(strings.Join(book.lines(), "\n")), []byte("MaxIdleConnsPerHost=10")); n != 1 && !shared || n != 0 && shared {
				t.Errorf("shared lease %v: %d warnings", shared, n)
			}
			if err := c.Close(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
}

// pool is a wire that looks like the SDK's own HTTP client.
type pool struct{ *lab.Wire }

func (*pool) GetTransport() *http.Transport { return awshttp.NewBuildableClient().GetTransport() }

func TestWhatASharedLeaseCannotDo(t *testing.T) {
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

func TestRetentionIsRefusedWhereNoReleasedRecordCouldExpire(t *testing.T) {
	for _, l := range []layout.Layout{layout.AWSLabs{}, layout.Dynamolock{}, layout.PythonDynamoDBLock{}, layout.DynamoDLM{}} {
		cfg := lab.ConfigOf("locks", l)
		cfg.Retention = time.Hour
		var unsupported *leasehold.UnsupportedError
		if _, err := leasehold.New(lab.New(t).DB, cfg); !errors.As(err, &unsupported) || *unsupported != (leasehold.UnsupportedError{Table: "locks", Layout: l.Name(), Feature: "Retention"}) {
			t.Errorf("%s: %v", l.Name(), err)
		}
	}
}
