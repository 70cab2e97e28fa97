package store

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/credentials"

	"github.com/leasehold-go/leasehold/internal/cli/failure"
	"github.com/leasehold-go/leasehold/internal/cli/requests"
	"github.com/leasehold-go/leasehold/internal/decide"
)

// reloadPause is the minimum time between two loads of new credentials. Without this pause,
// several rejected requests would each cause a load, which may start a program
// (credential_process).
const reloadPause = time.Second

// credentialSource provides AWS credentials. If DynamoDB rejects the credentials, the
// credentialSource loads the AWS configuration again. The SDK alone would keep the rejected
// credentials: it reads a credentials file only once, and uses the credentials from a
// credential_process until they expire.
type credentialSource struct {
	load     func(context.Context) (aws.CredentialsProvider, error)
	metadata bool // true if an EC2 metadata service is expected on this machine

	mu       sync.Mutex // not locked while load runs
	current  aws.CredentialsProvider
	refused  bool // true if DynamoDB has rejected credentials from current
	loading  bool
	loadedAt time.Time // when credentials were last reloaded; zero if never
}

// saw is called after each request. It records whether DynamoDB rejected the credentials.
func (c *credentialSource) saw(r requests.Request) {
	if !decide.CredentialsRefused(r.Err) {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.refused = true
}

// Retrieve returns credentials for a request. If no other source has credentials, the SDK asks the
// EC2 metadata service, even outside EC2. After a failure of this service, Retrieve lets the SDK
// retry only on a machine where the service is expected (see hasMetadata).
func (c *credentialSource) Retrieve(ctx context.Context) (aws.Credentials, error) {
	found, err := c.retrieve(ctx)
	switch {
	case err == nil, !strings.Contains(err.Error(), decide.NoMetadata):
	case !c.metadata:
		err = errors.New(err.Error()) // only the text: if the error contained a timeout, the SDK would retry
	case decide.ServerSilent(err):
		err = failure.Like(err, "this machine's metadata service does not answer: "+strings.ReplaceAll(err.Error(), decide.NoMetadata+", ", ""))
	}
	return found, err
}

// retrieve returns credentials for a request. If DynamoDB has rejected the current
// credentials, retrieve first waits for new ones, but no longer than the request may last.
func (c *credentialSource) retrieve(ctx context.Context) (aws.Credentials, error) {
	c.mu.Lock()
	if c.refused && !c.loading && time.Since(c.loadedAt) >= reloadPause {
		c.loading, c.loadedAt = true, time.Now()
		loaded, done := context.WithCancel(ctx)
		go c.reload(context.WithoutCancel(ctx), done)
		c.mu.Unlock()
		<-loaded.Done()
		c.mu.Lock()
	}
	current := c.current
	c.mu.Unlock()
	return current.Retrieve(ctx)
}

// reload loads new credentials, which may take longer than a request. If that fails, as when the
// file was deleted, c keeps the current ones, because DynamoDB may have rejected them by mistake.
func (c *credentialSource) reload(ctx context.Context, done func()) {
	defer done()
	next, err := c.load(ctx)
	if err == nil {
		_, err = next.Retrieve(ctx)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.loading = false; err == nil {
		c.current, c.refused = next, false
	}
}

// acceptAny makes c return placeholder credentials if no source has credentials. It must be
// called before the first Retrieve.
func (c *credentialSource) acceptAny() {
	load := c.load
	c.current = orPlaceholder(c.current)
	c.load = func(ctx context.Context) (aws.CredentialsProvider, error) {
		next, err := load(ctx)
		return orPlaceholder(next), err
	}
}

// orPlaceholder returns a provider that uses the credentials of the provider "first". If "first" is
// nil or fails, it uses placeholder credentials.
func orPlaceholder(first aws.CredentialsProvider) aws.CredentialsProvider {
	return aws.NewCredentialsCache(aws.CredentialsProviderFunc(func(ctx context.Context) (aws.Credentials, error) {
		if first != nil {
			if found, err := first.Retrieve(ctx); err == nil {
				return found, nil
			}
		}
		return credentials.NewStaticCredentialsProvider(Placeholder, Placeholder, "").Retrieve(ctx)
	}))
}

// hasMetadata reports whether an EC2 metadata service is expected on this machine. It is if the
// machine is an EC2 instance, or a setting names the service as the source of credentials.
func (s *Settings) hasMetadata(cfg aws.Config) bool {
	for _, source := range cfg.ConfigSources {
		if shared, ok := source.(config.SharedConfig); ok && (shared.EC2IMDSEndpoint != "" || shared.CredentialSource == "Ec2InstanceMetadata") {
			return true
		}
	}
	return s.Getenv("AWS_EC2_METADATA_SERVICE_ENDPOINT") != "" || s.OnEC2()
}

// OnEC2 reports whether this machine is an EC2 instance. It reads what the kernel reports
// about the hardware, and sends nothing over the network.
func OnEC2() bool { return onEC2("/sys") }

func onEC2(sys string) bool {
	for file, prefix := range map[string]string{
		"class/dmi/id/sys_vendor":   "Amazon EC2",
		"class/dmi/id/board_vendor": "Amazon EC2",
		"hypervisor/uuid":           "ec2", // identifies EC2 on older instance types
	} {
		b, err := os.ReadFile(filepath.Join(sys, file))
		if err == nil && strings.HasPrefix(string(b), prefix) {
			return true
		}
	}
	return false
}
