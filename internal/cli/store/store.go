package store

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/attempts"
	"github.com/leasehold-go/leasehold/internal/cli/failure"
	"github.com/leasehold-go/leasehold/internal/cli/requests"
	"github.com/leasehold-go/leasehold/internal/holders"
	"github.com/leasehold-go/leasehold/internal/protocol"
	"github.com/leasehold-go/leasehold/localdynamo"
	"github.com/leasehold-go/leasehold/regions"
	"github.com/leasehold-go/leasehold/table"
)

// Store is an open lock table, in DynamoDB or in a local file.
type Store struct {
	Target
	Home    *dynamodb.Client // client for requests about the table itself; requests about records use the method Requests
	Created bool             // true if Open created the table in the file of a local store

	Health  requests.Health                      // records which requests were answered, and when
	Trouble *requests.Telling                    // reports to the user that requests fail
	Used    func() (answered int, reads float64) // returns how many requests have got a reply and how many read units they consumed; may be nil

	failover []string    // Regions in --failover
	regions  *regions.DB // client for several Regions; nil without --failover, and before the first call of Requests

	closing []func()
}

// Opening contains the options of Open, and functions that Open calls.
type Opening struct {
	Granted   string // table of the grant to renew or release; otherwise empty
	Make      bool   // true for commands that acquire: create the file of a local store if it does not exist
	AnyLayout bool   // true for commands that check or create tables: accept a table of another layout
	AsItIs    bool   // if true, create nothing in a local store: neither the file nor the table
	Flags     string // flags that choose the store, for commands that messages suggest

	Wait time.Duration // limits the wait until another process unlocks a local store's file; zero means ten seconds, Forever no limit

	MakeFile func(file string) error             // called if Make is true, to create the file that the user named; calls Settings.MakeFile
	Known    func(*Store)                        // called when it is known which store is used, before the first request
	Requests func(*Store) func(requests.Request) // returns a function that is called after each request; nil if not needed
}

// Forever is the value of Opening.Wait for a wait without a limit.
const Forever time.Duration = -1

// usualWait is how long Open waits by default until another process unlocks a local store's file.
// It equals the limit for a reply from DynamoDB.
const usualWait = 10 * time.Second

// Open opens the lock table that settings choose. It returns an error if a local store's table has
// another layout (unless o.AnyLayout), or the named file does not exist (unless o.Make). It does
// not simply create the file, because a mistyped name would then look like a store without held
// keys.
func Open(ctx context.Context, settings *Settings, o Opening) (*Store, error) {
	r, err := settings.Records()
	if err != nil {
		return nil, err
	}
	p, err := settings.Place(o.Granted)
	if err != nil {
		return nil, err
	}
	if _, err := TableName(p.Table); err != nil {
		return nil, err
	}
	s := &Store{Target: Target{Place: p, Records: r}}
	if p.File != "" {
		err = s.openFile(ctx, settings, o)
	} else {
		err = s.openAWS(ctx, settings, o)
	}
	if err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

func (s *Store) openFile(ctx context.Context, settings *Settings, o Opening) error {
	p := s.Place
	switch {
	case missing(p.File) && (o.AsItIs || !o.Make && !p.Unnamed):
		return failure.Misusef("no store at %s: check --file and LEASEHOLD_FILE, or make one: leasehold table create%s", p.File, o.Flags)
	case o.Make && !p.Unnamed:
		if err := o.MakeFile(p.File); err != nil {
			return err
		}
	}
	s.Location = settings.Tilde(p.File)
	o.Known(s)
	if o.Wait != Forever {
		within, cancel := context.WithTimeout(ctx, cmp.Or(o.Wait, usualWait))
		defer cancel()
		ctx = within
	}
	waits := s.Health.Begin() // Health reports this wait for another process that keeps the file locked
	bolt, err := settings.OpenFile(ctx, p.File)
	waits.End()
	if err != nil {
		return err
	}
	engine := localdynamo.New(localdynamo.WithStore(bolt))
	s.OnClose(func() { _ = engine.Close() })
	s.Home = engine.Client(s.watch(o).Client)
	if o.AsItIs {
		return nil
	}
	return s.createTable(ctx, o.AnyLayout)
}

// createTable creates the table in a local store, unless it exists. It returns an error if a table
// of another layout exists and anyLayout is false.
func (s *Store) createTable(ctx context.Context, anyLayout bool) error {
	spec := table.Spec{Name: s.Table, Layout: s.Layout}
	problems, err := table.Check(ctx, s.Home, spec)
	if err == nil && len(problems) == 0 {
		return nil
	}
	for _, p := range problems {
		switch {
		case p.Fatal && anyLayout:
			return nil
		case p.Fatal:
			return failure.Misusef("%s does not fit: %s", s.Location, ByFlags(p.What))
		}
	}
	s.Created = errors.Is(err, leasehold.ErrTableNotFound)
	return table.Create(ctx, s.Home, spec)
}

// OnClose registers a function for Close. Close calls the registered functions in reverse
// order.
func (s *Store) OnClose(end func()) { s.closing = append(s.closing, end) }

// Close calls the functions registered with OnClose. They close lock clients and the file
// of a local store.
func (s *Store) Close() {
	for _, end := range slices.Backward(s.closing) {
		end()
	}
}

// watch returns the requests.Watch for the store: it updates s.Health and calls o.Requests.
func (s *Store) watch(o Opening) requests.Watch {
	w := requests.Watch{Health: &s.Health}
	if o.Requests != nil {
		w.Units, w.Each = true, o.Requests(s)
	}
	return w
}

// Client returns a new lock client for the table. Closing the store does not close this
// client.
func (s *Store) Client(cfg leasehold.Config) (*leasehold.Client, error) {
	cfg.Table, cfg.Layout, cfg.MaxSkew, cfg.ReleaseGrace = s.Table, s.Layout, s.MaxSkew, closeTimeout
	// A caller that sets no lease only reads, or resumes a grant, which has its own lease. Set a
	// lease nevertheless, because the default may be too short for MaxSkew.
	if cfg.Lease == 0 {
		cfg.Lease = max(protocol.DefaultLease, s.ShortestLease())
	}
	// leasehold prints events and errors itself, so the client needs no log.
	cfg.Logger = slog.New(slog.DiscardHandler)
	locks, err := leasehold.New(s.Requests(), cfg)
	if err != nil {
		return nil, failure.Misusef("%s", strings.ReplaceAll(err.Error(), "leasehold: config: ", ""))
	}
	return locks, nil
}

// closeTimeout limits how long leasehold waits for requests in flight before it exits.
const closeTimeout = time.Second

// CloseLocks closes a lock client, and waits up to closeTimeout for its requests in flight.
func CloseLocks(locks *leasehold.Client) {
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	_ = locks.Close(ctx) // error ignored: each lock was released before, or was reported as lost
}

// Table is an open lock table together with a lock client for it.
type Table struct {
	*Store
	Locks *leasehold.Client
}

// WithLocks returns the store with a new lock client. Close of the store also closes the
// client.
func (s *Store) WithLocks(cfg leasehold.Config) (*Table, error) {
	locks, err := s.Client(cfg)
	if err != nil {
		return nil, err
	}
	s.OnClose(func() { CloseLocks(locks) })
	return &Table{s, locks}, nil
}

// Observer returns an Observer that finds out whether holders are live. It observes for at most the
// given limit. If the limit is zero, it observes until the state of every holder is known.
func (t *Table) Observer(limit time.Duration) holders.Observer {
	by := holders.New(t.Requests(), t.Table, t.Proto, t.Layout.Capabilities(), t.Locks)
	by.Limit, by.FreeReads = limit, t.File != ""
	return by
}

// Item reads the item with the given key, even if it is not a valid lock record.
func (s *Store) Item(ctx context.Context, key leasehold.Key) (protocol.Item, error) {
	if err := s.Proto.CheckKey(key); err != nil {
		return nil, failure.Misusef("%s: %v", key.String(), err)
	}
	reader := holders.NewReader(s.Requests(), s.Table, s.Proto)
	found, err := reader.ByKey(ctx, []protocol.Key{key})
	switch {
	case err != nil:
		return nil, &leasehold.OpError{Op: "get", Table: s.Table, Key: key, Err: err}
	case found[key] == nil:
		return nil, s.NotFound(key)
	}
	return found[key], nil
}

// Unused returns prefix with random text appended: a key that no real lock has. The
// commands "doctor" and "demo" use such keys.
func Unused(prefix string) string { return prefix + strings.ToLower(rand.Text()[:8]) }

// TrialKey returns a key with which "doctor" or "demo" tries out the table. The parameter "sort" is
// used only if the table has a sort key for which the layout has no default.
func (s *Store) TrialKey(partition, sort string) leasehold.Key {
	key := s.Key(partition, "")
	if s.Proto.Schema().Sort != "" && key.Sort == "" {
		key.Sort = sort
	}
	return key
}

// Delete deletes the records of keys that TrialKey has returned, even if another client
// holds these locks. If a deletion fails, the record stays in the table, but no other lock
// is affected.
func (s *Store) Delete(ctx context.Context, keys ...leasehold.Key) error {
	var failed error
	for _, key := range keys {
		item, err := s.Proto.Key(key)
		if err == nil {
			err = attempts.Patiently(ctx, func(ctx context.Context) error {
				_, err := s.Requests().DeleteItem(ctx, &dynamodb.DeleteItemInput{TableName: aws.String(s.Table), Key: item}, attempts.Once)
				return err
			})
		}
		failed = errors.Join(failed, err)
	}
	return failed
}
