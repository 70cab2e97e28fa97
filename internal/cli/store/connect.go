package store

import (
	"cmp"
	"context"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/arn"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/feature/ec2/imds"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/smithy-go/logging"
	"github.com/aws/smithy-go/middleware"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/attempts"
	"github.com/leasehold-go/leasehold/internal/cli/failure"
	"github.com/leasehold-go/leasehold/internal/cli/requests"
	"github.com/leasehold-go/leasehold/internal/visible"
	"github.com/leasehold-go/leasehold/regions"
)

// idleConnections is the number of idle HTTP connections that are kept. It is also the largest
// number of renewals that a client of package leasehold has in flight.
const idleConnections = 128

// replyTimeout limits the wait for the reply to one request. Package leasehold may set a
// shorter limit. The SDK sends a request up to three times.
const replyTimeout = 10 * time.Second

// Placeholder is the Region and the access key for servers on loopback, which accept any
// Region and any key.
const Placeholder = "local"

func (s *Store) openAWS(ctx context.Context, settings *Settings, o Opening) error {
	if err := settings.readAWSVariables(); err != nil {
		return err
	}
	endpoint, by := settings.endpoint()
	if err := checkEndpoint(endpoint, by); err != nil {
		return err
	}
	client := awshttp.NewBuildableClient().WithTransportOptions(func(t *http.Transport) {
		t.MaxIdleConns, t.MaxIdleConnsPerHost = idleConnections, idleConnections
	}).WithTimeout(replyTimeout)
	opts := []func(*config.LoadOptions) error{
		config.WithHTTPClient(client),
		config.WithAPIOptions([]func(*middleware.Stack) error{attempts.BoundedReplies}),
		config.WithLogger(logging.Nop{}), // discard the SDK's messages about connections: users cannot act on them, and --verbose logs requests

		// An empty setting has no effect here.
		config.WithRegion(settings.Region),
		config.WithSharedConfigProfile(settings.Profile),
	}
	if IsLoopback(endpoint) { // the server accepts any credentials, so do not wait for the EC2 metadata service
		opts = append(opts, config.WithEC2IMDSClientEnableState(imds.ClientDisabled))
	}
	cfg, err := config.LoadDefaultConfig(ctx, opts...)
	if none, is := failure.As[config.SharedConfigProfileNotExistError](err); is {
		return failure.Misusef("no profile %q in the AWS configuration: check --profile or AWS_PROFILE", none.Profile)
	}
	if err != nil {
		return failure.Misusef("AWS settings: %s", err)
	}
	if id, err := arn.Parse(s.Table); err == nil && cfg.Region == "" {
		cfg.Region = id.Region
	}
	source := &credentialSource{current: cfg.Credentials, metadata: settings.hasMetadata(cfg), load: func(ctx context.Context) (aws.CredentialsProvider, error) {
		next, err := config.LoadDefaultConfig(ctx, opts...)
		return next.Credentials, err
	}}
	s.Home = dynamodb.NewFromConfig(cfg, func(options *dynamodb.Options) {
		if settings.Endpoint != "" {
			options.BaseEndpoint = aws.String(settings.Endpoint)
		}
		if IsLoopback(aws.ToString(options.BaseEndpoint)) {
			options.Region = cmp.Or(options.Region, Placeholder)
			source.acceptAny()
		}
		options.Credentials = source
	}, attempts.Bounded, s.watch(o).Client, requests.Watch{Each: source.saw}.Client)
	if err := s.checkAWS(settings, cfg); err != nil {
		return err
	}
	if s.failover, err = settings.failover(s); err != nil {
		return err
	}
	o.Known(s)
	return nil
}

// checkAWS checks the Region and the endpoint that result from flags, variables and
// profile. It returns an error if no request with this Region and endpoint can succeed.
func (s *Store) checkAWS(settings *Settings, cfg aws.Config) error {
	server, region, by := aws.ToString(s.Home.Options().BaseEndpoint), s.Home.Options().Region, settings.regionBy(cfg)
	s.Location = cmp.Or(server, region)
	if region == "" {
		return failure.Misusef("no region: set AWS_REGION or use --region")
	}
	if err := checkEndpoint(server, "the profile's endpoint_url"); err != nil {
		return err
	}
	if err := checkRegion(region, by, server != ""); err != nil {
		return err
	}
	if id, err := arn.Parse(s.Table); err == nil && server == "" && id.Region != region {
		return failure.Misusef("table %s is in the Region %s, not %s (%s)", s.Table, id.Region, region, by)
	}
	return nil
}

// IsLoopback reports whether the host in the given endpoint URL is localhost or a loopback address.
func IsLoopback(endpoint string) bool {
	u, err := url.Parse(endpoint)
	return err == nil && IsThisMachine(u.Hostname())
}

// IsThisMachine reports whether host is a loopback address or localhost, which other
// machines cannot reach.
func IsThisMachine(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// The checks below refuse a Region, endpoint or table name with which no request can succeed.
// Otherwise leasehold would repeat requests for a long time, for example to a missing host. The
// errors of the checks name the value's source: a flag, a variable or a profile.

const (
	regionBegins = `^[a-z]{2,4}(-[a-z]+)+-[0-9]{1,2}` // no list of Regions, because AWS adds new ones every year

	regionForm = regionBegins + `$`
	zoneForm   = regionBegins + `[a-z]$`
	labelForm  = `^[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?$`
	tableForm  = `^[A-Za-z0-9_.-]{3,255}$`
)

// hasForm reports whether s matches the regular expression form. It compiles form at each
// call, because one run of leasehold needs only a few forms, and rarely needs the same form
// twice.
func hasForm(s, form string) bool { return regexp.MustCompile(form).MatchString(s) }

// checkRegion returns an error if region cannot be an AWS Region. If otherServer is true,
// the endpoint is not AWS, and region may be any name.
func checkRegion(region, by string, otherServer bool) error {
	lower := strings.ToLower(region)
	switch {
	case otherServer && hasForm(region, labelForm), hasForm(region, regionForm):
		return nil
	case otherServer:
		return failure.Misusef("the Region %q (%s) is not a name: use letters, digits and -", region, by)
	case hasForm(region, zoneForm):
		return failure.Misusef("%q (%s) is an Availability Zone: use its Region, %s", region, by, region[:len(region)-1])
	case hasForm(lower, regionForm):
		return failure.Misusef("the Region %q (%s) is not an AWS Region: use %s", region, by, lower)
	}
	return failure.Misusef("the Region %q (%s) is not an AWS Region: Regions look like eu-west-1 or us-gov-east-1; another server needs --endpoint-url", region, by)
}

// checkEndpoint returns an error if no request can be sent to the URL endpoint. It also refuses a
// URL with a password, because leasehold prints the URL, stores it in grants and passes it to
// CMD. An empty endpoint lets the SDK choose.
func checkEndpoint(endpoint, by string) error {
	if endpoint == "" {
		return nil
	}
	if strings.Contains(endpoint, "@") { // checked first, so that no later message prints the password
		return failure.Misusef("%s has an @: leave out the user and the password, which DynamoDB does not read: requests are signed with AWS credentials", by)
	}
	const use = "use http:// or https://, such as http://127.0.0.1:8000"
	shown := by + " " + quotedIfSpaced(endpoint)
	if !strings.Contains(endpoint, "://") {
		return failure.Misusef("%s must begin with http:// or https://", shown)
	}
	u, err := url.Parse(endpoint)
	if err != nil {
		return failure.Misusef("%s is not a URL: %s", shown, use)
	}
	port, err := strconv.ParseUint(cmp.Or(u.Port(), "80"), 10, 16)
	switch {
	case u.Scheme != "http" && u.Scheme != "https":
		return failure.Misusef("%s: unknown scheme %s: %s", shown, u.Scheme, use)
	case u.Hostname() == "":
		return failure.Misusef("%s names no host: %s", shown, use)
	case err != nil || port == 0:
		return failure.Misusef("%s: the port must be a number from 1 to 65535", shown)
	case u.RawQuery != "" || u.ForceQuery:
		return failure.Misusef("%s: leave out what follows ?", shown)
	case u.Fragment != "":
		return failure.Misusef("%s: leave out what follows #", shown)
	}
	return nil
}

// TableName returns the table name that the given text contains. The text is the name or the ARN of
// a table. For any other text, TableName returns an error.
func TableName(named string) (string, error) {
	if !strings.HasPrefix(named, "arn:") {
		if !hasForm(named, tableForm) {
			return "", failure.Misusef("--table %s is not the name of a table: those have letters, digits, _, - and ., 3 to 255 of them", quotedIfSpaced(named))
		}
		return named, nil
	}
	id, err := arn.Parse(named)
	name, ok := strings.CutPrefix(id.Resource, "table/")
	if err != nil || id.Service != "dynamodb" || !ok || name == "" || strings.Contains(name, "/") {
		return "", failure.Misusef("--table %s is not the ARN of a table: those look like arn:aws:dynamodb:REGION:ACCOUNT:table/NAME", visible.Name(named))
	}
	return name, nil
}

// quotedIfSpaced returns s for use in a message. If s contains a space, the result is in quotes,
// because the words in s would otherwise look like words of the message.
func quotedIfSpaced(s string) string {
	if strings.Contains(s, " ") {
		return strconv.Quote(s)
	}
	return visible.Name(s)
}

// failover returns the Regions in --failover. It returns an error if the list is invalid or
// cannot be used with the endpoint or the table of the given Store. It sends no request.
func (s *Settings) failover(at *Store) ([]string, error) {
	if s.Failover == "" {
		return nil, nil
	}
	by := s.sourceOf("--failover")
	options := at.Home.Options()
	if server := aws.ToString(options.BaseEndpoint); server != "" {
		return nil, failure.Misusef("%s does not go with the endpoint %s: leave out one", by, server)
	}
	if arn.IsARN(at.Table) {
		return nil, failure.Misusef("%s needs the name of the table, not its ARN: use --table %s", by, at.Table[strings.LastIndexByte(at.Table, '/')+1:])
	}
	seen := []string{options.Region}
	for name := range strings.SplitSeq(s.Failover, ",") {
		switch name = strings.TrimSpace(name); {
		case name == "":
			return nil, failure.Misusef("%s %q has an empty Region: separate by one comma", by, s.Failover)
		case slices.Contains(seen, name):
			return nil, failure.Misusef("%s names the Region %s again: name others", by, name)
		}
		if err := checkRegion(name, by, false); err != nil {
			return nil, err
		}
		seen = append(seen, name)
	}
	return seen[1:], nil
}

// RefuseFailover is called before "table create" creates a table. It returns an error if --failover
// is given. That flag needs a table with several Regions and without TTL, but the new table has one
// Region and TTL.
func (s *Settings) RefuseFailover() error {
	if s.Failover == "" {
		return nil
	}
	return failure.Misusef("table create makes no table in several Regions: see docs/regions.md, or leave out %s", s.sourceOf("--failover"))
}

// Regions returns one client for each Region of the table: first for the home Region, then for the
// Regions of --failover. For a local store, it returns a single client.
func (s *Store) Regions() []*dynamodb.Client {
	all := []*dynamodb.Client{s.Home}
	for _, name := range s.failover {
		all = append(all, dynamodb.New(s.Home.Options(), func(o *dynamodb.Options) { o.Region = name }))
	}
	return all
}

// Requests returns the client for all requests about lock records. Without --failover it
// returns Home. With --failover it returns a client that switches to another Region if the
// current Region stops serving requests. Home must not be replaced after the first call of
// Requests.
func (s *Store) Requests() leasehold.DB {
	if len(s.failover) == 0 {
		return s.Home
	}
	if s.regions == nil {
		all := s.Regions()
		s.regions = regions.New(all[0], all[1:]...)
	}
	return s.regions
}

// Region returns the Region that requests about lock records currently go to. It returns ""
// without --failover.
func (s *Store) Region() string {
	if s.regions == nil {
		return ""
	}
	return s.regions.Region()
}
