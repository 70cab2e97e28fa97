package leasehold

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net/http"
	"os"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/leasehold-go/leasehold/internal/protocol"
	"github.com/leasehold-go/leasehold/layout"
)

// DB is what a Client needs of DynamoDB. *dynamodb.Client has it, and so has
// any wrapper that keeps the SDK's signatures (DAX, tracing, rate limiting).
// DB never grows: what needs another operation looks for it by type assertion.
type DB interface {
	GetItem(context.Context, *dynamodb.GetItemInput, ...func(*dynamodb.Options)) (*dynamodb.GetItemOutput, error)
	BatchGetItem(context.Context, *dynamodb.BatchGetItemInput, ...func(*dynamodb.Options)) (*dynamodb.BatchGetItemOutput, error)
	UpdateItem(context.Context, *dynamodb.UpdateItemInput, ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error)
	DeleteItem(context.Context, *dynamodb.DeleteItemInput, ...func(*dynamodb.Options)) (*dynamodb.DeleteItemOutput, error)
	Query(context.Context, *dynamodb.QueryInput, ...func(*dynamodb.Options)) (*dynamodb.QueryOutput, error)
	Scan(context.Context, *dynamodb.ScanInput, ...func(*dynamodb.Options)) (*dynamodb.ScanOutput, error)
	TransactGetItems(context.Context, *dynamodb.TransactGetItemsInput, ...func(*dynamodb.Options)) (*dynamodb.TransactGetItemsOutput, error)
	TransactWriteItems(context.Context, *dynamodb.TransactWriteItemsInput, ...func(*dynamodb.Options)) (*dynamodb.TransactWriteItemsOutput, error)
}

// Forever as Config.Retention keeps released records until somebody deletes
// them.
const Forever time.Duration = -1

// Config configures a Client. Table is the only field without a default.
type Config struct {
	// Table is the lock table's name or ARN. Required.
	Table string

	// Layout is how records are written. Default layout.Native{}.
	Layout layout.Layout

	// Owner is the name that people see in a record. Default host/pid. A random
	// suffix is always added: some peers copy our token forward into their own
	// grants, and a guard then tells the two apart by the owner alone.
	Owner string

	// Lease is how long a grant or a renewal lasts, and so how long a dead
	// holder blocks the key. At least 1 s. Default 20 s.
	Lease time.Duration

	// RenewEvery is the time between renewals. At most a third of Lease - Margin.
	// Default Lease/4 (5 s): room for four more attempts before trust ends.
	RenewEvery time.Duration

	// Margin is how much earlier than its lease a holder stops trusting it: it
	// covers clock rate error and the time work needs to stop. Default Lease/10 (2 s).
	Margin time.Duration

	// PollMin and PollMax bound the mean of the pause between two looks of a
	// waiter, which grows with the age of the grant it watches: a lock that
	// changes hands often is followed closely, one held for long cheaply. The
	// pause itself is uniform between nothing and twice that: the longest is
	// twice PollMax. Defaults 25 ms and 500 ms.
	PollMin, PollMax time.Duration

	// LocalHandOver is how many times in a row a release may pass the key to
	// the next waiter of this client before other processes get their turn.
	// Default 16; negative: never.
	LocalHandOver int

	// RenewConcurrency is the most renewals in flight, at least 16. Default
	// 128. The lock with the least trust left goes first. A renewal that hangs
	// for a quarter of its deadline lets another be sent beside it. The SDK's
	// HTTP client keeps 10 idle connections: with hundreds of locks, raise its
	// MaxIdleConnsPerHost to this number. A warning says so once there are more
	// than ten locks to a connection.
	RenewConcurrency int

	// DeleteOnRelease deletes the record on release. By default it stays,
	// marked released, where the layout can keep it: tokens and data live on.
	DeleteOnRelease bool

	// Retention is how long after its release DynamoDB's TTL may delete a
	// record. Default 7 days for a record without data or attributes, Forever
	// for one with; a value set here counts for both.
	Retention time.Duration

	// ReleaseGrace is what Release, Do and Close may still take when their
	// context has ended already. Default 2 s.
	ReleaseGrace time.Duration

	// SharedLease renews one record for all locks of this client instead of one
	// each: for thousands of locks. Native layout only; all or none of a fleet.
	// A lock is trusted while that record is renewed, and nobody takes it over
	// before. Its own record says an hour, for peers that know no shared leases,
	// and is renewed every twenty minutes: so late does a holder learn of a
	// Break. A request that arrives after its Acquire was given up may block a
	// key until this client has looked, seconds later or, if the request was
	// late by minutes, two minutes. WithLease, WithoutRenewal and Detach are not
	// for it.
	SharedLease bool

	// HoldThroughOutage keeps lock contexts alive past the lease while every
	// reply is a 5xx or throttling. It gives up promise 2: where DynamoDB is
	// out for this process alone, another may be granted the lock meanwhile.
	// Commit stays safe.
	HoldThroughOutage bool

	// Logger gets each lost lock and, summed up once in ten seconds, failing
	// renewals (Warn), that they succeed again (Info), the rest at Debug.
	// Default slog.Default(); slog.New(slog.DiscardHandler) is silence.
	Logger *slog.Logger

	// OnEvent is called for every event, on the goroutine it happens on, with
	// no mutex held. It must not block: a Release of the lock whose release it
	// is told of would wait for itself. The context is the caller's.
	OnEvent func(context.Context, Event)
}

const (
	minLease         = time.Second
	minRenewals      = 16
	defaultRetention = 7 * 24 * time.Hour
)

// complete fills in defaults and reports every problem in one error. proto is
// the layout's, nil if that has problems of its own.
func (cfg Config) complete(proto protocol.Protocol) (Config, error) {
	var problems []error
	bad := func(format string, args ...any) {
		problems = append(problems, fmt.Errorf("leasehold: config: "+format, args...))
	}

	if cfg.Table == "" {
		bad("Table is empty: name the lock table")
	}
	if cfg.Owner == "" {
		host, _ := os.Hostname()
		cfg.Owner = fmt.Sprintf("%s/%d", cmp.Or(host, "unknown"), os.Getpid())
	}
	for _, d := range []struct {
		field string
		value time.Duration
	}{
		{"Lease", cfg.Lease}, {"RenewEvery", cfg.RenewEvery}, {"Margin", cfg.Margin}, {"PollMin", cfg.PollMin},
		{"PollMax", cfg.PollMax}, {"Retention", cfg.Retention}, {"ReleaseGrace", cfg.ReleaseGrace},
	} {
		if d.value > 0 && d.value < time.Millisecond {
			bad("%s is %v: a number without its unit is nanoseconds: %s?", d.field, d.value, withUnit(d.value))
		}
	}
	cfg.Lease = cmp.Or(cfg.Lease, 20*time.Second)
	if cfg.Lease < minLease {
		bad("Lease is %v: at least %v", cfg.Lease, minLease)
	}
	cfg.Margin = cmp.Or(cfg.Margin, cfg.Lease/10)
	var skew time.Duration
	if proto != nil {
		skew = proto.Skew()
	}
	trust := cfg.Lease - cfg.Margin - skew
	every := cfg.RenewEvery
	cfg.RenewEvery = cmp.Or(cfg.RenewEvery, min(cfg.Lease/4, trust/3))
	trusted := false
	switch {
	case cfg.Margin < 0:
		bad("Margin is %v: negative", cfg.Margin)
	case cfg.Margin >= cfg.Lease:
		bad("Margin is %v: it must be below Lease, %v", cfg.Margin, cfg.Lease)
	case skew > 0 && trust < minLease/2:
		bad("Lease is %v: Margin, %v, and the layout's clock skew, %v, leave %v of it to be trusted: at least %v",
			cfg.Lease, cfg.Margin, skew, trust, minLease/2)
	case cfg.Lease >= minLease && trust < minLease/2:
		bad("Margin is %v: it leaves %v of Lease, %v, to be trusted: at least %v", cfg.Margin, trust, cfg.Lease, minLease/2)
	default:
		trusted = true
	}
	switch {
	case every < 0:
		bad("RenewEvery is %v: negative", cfg.RenewEvery)
	case trusted && cfg.RenewEvery > trust/3:
		bad("RenewEvery is %v: at most a third of Lease - Margin - clock skew, %v", cfg.RenewEvery, trust/3)
	}
	if cfg.PollMin < 0 || cfg.PollMax < 0 {
		bad("PollMin is %v and PollMax %v: neither may be negative", cfg.PollMin, cfg.PollMax)
	}
	cfg.PollMin = cmp.Or(cfg.PollMin, min(25*time.Millisecond, cmp.Or(cfg.PollMax, time.Hour)))
	cfg.PollMax = cmp.Or(cfg.PollMax, max(500*time.Millisecond, cfg.PollMin))
	if cfg.PollMin > cfg.PollMax {
		bad("PollMin is %v: above PollMax, %v", cfg.PollMin, cfg.PollMax)
	}
	cfg.LocalHandOver = cmp.Or(cfg.LocalHandOver, 16)
	cfg.RenewConcurrency = cmp.Or(cfg.RenewConcurrency, 128)
	if cfg.RenewConcurrency < minRenewals {
		bad("RenewConcurrency is %d: at least %d, or renewals wait for each other", cfg.RenewConcurrency, minRenewals)
	}
	if cfg.Retention < 0 && cfg.Retention != Forever {
		bad("Retention is %v: negative, and not Forever", cfg.Retention)
	}
	if caps := cfg.Layout.Capabilities(); cfg.Retention != 0 && (!caps.KeepOnRelease || !caps.TTL) {
		problems = append(problems, cfg.unsupported("Retention"))
	}
	cfg.ReleaseGrace = cmp.Or(cfg.ReleaseGrace, 2*time.Second)
	if cfg.ReleaseGrace < 0 {
		bad("ReleaseGrace is %v: negative", cfg.ReleaseGrace)
	}
	if cfg.DeleteOnRelease && !cfg.Layout.Capabilities().DeleteOnRelease {
		problems = append(problems, cfg.unsupported("DeleteOnRelease"))
	}
	if _, ok := proto.(protocol.Sharing); cfg.SharedLease && proto != nil && !ok {
		problems = append(problems, cfg.unsupported("SharedLease"))
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.Default()
	}
	return cfg, errors.Join(problems...)
}

// withUnit is what was probably meant by a number of nanoseconds.
func withUnit(d time.Duration) string {
	unit := "time.Second"
	if d >= 1000 {
		unit = "time.Millisecond"
	}
	return fmt.Sprintf("%d * %s", d.Nanoseconds(), unit)
}

// checkDB refuses a client that could never answer.
func checkDB(db DB) error {
	if sdk, ok := db.(*dynamodb.Client); db == nil || ok && sdk == nil {
		return errors.New("leasehold: config: the DynamoDB client is nil: pass dynamodb.NewFromConfig(cfg)")
	}
	return nil
}

// connections is the idle pool of the SDK's HTTP client: what does not fit it is
// closed after each request, and renewals are slowed down by new connections.
type connections struct {
	idle int // math.MaxInt: not known
	said sync.Once
}

// locksPerConnection is how many locks one idle connection is enough for: after
// a pause all of them are renewed at once.
const locksPerConnection = 10

func idleConnections(db DB) int {
	if sdk, ok := db.(interface{ Options() dynamodb.Options }); ok {
		if pool, ok := sdk.Options().HTTPClient.(interface{ GetTransport() *http.Transport }); ok {
			return pool.GetTransport().MaxIdleConnsPerHost
		}
	}
	return math.MaxInt
}

// check warns, once, if there are fewer than renewals at a time: of those that
// Config asks for, or, with locks, once there are that many of these.
func (c *connections) check(renewals, locks int, log *slog.Logger) {
	if c.idle >= renewals {
		return
	}
	c.said.Do(func() {
		log.Warn("leasehold: the HTTP client keeps fewer idle connections than RenewConcurrency: raise MaxIdleConnsPerHost",
			"MaxIdleConnsPerHost", c.idle, "RenewConcurrency", renewals, "locks", locks)
	})
}
