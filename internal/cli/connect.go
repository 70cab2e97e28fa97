package cli

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/url"
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
	"github.com/leasehold-go/leasehold/internal/attempts"
	"github.com/leasehold-go/leasehold/layout"
	"github.com/leasehold-go/leasehold/localdynamo"
	"github.com/leasehold-go/leasehold/table"
)

// idleConnections is how many idle connections are kept: as many as a client of
// package leasehold sends renewals at the same time.
const idleConnections = 128

// replyTimeout bounds the wait for a reply where the library has no shorter
// bound. The SDK tries three times.
const replyTimeout = 10 * time.Second

// placeholder is the region and the credentials for a server on loopback, which
// accepts any.
const placeholder = "local"

// store is an open lock table.
type store struct {
	db       *dynamodb.Client
	table    string
	layout   layout.Layout
	location string     // region, URL or file, as shown in messages
	file     string     // of a local store; empty: DynamoDB
	aws      aws.Config // of DynamoDB
	created  bool       // this command has created the local store's table
	misfit   error      // the local store's table has another layout
	health   health
	wait     *waitReporter
	seen     *memory      // what earlier commands have observed; nil: they keep nothing
	requests sync.RWMutex // held for reading during a request; lock it to keep requests back
	close    func()
}

// place is where the table is: the file, the endpoint or the region.
func (s *store) place() string {
	if s.file != "" {
		return s.file
	}
	return s.location
}

// name names the table or, of a local store, its file: what the user has named.
func (s *store) name() string {
	if s.file != "" {
		return s.location
	}
	return s.table
}

// called is name in a sentence.
func (s *store) called() string {
	if s.file != "" {
		return s.location
	}
	return "table " + s.table
}

// where says which table this is, and where, or which file.
func (s *store) where() string {
	if s.file != "" {
		return s.location
	}
	return "table " + s.table + " in " + s.location
}

// errorText describes an error of a request to the table.
func (s *store) errorText(err error) string { return errorText(err, s.where()) }

// id distinguishes tables of the same name.
func (s *store) id() string { return s.location + " " + s.table }

// open opens the lock table that flags and environment name, for commands that look
// at locks or mend them. granted is the table of a grant, if there is one. It refuses
// a table of another layout, and the file of a local store that is named but missing:
// a mistyped name must not look as if nothing were held.
func (a *app) open(cmd *cobra.Command, granted string) (*store, error) {
	return fitting(a.openAny(cmd, granted))
}

// openOrMake is open for commands that acquire: they make a file that is missing.
func (a *app) openOrMake(cmd *cobra.Command) (*store, error) {
	return fitting(a.openAnyOrMake(cmd))
}

// fitting refuses a table of another layout.
func fitting(s *store, err error) (*store, error) {
	if err != nil {
		return nil, err
	}
	if s.misfit != nil {
		s.close()
		return nil, s.misfit
	}
	return s, nil
}

// openAny is open for commands that check the table, which may have another layout.
func (a *app) openAny(cmd *cobra.Command, granted string) (*store, error) {
	return a.connect(cmd, granted, false)
}

// openAnyOrMake is openAny for the command that creates the table.
func (a *app) openAnyOrMake(cmd *cobra.Command) (*store, error) {
	return a.connect(cmd, "", true)
}

// connect opens the lock table. mayMake: it makes the named file of a local store.
func (a *app) connect(cmd *cobra.Command, granted string, mayMake bool) (*store, error) {
	l, err := chooseLayout(a.flags, cmd.Flags().Changed("layout"), a.Env)
	if err != nil {
		return nil, err
	}
	p, err := choosePlace(a.flags, a.Env, granted)
	if err != nil {
		return nil, err
	}
	s := &store{table: p.table, layout: l}
	if p.file != "" {
		err = a.openFile(cmd, s, p, mayMake)
	} else {
		err = a.openAWS(cmd.Context(), s)
	}
	if err != nil {
		return nil, err
	}
	return s, nil
}

// ready starts to report trouble with s, whose place is known. closeStore is
// called after that when s is closed.
func (a *app) ready(s *store, closeStore func()) {
	a.say.setTable(s.table, s.where())
	s.wait = a.startWaitReporter(s)
	s.seen = a.newMemory(s)
	s.close = func() {
		s.seen.save()
		s.wait.end()
		closeStore()
	}
}

func (a *app) openFile(cmd *cobra.Command, s *store, p place, mayMake bool) error {
	switch {
	case p.unnamed:
		a.say.always("no table: using %s, %s (see --table)", tilde(a.Env, p.file), p.scope())
	case mayMake:
		if err := a.makeNamed(p.file); err != nil {
			return err
		}
	case missing(p.file):
		return usagef("no store at %s: check --file and LEASEHOLD_FILE, or make one: leasehold table create%s", p.file, storeFlags(cmd))
	}
	open := openStoreFile
	if p.machine {
		open = openMachineStore
	}
	s.file, s.location = p.file, tilde(a.Env, p.file)
	var engine *localdynamo.Engine
	a.ready(s, func() {
		if engine != nil {
			_ = engine.Close()
		}
	})
	opened := s.health.begin(&call{}) // it may have to wait for another process
	bolt, err := open(p.file)
	opened()
	if err != nil {
		s.close()
		return err
	}
	engine = localdynamo.New(localdynamo.WithStore(bolt))
	s.db = engine.Client(a.trace(s))
	if a.completing {
		return nil
	}
	if err := s.createTable(cmd.Context()); err != nil {
		s.close()
		return err
	}
	return nil
}

// createTable creates the table of a local store if it does not exist.
func (s *store) createTable(ctx context.Context) error {
	spec := table.Spec{Name: s.table, Layout: s.layout}
	problems, err := table.Check(ctx, s.db, spec)
	if err == nil && len(problems) == 0 {
		return nil
	}
	for _, p := range problems {
		if p.Fatal {
			s.misfit = usagef("%s does not fit: %s", s.location, p.What)
			return nil
		}
	}
	s.created = errors.Is(err, leasehold.ErrTableNotFound)
	return table.Create(ctx, s.db, spec)
}

func (a *app) openAWS(ctx context.Context, s *store) error {
	if err := checkTable(s.table); err != nil {
		return err
	}
	endpoint, by := a.endpoint()
	if endpoint != "" {
		if err := checkEndpoint(endpoint, by); err != nil {
			return err
		}
	}
	client := awshttp.NewBuildableClient().WithTransportOptions(func(t *http.Transport) {
		t.MaxIdleConns, t.MaxIdleConnsPerHost = idleConnections, idleConnections
		t.ResponseHeaderTimeout = replyTimeout
	})
	opts := []func(*config.LoadOptions) error{
		config.WithHTTPClient(client),
		config.WithLogger(logging.Nop{}), // users cannot act on the SDK's notes about connections; -v logs requests
	}
	if a.flags.region != "" {
		opts = append(opts, config.WithRegion(a.flags.region))
	}
	if a.flags.profile != "" {
		opts = append(opts, config.WithSharedConfigProfile(a.flags.profile))
	}
	if isLoopback(endpoint) { // any credentials will do: do not ask the instance's metadata service
		opts = append(opts, config.WithEC2IMDSClientEnableState(imds.ClientDisabled))
	}
	cfg, err := config.LoadDefaultConfig(ctx, opts...)
	var none config.SharedConfigProfileNotExistError
	if errors.As(err, &none) {
		return usagef("no profile %q in the AWS configuration: check --profile or AWS_PROFILE", none.Profile)
	}
	if err != nil {
		return usagef("AWS settings: %s", plain(oneLine(err.Error())))
	}
	if id, err := arn.Parse(s.table); err == nil && cfg.Region == "" {
		cfg.Region = id.Region
	}
	s.aws = cfg
	s.db = dynamodb.NewFromConfig(cfg, func(o *dynamodb.Options) {
		if a.flags.endpoint != "" {
			o.BaseEndpoint = aws.String(a.flags.endpoint)
		}
		if isLoopback(aws.ToString(o.BaseEndpoint)) {
			o.Region = cmp.Or(o.Region, placeholder)
			o.Credentials = aws.NewCredentialsCache(orPlaceholder{o.Credentials})
		}
	}, attempts.KeepConnections, a.trace(s))
	if err := a.checkAWS(s); err != nil {
		return err
	}
	a.ready(s, func() {})
	return nil
}

// checkAWS refuses what the SDK has put together from flags, variables and profile if
// no request with it can succeed.
func (a *app) checkAWS(s *store) error {
	server, region := aws.ToString(s.db.Options().BaseEndpoint), s.db.Options().Region
	s.location = cmp.Or(server, region)
	if region == "" {
		return usagef("no region: set AWS_REGION or use --region")
	}
	if server != "" {
		if err := checkEndpoint(server, "the profile's endpoint_url"); err != nil {
			return err
		}
	}
	if err := checkRegion(region, a.regionBy(s.aws), server != ""); err != nil {
		return err
	}
	if id, err := arn.Parse(s.table); err == nil && server == "" && id.Region != region {
		return usagef("table %s is in the Region %s, not %s (%s)", s.table, id.Region, region, a.regionBy(s.aws))
	}
	return nil
}

// isLoopback reports whether a URL names this machine.
func isLoopback(endpoint string) bool {
	u, err := url.Parse(endpoint)
	if err != nil {
		return false
	}
	return isThisMachine(u.Hostname())
}

// isThisMachine reports whether a host is this machine, and can be reached from it alone.
func isThisMachine(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// orPlaceholder provides placeholder credentials if there are no real ones.
type orPlaceholder struct{ real aws.CredentialsProvider }

func (c orPlaceholder) Retrieve(ctx context.Context) (aws.Credentials, error) {
	if c.real != nil {
		if found, err := c.real.Retrieve(ctx); err == nil {
			return found, nil
		}
	}
	return credentials.NewStaticCredentialsProvider(placeholder, placeholder, "").Retrieve(ctx)
}

// locks returns a lock client on the table.
func (s *store) locks(cfg leasehold.Config) (*leasehold.Client, error) { return s.locksOver(s.db, cfg) }

// locksOver is locks by another DynamoDB client.
func (s *store) locksOver(db *dynamodb.Client, cfg leasehold.Config) (*leasehold.Client, error) {
	cfg.Table, cfg.Layout, cfg.ReleaseGrace = s.table, s.layout, closeTimeout
	// The command itself reports events and errors.
	cfg.Logger = slog.New(slog.DiscardHandler)
	locks, err := leasehold.New(db, cfg)
	if err != nil {
		return nil, &configError{err}
	}
	return locks, nil
}

// withLocks calls fn with a lock client on the table. A signal ends fn's context.
func (s *store) withLocks(ctx context.Context, fn func(ctx context.Context, locks *leasehold.Client) error) error {
	return s.withLocksOf(ctx, leasehold.Config{}, fn)
}

// withLocksOf is withLocks with a client of this configuration.
func (s *store) withLocksOf(ctx context.Context, cfg leasehold.Config, fn func(ctx context.Context, locks *leasehold.Client) error) error {
	locks, err := s.locks(cfg)
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

// closeTimeout is how long the command waits at its end for requests in flight.
const closeTimeout = time.Second

// closeLocks closes a lock client.
func closeLocks(locks *leasehold.Client) {
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	_ = locks.Close(ctx) // locks have been released, or reported as lost
}
