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
	"github.com/leasehold-go/leasehold/internal/cli/wording"
	"github.com/leasehold-go/leasehold/internal/holders"
	"github.com/leasehold-go/leasehold/internal/lease"
	"github.com/leasehold-go/leasehold/internal/protocol"
	"github.com/leasehold-go/leasehold/localdynamo"
	"github.com/leasehold-go/leasehold/regions"
	"github.com/leasehold-go/leasehold/table"
)

// Store is an open lock table.
type Store struct {
	Target
	Home    *dynamodb.Client // client for requests about the table; for requests about its records, see the method Requests
	Created bool             // true if Open created the table of the local store

	Health  requests.Health                      // outcomes of the requests to the store
	Trouble *requests.Telling                    // reports failing requests to the user
	Used    func() (answered int, reads float64) // returns the number of answered requests so far and the read units that they consumed; nil if not needed

	failover []string    // the Regions that --failover names
	regions  *regions.DB // nil before the first call of Requests, and without --failover

	misfit  error // error that says how the table of the local store differs from the expected layout; nil if it does not
	closing []func()
}

// Opening contains the options of Open and the functions that it calls.
type Opening struct {
	Granted   string // the table of a grant, if there is one
	Make      bool   // create a missing file of a local store, for commands that acquire
	AnyLayout bool   // accept another layout, for commands that check or create the table
	AsItIs    bool   // create neither a file nor the table in a local store
	Flags     string // the flags that name the store, for commands in messages

	Wait time.Duration // limit of the wait for a local store's file that another process keeps locked; zero means ten seconds, Forever means no limit

	Unnamed  func(Place)                         // called if no flag and no variable names the store
	Made     func(file string)                   // called after the named file, which did not exist, has been created
	Known    func(*Store)                        // called when it is known where the locks are stored, before the first request
	Requests func(*Store) func(requests.Request) // returns a function that receives each request and its consumption; nil if not needed
}

// Forever is an Opening.Wait without a limit.
const Forever time.Duration = -1

// usualWait is the default limit of the wait for the file of a local store. It equals the
// limit of the wait for a server that does not answer.
const usualWait = 10 * time.Second

// Open opens the lock table that the settings name. It refuses a table of another layout.
// It also refuses a local store that the user has named but whose file is missing. If Open
// created the file instead, a mistyped name would look like a store in which no key is
// held.
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
	if err == nil && !o.AnyLayout {
		err = s.misfit
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
	case p.Unnamed:
		o.Unnamed(p)
	case o.Make:
		made, err := settings.MakeFile(p.File)
		if made {
			o.Made(p.File)
		}
		if err != nil {
			return err
		}
	}
	s.Location = settings.Tilde(p.File)
	o.Known(s)
	open := settings.OpenFile
	if p.Machine {
		open = openMachineStore
	}
	if o.Wait != Forever {
		within, cancel := context.WithTimeout(ctx, cmp.Or(o.Wait, usualWait))
		defer cancel()
		ctx = within
	}
	waits := s.Health.Begin() // records that the command is waiting for another process that uses the file
	bolt, err := open(ctx, p.File)
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
	return s.createTable(ctx)
}

// createTable creates the table of a local store if it does not exist.
func (s *Store) createTable(ctx context.Context) error {
	spec := table.Spec{Name: s.Table, Layout: s.Layout}
	problems, err := table.Check(ctx, s.Home, spec)
	if err == nil && len(problems) == 0 {
		return nil
	}
	for _, p := range problems {
		if p.Fatal {
			s.misfit = failure.Misusef("%s does not fit: %s", s.Location, ByFlags(p.What))
			return nil
		}
	}
	s.Created = errors.Is(err, leasehold.ErrTableNotFound)
	return table.Create(ctx, s.Home, spec)
}

// OnClose adds a function that Close calls. Close calls the function that was added last
// first.
func (s *Store) OnClose(end func()) { s.closing = append(s.closing, end) }

// Close releases the store's resources.
func (s *Store) Close() {
	for _, end := range slices.Backward(s.closing) {
		end()
	}
	s.closing = nil
}

// watch returns the observer of requests to the store.
func (s *Store) watch(o Opening) requests.Watch {
	w := requests.Watch{Health: &s.Health}
	if o.Requests != nil {
		w.Units, w.Each = true, o.Requests(s)
	}
	return w
}

// Client returns a lock client on the table.
func (s *Store) Client(cfg leasehold.Config) (*leasehold.Client, error) {
	cfg.Table, cfg.Layout, cfg.MaxSkew, cfg.ReleaseGrace = s.Table, s.Layout, s.MaxSkew, closeTimeout
	if cfg.Lease == 0 { // the client only reads, or resumes a grant with a lease of its own; choose a default lease that is long enough for any MaxSkew
		cfg.Lease = max(protocol.DefaultLease, lease.Shortest(s.Proto.Skew()))
	}
	// The command itself reports events and errors.
	cfg.Logger = slog.New(slog.DiscardHandler)
	locks, err := leasehold.New(s.Requests(), cfg)
	if err != nil {
		return nil, failure.Misusef("%s", strings.ReplaceAll(err.Error(), "leasehold: config: ", ""))
	}
	return locks, nil
}

// closeTimeout is the longest time for which an ending command waits for requests in
// flight.
const closeTimeout = time.Second

// CloseLocks closes a lock client.
func CloseLocks(locks *leasehold.Client) {
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	_ = locks.Close(ctx) // the error does not matter: the locks have been released already, or were reported as lost
}

// Table is an open lock table with a lock client.
type Table struct {
	*Store
	Locks *leasehold.Client
}

// WithLocks returns the table with a lock client, which is closed with the store.
func (s *Store) WithLocks(cfg leasehold.Config) (*Table, error) {
	locks, err := s.Client(cfg)
	if err != nil {
		return nil, err
	}
	s.OnClose(func() { CloseLocks(locks) })
	return &Table{s, locks}, nil
}

// Observer returns an observer of holders with a time limit; zero means until every holder
// is known.
func (t *Table) Observer(limit time.Duration) holders.Observer {
	by := holders.New(t.Requests(), t.Table, t.Proto, t.Layout.Capabilities(), t.Locks)
	by.Limit, by.Unpaid = limit, t.File != ""
	return by
}

// Item reads the item of a key, even if the item is not a record of a lock.
func (s *Store) Item(ctx context.Context, key leasehold.Key) (protocol.Item, error) {
	if err := s.Proto.CheckKey(key); err != nil {
		return nil, failure.Misusef("%s: %v", wording.Key(key), err)
	}
	reader := holders.NewReader(s.Requests(), s.Table, s.Proto)
	found, err := reader.ByKey(ctx, []protocol.Key{key})
	switch item := found[key]; {
	case err != nil:
		return nil, &leasehold.OpError{Op: "get", Table: s.Table, Key: key, Err: err}
	case item == nil:
		return nil, s.NotFound(key)
	default:
		return item, nil
	}
}

// Unused appends random text to prefix, so that no real lock has the resulting key. The
// commands that try out a table, doctor and demo, use such keys.
func Unused(prefix string) string { return prefix + strings.ToLower(rand.Text()[:8]) }

// TrialKey returns the key with these parts for a trial of the table. It omits sort if the
// table has no sort key.
func (s *Store) TrialKey(partition, sort string) leasehold.Key {
	key := s.Key(partition, "")
	if s.Proto.Schema().Sort != "" && key.Sort == "" {
		key.Sort = sort
	}
	return key
}

// Delete deletes the records of trial keys, even if another client holds them. If that fails,
// the remaining records do not affect other locks.
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
