package store

import (
	"cmp"
	"context"
	"errors"
	"net"
	"net/http"
	"net/url"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/arn"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/feature/ec2/imds"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/smithy-go/logging"
	"github.com/aws/smithy-go/middleware"

	"github.com/leasehold-go/leasehold/internal/attempts"
	"github.com/leasehold-go/leasehold/internal/cli/misuse"
)

// idleConnections is how many idle connections are kept: as many as a client of
// package leasehold sends renewals at the same time.
const idleConnections = 128

// replyTimeout bounds the wait for a reply where the library has no shorter
// bound. The SDK tries three times.
const replyTimeout = 10 * time.Second

// Placeholder is the region and the credentials for a server on loopback, which
// accepts any.
const Placeholder = "local"

func (s *Store) openAWS(ctx context.Context, settings *Settings, o Opening) error {
	if _, err := TableName(s.Table); err != nil {
		return err
	}
	if err := settings.readAWSVariables(); err != nil {
		return err
	}
	endpoint, by := settings.endpoint()
	if endpoint != "" {
		if err := checkEndpoint(endpoint, by); err != nil {
			return err
		}
	}
	client := awshttp.NewBuildableClient().WithTransportOptions(func(t *http.Transport) {
		t.MaxIdleConns, t.MaxIdleConnsPerHost = idleConnections, idleConnections
	}).WithTimeout(replyTimeout)
	opts := []func(*config.LoadOptions) error{
		config.WithHTTPClient(client),
		config.WithAPIOptions([]func(*middleware.Stack) error{attempts.BoundedReplies}),
		config.WithLogger(logging.Nop{}), // users cannot act on the SDK's notes about connections; -v logs requests
	}
	if settings.Region != "" {
		opts = append(opts, config.WithRegion(settings.Region))
	}
	if settings.Profile != "" {
		opts = append(opts, config.WithSharedConfigProfile(settings.Profile))
	}
	if IsLoopback(endpoint) { // any credentials will do: do not ask the instance's metadata service
		opts = append(opts, config.WithEC2IMDSClientEnableState(imds.ClientDisabled))
	}
	cfg, err := config.LoadDefaultConfig(ctx, opts...)
	var none config.SharedConfigProfileNotExistError
	if errors.As(err, &none) {
		return misuse.Errorf("no profile %q in the AWS configuration: check --profile or AWS_PROFILE", none.Profile)
	}
	if err != nil {
		return misuse.Errorf("AWS settings: %s", err)
	}
	if id, err := arn.Parse(s.Table); err == nil && cfg.Region == "" {
		cfg.Region = id.Region
	}
	s.AWS = cfg
	s.DB = dynamodb.NewFromConfig(cfg, func(options *dynamodb.Options) {
		if settings.Endpoint != "" {
			options.BaseEndpoint = aws.String(settings.Endpoint)
		}
		if IsLoopback(aws.ToString(options.BaseEndpoint)) {
			options.Region = cmp.Or(options.Region, Placeholder)
			options.Credentials = aws.NewCredentialsCache(orPlaceholder{options.Credentials})
		}
	}, attempts.Bounded, s.watch(o).Client)
	if err := s.checkAWS(settings); err != nil {
		return err
	}
	o.Known(s)
	return nil
}

// checkAWS refuses what the SDK has put together from flags, variables and profile if
// no request with it can succeed.
func (s *Store) checkAWS(settings *Settings) error {
	server, region := aws.ToString(s.DB.Options().BaseEndpoint), s.DB.Options().Region
	s.Location = cmp.Or(server, region)
	if region == "" {
		return misuse.Errorf("no region: set AWS_REGION or use --region")
	}
	if server != "" {
		if err := checkEndpoint(server, "the profile's endpoint_url"); err != nil {
			return err
		}
	}
	if err := checkRegion(region, settings.RegionBy(s.AWS), server != ""); err != nil {
		return err
	}
	if id, err := arn.Parse(s.Table); err == nil && server == "" && id.Region != region {
		return misuse.Errorf("table %s is in the Region %s, not %s (%s)", s.Table, id.Region, region, settings.RegionBy(s.AWS))
	}
	return nil
}

// IsLoopback reports whether a URL names this machine.
func IsLoopback(endpoint string) bool {
	u, err := url.Parse(endpoint)
	if err != nil {
		return false
	}
	return IsThisMachine(u.Hostname())
}

// IsThisMachine reports whether a host is this machine, and can be reached from it alone.
func IsThisMachine(host string) bool {
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
	return credentials.NewStaticCredentialsProvider(Placeholder, Placeholder, "").Retrieve(ctx)
}
