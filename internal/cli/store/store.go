package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/cli/misuse"
	"github.com/leasehold-go/leasehold/internal/cli/requests"
	"github.com/leasehold-go/leasehold/internal/cli/wording"
	"github.com/leasehold-go/leasehold/internal/holders"
	"github.com/leasehold-go/leasehold/internal/lease"
	"github.com/leasehold-go/leasehold/internal/protocol"
	"github.com/leasehold-go/leasehold/layout"
	"github.com/leasehold-go/leasehold/localdynamo"
	"github.com/leasehold-go/leasehold/table"
)

// Store is an open lock table.
type Store struct {
	DB       *dynamodb.Client
	Table    string
	Layout   layout.Layout
	Proto    protocol.Protocol // of Layout
	MaxSkew  time.Duration     // by which this machine's clock may be wrong; 0: nobody vouches for it, or the layout has it
	Location string            // region, URL or file, as shown in messages
	File     string            // of a local store; empty: DynamoDB
	AWS      aws.Config        // of DynamoDB
	Created  bool              // the local store's table was created when it was opened

	Health  requests.Health   // of the requests to it
	Trouble *requests.Telling // tells the user that they fail
	Meter   *requests.Meter   // of what they use; nil: they are not counted

	misfit  error // the local store's table has another layout
	closing []func()
}

// Opening is how a store is opened, and who is told of it.
type Opening struct {
	Granted   string // the table of a grant, if there is one
	Make      bool   // for commands that acquire: the file of a local store, if it is missing
	AnyLayout bool   // for commands that check or make the table, which may have another layout
	AsItIs    bool   // nothing is created, neither a file nor the table in a local store
	Flags     string // those that name the store, for a command to type

	Wait time.Duration // for a local store's file that another process keeps locked; 0 means ten seconds, Forever no limit

	Unnamed  func(Place)                         // no flag and no variable names the store
	Made     func(file string)                   // the named file was missing
	Known    func(*Store)                        // its place is known: requests follow
	Requests func(*Store) func(requests.Request) // is told of each request, and what it consumed; nil: nobody is
}

// Forever is an Opening.Wait without a limit.
const Forever time.Duration = -1

// usualWait is how long a command waits for the file of a local store if it is not told to
// wait longer: as long as for a server that does not answer.
const usualWait = 10 * time.Second

// limited returns ctx with the limit of the wait.
func (o Opening) limited(ctx context.Context) (context.Context, context.CancelFunc) {
	if o.Wait == Forever {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, cmp.Or(o.Wait, usualWait))
}

// Open opens the lock table that the settings name. It refuses a table of another
// layout, and the file of a local store that is named but missing: a mistyped name must
// not look as if nothing were held.
func Open(ctx context.Context, settings *Settings, o Opening) (*Store, error) {
	l, proto, skew, err := settings.vouched()
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
	s := &Store{Table: p.Table, Layout: l, Proto: proto, MaxSkew: skew}
	if p.File != "" {
		err = s.openFile(ctx, settings, p, o)
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

func (s *Store) openFile(ctx context.Context, settings *Settings, p Place, o Opening) error {
	switch {
	case missing(p.File) && (o.AsItIs || !o.Make && !p.Unnamed):
		return misuse.Errorf("no store at %s: check --file and LEASEHOLD_FILE, or make one: leasehold table create%s", p.File, o.Flags)
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
	s.File, s.Location = p.File, settings.Tilde(p.File)
	o.Known(s)
	open := settings.OpenFile
	if p.Machine {
		open = openMachineStore
	}
	ctx, cancel := o.limited(ctx)
	defer cancel()
	waits := s.Health.Begin() // for another process that uses the file
	bolt, err := open(ctx, p.File)
	waits.End()
	if err != nil {
		return err
	}
	engine := localdynamo.New(localdynamo.WithStore(bolt))
	s.OnClose(func() { _ = engine.Close() })
	s.DB = engine.Client(s.watch(o).Client)
	if o.AsItIs {
		return nil
	}
	return s.createTable(ctx)
}

// createTable creates the table of a local store if it does not exist.
func (s *Store) createTable(ctx context.Context) error {
	spec := table.Spec{Name: s.Table, Layout: s.Layout}
	problems, err := table.Check(ctx, s.DB, spec)
	if err == nil && len(problems) == 0 {
		return nil
	}
	for _, p := range problems {
		if p.Fatal {
			s.misfit = misuse.Errorf("%s does not fit: %s", s.Location, ByFlags(p.What))
			return nil
		}
	}
	s.Created = errors.Is(err, leasehold.ErrTableNotFound)
	return table.Create(ctx, s.DB, spec)
}

// OnClose calls end when the store is closed, before what was to be called so far.
func (s *Store) OnClose(end func()) { s.closing = append(s.closing, end) }

// Close ends what the store needs.
func (s *Store) Close() {
	for _, end := range slices.Backward(s.closing) {
		end()
	}
	s.closing = nil
}

// watch is who is told of requests to the store.
func (s *Store) watch(o Opening) requests.Watch {
	w := requests.Watch{Health: &s.Health}
	if o.Requests != nil {
		w.Units, w.Each = true, o.Requests(s)
	}
	return w
}

// Server is what answers the requests, as far as its place is known.
func (s *Store) Server() requests.Server {
	return requests.Server{Location: s.Location, IsFile: s.File != ""}
}

// Place is where the table is: the file, the endpoint or the region.
func (s *Store) Place() string {
	if s.File != "" {
		return s.File
	}
	return s.Location
}

// Name names the table or, of a local store, its file: what the user has named.
func (s *Store) Name() string {
	if s.File != "" {
		return s.Location
	}
	return s.Table
}

// Where says which table this is, and where, or which file.
func (s *Store) Where() string {
	if s.File != "" {
		return s.Location
	}
	return "table " + s.Table + " in " + s.Location
}

// Client returns a lock client on the table.
func (s *Store) Client(cfg leasehold.Config) (*leasehold.Client, error) {
	cfg.Table, cfg.Layout, cfg.MaxSkew, cfg.ReleaseGrace = s.Table, s.Layout, s.MaxSkew, closeTimeout
	if cfg.Lease == 0 { // it only looks, or resumes a grant that has its own: no MaxSkew is too much for that
		cfg.Lease = max(protocol.DefaultLease, lease.Shortest(s.Proto.Skew()))
	}
	// The command itself reports events and errors.
	cfg.Logger = slog.New(slog.DiscardHandler)
	locks, err := leasehold.New(s.DB, cfg)
	if err != nil {
		return nil, misuse.Errorf("%s", strings.ReplaceAll(err.Error(), "leasehold: config: ", ""))
	}
	return locks, nil
}

// closeTimeout is how long the command waits at its end for requests in flight.
const closeTimeout = time.Second

// CloseLocks closes a lock client.
func CloseLocks(locks *leasehold.Client) {
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	_ = locks.Close(ctx) // locks have been released, or reported as lost
}

// Table is an open lock table, and a client of its locks.
type Table struct {
	*Store
	Locks *leasehold.Client
}

// WithLocks returns a lock client on the table, which is closed with the store.
func (s *Store) WithLocks(cfg leasehold.Config) (*Table, error) {
	locks, err := s.Client(cfg)
	if err != nil {
		return nil, err
	}
	s.OnClose(func() { CloseLocks(locks) })
	return &Table{s, locks}, nil
}

// Observer observes the holders of its locks, for so long at most; 0: until every holder is
// known.
func (t *Table) Observer(limit time.Duration) holders.Observer {
	by := holders.New(t.DB, t.Table, t.Proto, t.Layout.Capabilities(), t.Locks)
	by.Limit, by.Unpaid = limit, t.File != ""
	return by
}

// Item reads what is stored under a key, whatever it is.
func (s *Store) Item(ctx context.Context, key leasehold.Key) (protocol.Item, error) {
	if err := s.Proto.CheckKey(key); err != nil {
		return nil, misuse.Errorf("%s: %v", wording.Key(key), err)
	}
	reader := holders.NewReader(s.DB, s.Table, s.Proto)
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

// NotFound is the error that nothing is stored under a key.
func (s *Store) NotFound(key leasehold.Key) error {
	in := "table " + s.Table
	if s.File != "" {
		in = s.Location
	}
	return fmt.Errorf("%w: %s in %s", leasehold.ErrNotFound, wording.Key(key), in)
}

// IsSession reports whether the row of key is that of a shared lease.
func (s *Store) IsSession(key leasehold.Key) bool {
	return protocol.IsSessionKey(s.Proto, key)
}
