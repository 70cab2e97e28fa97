package cli

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/arn"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/feature/ec2/imds"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/smithy-go/logging"
	"github.com/spf13/cobra"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/layout"
	"github.com/leasehold-go/leasehold/localdynamo"
	"github.com/leasehold-go/leasehold/localdynamo/boltstore"
	"github.com/leasehold-go/leasehold/table"
)

// idleConnections is how many connections are kept between requests: as many
// as a client of package leasehold renews at once.
const idleConnections = 128

// madeUp are the region and credentials where an engine on loopback takes any.
const madeUp = "local"

// store is an open lock table.
type store struct {
	db       *dynamodb.Client
	table    string
	layout   layout.Layout
	location string // region, URL or file: for people, and to tell stores apart
	file     string // of a local store
	created  bool   // by this very command
	misfit   error  // a local store's table is of another layout
	health   health
	watch    *waiting
	gate     sync.RWMutex // whoever locks it keeps requests back; a request holds it for reading
	close    func()
}

// place tells where the table is: the file, or the endpoint or region.
func (s *store) place() string {
	if s.file != "" {
		return s.file
	}
	return s.location
}

// id tells one table from every other.
func (s *store) id() string { return s.location + " " + s.table }

// open opens the lock table that flags and environment name. granted is the
// table of a grant, if there is one.
func (a *app) open(cmd *cobra.Command, granted string) (*store, error) {
	s, err := a.openAny(cmd, granted)
	if err != nil {
		return nil, err
	}
	if s.misfit != nil {
		s.close()
		return nil, s.misfit
	}
	return s, nil
}

// openAny is open for commands that look at the table itself, which may be of
// another layout.
func (a *app) openAny(cmd *cobra.Command, granted string) (*store, error) {
	l, err := chooseLayout(a.flags, cmd.Flags().Changed("layout"), a.Env)
	if err != nil {
		return nil, err
	}
	p, err := choosePlace(a.flags, a.Env, granted)
	if err != nil {
		return nil, err
	}
	s := &store{table: p.table, layout: l, close: func() {}}
	if p.file != "" {
		err = a.openFile(cmd.Context(), s, p)
	} else {
		err = a.openAWS(cmd.Context(), s)
	}
	if err != nil {
		return nil, err
	}
	a.say.at(s.table, s.location)
	s.watch = a.watchWait(s)
	shut := s.close
	s.close = func() {
		s.watch.end()
		shut()
	}
	return s, nil
}

func (a *app) openFile(ctx context.Context, s *store, p place) error {
	if p.unnamed {
		a.say.always("no table: using %s, %s (see --table)", tilde(a.Env, p.file), p.whose())
	}
	open := boltstore.Open
	if p.machine {
		open = openMachineStore
	}
	bolt, err := open(p.file)
	if err != nil {
		return err
	}
	engine := localdynamo.New(localdynamo.WithStore(bolt))
	s.db = engine.Client(a.trace(s))
	s.file, s.location = p.file, tilde(a.Env, p.file)
	s.close = func() { _ = engine.Close() }
	a.say.at(s.table, s.location)
	if err := s.createTable(ctx); err != nil {
		s.close()
		return err
	}
	return nil
}

// createTable creates the table of a local store where there is none.
func (s *store) createTable(ctx context.Context) error {
	spec := table.Spec{Name: s.table, Layout: s.layout}
	problems, err := table.Check(ctx, s.db, spec)
	if err == nil && len(problems) == 0 {
		return nil
	}
	for _, p := range problems {
		if p.Fatal {
			s.misfit = usagef("table %s in %s: %s", s.table, s.location, p.What)
			return nil
		}
	}
	s.created = errors.Is(err, leasehold.ErrTableNotFound)
	return table.Create(ctx, s.db, spec)
}

func (a *app) openAWS(ctx context.Context, s *store) error {
	endpoint := cmp.Or(a.flags.endpoint, a.get("AWS_ENDPOINT_URL_DYNAMODB"), a.get("AWS_ENDPOINT_URL"))
	if endpoint != "" && !strings.Contains(endpoint, "://") {
		return usagef("--endpoint-url %s: begin it with http:// or https://", endpoint)
	}
	client := awshttp.NewBuildableClient().WithTransportOptions(func(t *http.Transport) {
		t.MaxIdleConns, t.MaxIdleConnsPerHost = idleConnections, idleConnections
	})
	opts := []func(*config.LoadOptions) error{
		config.WithHTTPClient(client),
		config.WithLogger(logging.Nop{}), // what the SDK notes of its connections nobody can act on; -v has the requests
	}
	if a.flags.region != "" {
		opts = append(opts, config.WithRegion(a.flags.region))
	}
	if a.flags.profile != "" {
		opts = append(opts, config.WithSharedConfigProfile(a.flags.profile))
	}
	if isLoopback(endpoint) { // no question to the instance's metadata service for what any value will do
		opts = append(opts, config.WithEC2IMDSClientEnableState(imds.ClientDisabled))
	}
	cfg, err := config.LoadDefaultConfig(ctx, opts...)
	if err != nil {
		return usagef("AWS settings: %s", oneLine(err.Error()))
	}
	if id, err := arn.Parse(s.table); err == nil && cfg.Region == "" {
		cfg.Region = id.Region
	}
	s.db = dynamodb.NewFromConfig(cfg, func(o *dynamodb.Options) {
		if a.flags.endpoint != "" {
			o.BaseEndpoint = aws.String(a.flags.endpoint)
		}
		if isLoopback(aws.ToString(o.BaseEndpoint)) {
			o.Region = cmp.Or(o.Region, madeUp)
			o.Credentials = aws.NewCredentialsCache(orMadeUp{o.Credentials})
		}
	}, a.trace(s))
	s.location = cmp.Or(aws.ToString(s.db.Options().BaseEndpoint), s.db.Options().Region)
	if s.db.Options().Region == "" {
		return usagef("no region: set AWS_REGION or use --region")
	}
	return nil
}

// isLoopback reports whether a URL is of this machine.
func isLoopback(endpoint string) bool {
	u, err := url.Parse(endpoint)
	if err != nil {
		return false
	}
	ip := net.ParseIP(u.Hostname())
	return u.Hostname() == "localhost" || ip != nil && ip.IsLoopback()
}

// orMadeUp supplies credentials where there are none.
type orMadeUp struct{ real aws.CredentialsProvider }

func (c orMadeUp) Retrieve(ctx context.Context) (aws.Credentials, error) {
	if c.real != nil {
		if found, err := c.real.Retrieve(ctx); err == nil {
			return found, nil
		}
	}
	return credentials.NewStaticCredentialsProvider(madeUp, madeUp, "").Retrieve(ctx)
}

// locks returns a lock client on the table.
func (s *store) locks(cfg leasehold.Config) (*leasehold.Client, error) {
	cfg.Table, cfg.Layout, cfg.ReleaseGrace = s.table, s.layout, closing
	// What it would log is said by the command, from events and errors.
	cfg.Logger = slog.New(slog.DiscardHandler)
	locks, err := leasehold.New(s.db, cfg)
	if err != nil {
		return nil, &configError{err}
	}
	return locks, nil
}

// withLocks runs fn with a lock client on the table. A signal ends fn's context.
func (s *store) withLocks(ctx context.Context, fn func(ctx context.Context, locks *leasehold.Client) error) error {
	locks, err := s.locks(leasehold.Config{})
	if err != nil {
		return err
	}
	defer closeLocks(locks)
	signals := catchSignals()
	defer signals.release()
	ctx, cancel := signals.bind(ctx)
	defer cancel()
	return fn(ctx, locks)
}

// closing is how long the command waits at its end for requests under way.
const closing = time.Second

// closeLocks ends a lock client.
func closeLocks(locks *leasehold.Client) {
	ctx, cancel := context.WithTimeout(context.Background(), closing)
	defer cancel()
	_ = locks.Close(ctx) // what was held has been released, or said to be lost
}
