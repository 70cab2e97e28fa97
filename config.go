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

	"github.com/leasehold-go/leasehold/internal/attempts"
	"github.com/leasehold-go/leasehold/internal/lease"
	"github.com/leasehold-go/leasehold/internal/protocol"
	"github.com/leasehold-go/leasehold/layout"
)

// DB is the part of DynamoDB that a Client uses. *dynamodb.Client implements it. So does
// any wrapper with the SDK's signatures that is safe for concurrent use, such as one for
// DAX or tracing. DB never gets new methods.
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

// Forever is a Config.Retention: TTL then never deletes released records.
const Forever time.Duration = -1

// Config configures a Client. Zero means the default in every field but Table.
type Config struct {
	// Table is the lock table's name or ARN. Required.
	Table string

	// Layout is the format of the records. Default layout.Native{}.
	Layout layout.Layout

	// Owner names this client in its records, for people. At most 255 bytes. Default
	// host/pid. A random suffix is always added, so no two clients have the same owner.
	Owner string

	// Lease is how long a key stays held after its last grant or renewal, and so how long a
	// dead holder blocks the key. At least 1 s. Default 20 s.
	Lease time.Duration

	// RenewEvery is the time between renewals, at most a third of Lease - Margin - MaxSkew.
	// Default Lease/4 (5 s), but never more than that third. A failed renewal is retried while
	// the lock is trusted. Up to 128 renewals are in flight: with hundreds of locks, set
	// MaxIdleConnsPerHost of the SDK's HTTP client (default 10) to 128.
	RenewEvery time.Duration

	// Margin is the time from when a holder stops trusting its lock until the lease expires. It covers
	// the drift of two clocks within a lease, and the time that work needs to stop. Default Lease/10
	// (2 s). For a shorter lease of WithLease or of a hand-over (unless Margin is set) it shrinks, too.
	Margin time.Duration

	// MaxSkew is the largest error that this machine's wall clock can have; "leasehold doctor"
	// measures the error. If holder and waiter set MaxSkew, the waiter takes over once its clock is
	// MaxSkew past the lease's end. It need not watch the record for the length of a lease. In return,
	// a holder stops trusting its lock earlier, by MaxSkew. If a clock is wrong by more, two clients
	// may hold one lock: use tokens or Commit. Native layout only; layouts with an expiry time have a
	// MaxSkew of their own. Default 0: waiters ignore wall clocks.
	MaxSkew time.Duration

	// PollMax is the largest mean pause between two reads by a waiter without a queue: in a layout
	// without queues, or for a while after a queued waiter has died. The mean grows with the age of
	// the grant, from 25 ms. Each pause differs from it by up to half, at random. Default 500 ms.
	PollMax time.Duration

	// DeleteOnRelease deletes the record on release. By default the record is kept and marked
	// released, if the layout can: its data stays, and tokens continue to grow. With Once or Every
	// the record is always kept, because it contains the mark that the work is done. A later lock
	// of the key without Once or Every deletes the record and the mark on release.
	DeleteOnRelease bool

	// Retention is how long a released record is kept before DynamoDB's TTL may delete it.
	// Default 7 days, and Forever for a record with data or attributes. A record that may
	// have the mark of Once or Every is always kept. Not allowed with DeleteOnRelease.
	Retention time.Duration

	// ReleaseGrace is how long a release, Do and Close may continue after their context has
	// ended. Default 2 s. A release with MarkDone may take until the lease has ended.
	ReleaseGrace time.Duration

	// SharedLease renews one record, the session, for all locks of this client, instead of
	// one record per lock: meant for thousands of locks. Set it on every client of a table
	// or on none. Native layout only. It excludes WithLease, WithoutRenewal and Detach.
	//
	// Libraries that do not know sessions see only each lock's own record. So each lock's record
	// also has a lease of its own, of one hour, and is renewed every twenty minutes. Close frees all
	// locks by one write to the session. If a request of a cancelled Acquire reaches DynamoDB late,
	// the key of that Acquire may be blocked, for two minutes at most.
	SharedLease bool

	// Logger receives lost locks and failing renewals as Warn, renewals that succeed again
	// as Info, and all events as Debug. Default slog.Default();
	// slog.New(slog.DiscardHandler) is silent.
	Logger *slog.Logger

	// OnEvent is called for every event, on the goroutine where it happens, also concurrently. The
	// context has the values of the call's context; for a renewal, loss or release, of Acquire's.
	// OnEvent must neither block nor release the event's lock: in EventReleased, that would deadlock.
	OnEvent func(context.Context, Event)
}

const (
	minLease = time.Second

	// pollMin is the shortest mean pause between two reads by a waiter.
	pollMin = 25 * time.Millisecond

	// mostRenewals is the largest number of renewals in flight at any time. It also limits
	// the releases that Close has in flight.
	mostRenewals = 128
)

// complete fills in defaults and reports every problem of cfg in one error.
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
	if len(cfg.Owner) > protocol.LongestOwner {
		bad("Owner has %d bytes: at most %d", len(cfg.Owner), protocol.LongestOwner)
	}
	for _, d := range []struct {
		field string
		value time.Duration
	}{
		{"Lease", cfg.Lease}, {"RenewEvery", cfg.RenewEvery}, {"Margin", cfg.Margin},
		{"MaxSkew", cfg.MaxSkew}, {"PollMax", cfg.PollMax}, {"Retention", cfg.Retention}, {"ReleaseGrace", cfg.ReleaseGrace},
	} {
		switch {
		case d.value > 0 && d.value < time.Millisecond:
			bad("%s is %v: a number without its unit is nanoseconds: %s?", d.field, d.value, withUnit(d.value))
		case d.value < 0 && d.field != "Lease" && d.field != "Retention": // Lease and Retention are checked below
			bad("%s is %v: negative", d.field, d.value)
		}
	}
	cfg.Lease = cmp.Or(cfg.Lease, protocol.DefaultLease)
	skew := proto.Skew()
	cfg.Margin = cmp.Or(cfg.Margin, lease.Usual(cfg.Lease, skew).Margin)
	trust := lease.Timing{Lease: cfg.Lease, Margin: cfg.Margin, Skew: skew}.Trust()
	cfg.RenewEvery = cmp.Or(cfg.RenewEvery, min(cfg.Lease/4, trust/3))
	switch {
	case cfg.Lease < minLease:
		bad("Lease is %v: at least %v", cfg.Lease, minLease)
	case cfg.Margin >= cfg.Lease:
		bad("Margin is %v: it must be below Lease, %v", cfg.Margin, cfg.Lease)
	case skew > 0 && trust < lease.ShortestTrust:
		bad("Lease is %v: Margin, %v, and MaxSkew, %v, leave %v of it to be trusted: at least %v",
			cfg.Lease, cfg.Margin, skew, trust, lease.ShortestTrust)
	case trust < lease.ShortestTrust:
		bad("Margin is %v: it leaves %v of Lease, %v, to be trusted: at least %v", cfg.Margin, trust, cfg.Lease, lease.ShortestTrust)
	case cfg.RenewEvery > trust/3:
		bad("RenewEvery is %v: at most a third of Lease - Margin - MaxSkew, %v", cfg.RenewEvery, trust/3)
	}
	cfg.PollMax = cmp.Or(cfg.PollMax, 500*time.Millisecond)
	if cfg.Retention < 0 && cfg.Retention != Forever {
		bad("Retention is %v: negative, and not Forever", cfg.Retention)
	}
	if cfg.DeleteOnRelease && cfg.Retention != 0 {
		bad("Retention is %v, and DeleteOnRelease keeps no record for it: set one of them", cfg.Retention)
	}
	if caps := cfg.Layout.Capabilities(); cfg.Retention != 0 && (!caps.KeepOnRelease || !caps.TTL) {
		problems = append(problems, cfg.unsupported("Retention"))
	}
	cfg.ReleaseGrace = cmp.Or(cfg.ReleaseGrace, 2*time.Second)
	if cfg.DeleteOnRelease && !cfg.Layout.Capabilities().DeleteOnRelease {
		problems = append(problems, cfg.unsupported("DeleteOnRelease"))
	}
	if _, ok := proto.(protocol.Native); cfg.SharedLease && !ok {
		problems = append(problems, cfg.unsupported("SharedLease"))
	}
	cfg.Logger = cmp.Or(cfg.Logger, slog.Default())
	return cfg, errors.Join(problems...)
}

// maxSkewProblem returns the error, with advice, for a MaxSkew that the layout does not
// support.
func (cfg *Config) maxSkewProblem() error {
	if cfg.Layout.Capabilities().Expiry == layout.WallClock {
		return cfg.unsupported("Config.MaxSkew: set that of the layout")
	}
	return cfg.unsupported("Config.MaxSkew: leave it out, and watch a dead holder for one lease, or use layout native")
}

// throughOutage reports whether the layout lets holders trust their locks past the lease
// while DynamoDB is unavailable.
func throughOutage(l layout.Layout) bool {
	java, ok := l.(layout.AWSLabs)
	return ok && java.HoldThroughOutage
}

// withUnit returns Go code for d with the unit that the user probably forgot. For example, it
// returns "20 * time.Second" for a plain 20, which Go reads as 20 nanoseconds.
func withUnit(d time.Duration) string {
	unit := "time.Second"
	if d >= 1000 {
		unit = "time.Millisecond"
	}
	return fmt.Sprintf("%d * %s", d.Nanoseconds(), unit)
}

// checkDB returns an error if db can never answer a request. It refuses several Regions if the
// layout lets holders keep locks through an outage, because another Region could grant a lock that
// is still held.
func checkDB(db DB, l layout.Layout) error {
	if sdk, ok := db.(*dynamodb.Client); db == nil || ok && sdk == nil {
		return errors.New("leasehold: config: the DynamoDB client is nil: pass dynamodb.NewFromConfig(cfg)")
	}
	if _, several := db.(attempts.Regions); several && throughOutage(l) {
		return errors.New("leasehold: config: HoldThroughOutage of the layout, and other Regions grant during an outage of one: leave it out")
	}
	return nil
}

// locksPerConnection is the number of locks for which one idle connection is enough. If there are
// more locks per connection, connectionsCheck logs a warning. The number is low because the client
// renews all its locks at once after a pause of the process.
const locksPerConnection = 10

// idleConnections returns the number of idle connections that the HTTP client of db keeps.
// It returns math.MaxInt if the number is unknown.
func idleConnections(db DB) int {
	if sdk, ok := db.(interface{ Options() dynamodb.Options }); ok {
		if pool, ok := sdk.Options().HTTPClient.(interface{ GetTransport() *http.Transport }); ok {
			return pool.GetTransport().MaxIdleConnsPerHost
		}
	}
	return math.MaxInt
}

// connectionsCheck returns a function that warns, once, if the SDK's HTTP client keeps too few idle
// connections for the given number of locks. The HTTP client closes connections beyond
// MaxIdleConnsPerHost after their requests. The next renewals then wait for new connections.
func connectionsCheck(db DB, log *slog.Logger) func(locks int) {
	idle := idleConnections(db)
	var said sync.Once
	return func(locks int) {
		if idle >= mostRenewals || locks/locksPerConnection <= idle {
			return
		}
		said.Do(func() {
			log.Warn("leasehold: the HTTP client keeps few idle connections for so many locks: raise MaxIdleConnsPerHost",
				"MaxIdleConnsPerHost", idle, "renewals", mostRenewals, "locks", locks)
		})
	}
}
