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

// reloadPause is the shortest time between two loads of credentials that DynamoDB refuses.
// Several requests may be refused at the same time, and a load may start a program.
const reloadPause = time.Second

// credentialSource provides credentials. After DynamoDB has refused the current
// credentials, it loads the AWS configuration again. The SDK itself never does that: it
// reads a credentials file only once. It also keeps the result of a credential_process
// until the expiry that the program has set.
type credentialSource struct {
	load     func(context.Context) (aws.CredentialsProvider, error)
	metadata bool // this machine is known or expected to have a metadata service

	mu       sync.Mutex // not held while load runs
	current  aws.CredentialsProvider
	refused  bool // DynamoDB has refused the credentials of current
	loading  bool
	loadedAt time.Time // start of the last load after a refusal; zero if there was none
}

// saw records whether DynamoDB refused the credentials of a request. It is called after
// each request.
func (c *credentialSource) saw(r requests.Request) {
	if !decide.CredentialsRefused(r.Err) {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.refused = true
}

// Retrieve returns credentials for a request. The SDK asks a metadata service last, on
// every machine. If that fails, the request is retried only on a machine that is expected
// to have such a service.
func (c *credentialSource) Retrieve(ctx context.Context) (aws.Credentials, error) {
	found, err := c.retrieve(ctx)
	switch {
	case err == nil, !strings.Contains(err.Error(), decide.NoMetadata):
	case !c.metadata:
		err = errors.New(err.Error()) // keeps only the text: a timeout in the error chain would cause a retry
	case decide.ServerSilent(err):
		err = failure.Like(err, "this machine's metadata service does not answer: "+strings.ReplaceAll(err.Error(), decide.NoMetadata+", ", ""))
	}
	return found, err
}

// retrieve returns credentials for a request. If DynamoDB has refused the current
// credentials, it tries to load newer ones. If that fails, it returns the current ones.
// DynamoDB may have refused them by mistake, and the credentials file may have been
// deleted.
func (c *credentialSource) retrieve(ctx context.Context) (aws.Credentials, error) {
	c.mu.Lock()
	current := c.current
	reload := c.refused && !c.loading && time.Since(c.loadedAt) >= reloadPause
	if reload {
		c.loading, c.loadedAt = true, time.Now()
	}
	c.mu.Unlock()
	if !reload {
		return current.Retrieve(ctx)
	}
	next, err := c.load(ctx)
	var found aws.Credentials
	if err == nil {
		found, err = next.Retrieve(ctx)
	}
	c.mu.Lock()
	c.loading = false
	if err == nil {
		c.current, c.refused = next, false
	}
	c.mu.Unlock()
	if err != nil {
		return current.Retrieve(ctx)
	}
	return found, nil
}

// acceptAny makes c provide placeholder credentials where there are no real ones. It must
// be called before the first Retrieve.
func (c *credentialSource) acceptAny() {
	load := c.load
	c.current = orPlaceholder(c.current)
	c.load = func(ctx context.Context) (aws.CredentialsProvider, error) {
		next, err := load(ctx)
		return orPlaceholder(next), err
	}
}

// orPlaceholder returns a provider of the credentials of first, or of placeholder
// credentials if first has none.
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

// hasMetadata reports whether this machine is expected to have a metadata service. This is
// so if it is an EC2 instance, or if a setting names the service as a source of
// credentials.
func (s *Settings) hasMetadata(cfg aws.Config) bool {
	for _, source := range cfg.ConfigSources {
		if shared, ok := source.(config.SharedConfig); ok && (shared.EC2IMDSEndpoint != "" || shared.CredentialSource == "Ec2InstanceMetadata") {
			return true
		}
	}
	return s.Getenv("AWS_EC2_METADATA_SERVICE_ENDPOINT") != "" || s.OnEC2()
}

// OnEC2 reports whether this machine is an EC2 instance. It reads the kernel's information
// about the hardware, and sends nothing over the network.
func OnEC2() bool { return onEC2("/sys") }

func onEC2(sys string) bool {
	for file, prefix := range map[string]string{
		"class/dmi/id/sys_vendor":   "Amazon EC2",
		"class/dmi/id/board_vendor": "Amazon EC2",
		"hypervisor/uuid":           "ec2", // file that shows EC2 on older instance types
	} {
		b, err := os.ReadFile(filepath.Join(sys, file))
		if err == nil && strings.HasPrefix(string(b), prefix) {
			return true
		}
	}
	return false
}
