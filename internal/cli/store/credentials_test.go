package store

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/smithy-go"

	"github.com/leasehold-go/leasehold/internal/cli/requests"
	"github.com/leasehold-go/leasehold/internal/lab"
)

func key(n int) aws.CredentialsProvider {
	return credentials.NewStaticCredentialsProvider(fmt.Sprint("key", n), "secret", "")
}

func refusedBy(code string) requests.Request {
	return requests.Request{Err: &smithy.GenericAPIError{Code: code}}
}

func TestCredentialSourceReloadsAfterRefusal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		loads := 0
		var fails error
		source := &credentialSource{current: key(0), load: func(context.Context) (aws.CredentialsProvider, error) {
			loads++
			return key(loads), fails
		}}
		has := func(when, id string) {
			t.Helper()
			if c, err := source.Retrieve(t.Context()); err != nil || c.AccessKeyID != id {
				t.Errorf("%s: %s, %v, want %s", when, c.AccessKeyID, err, id)
			}
		}
		has("at first", "key0")
		for _, code := range []string{"", "AccessDeniedException", "ThrottlingException", "ConditionalCheckFailedException"} {
			source.saw(refusedBy(code))
			has("after "+code, "key0")
		}
		source.saw(refusedBy("ExpiredTokenException"))
		has("after a refusal", "key1")
		has("later", "key1")
		source.saw(refusedBy("UnrecognizedClientException"))
		has("after a refusal within the pause", "key1")
		time.Sleep(reloadPause)
		has("after the pause", "key2")
		fails = errors.New("half a file")
		time.Sleep(reloadPause)
		source.saw(refusedBy("InvalidSignatureException"))
		has("after a load that has failed", "key2")
		has("within the pause after it", "key2")
		fails = nil
		time.Sleep(reloadPause)
		has("after the next load", "key4")
	})
}

func TestCredentialSourceNeverLoadsConcurrently(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		loads := 0
		source := &credentialSource{current: key(0), load: func(context.Context) (aws.CredentialsProvider, error) {
			loads++
			time.Sleep(5 * reloadPause)
			return key(loads), nil
		}}
		source.saw(refusedBy("ExpiredToken"))
		var wg sync.WaitGroup
		for n := range 50 {
			wg.Go(func() {
				time.Sleep(time.Duration(n) * reloadPause / 10)
				if _, err := source.Retrieve(t.Context()); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if loads != 1 {
			t.Errorf("%d loads", loads)
		}
	})
}

func TestEC2IsDetectedFromHardware(t *testing.T) {
	for _, c := range []struct {
		file, content string
		want          bool
	}{
		{"class/dmi/id/sys_vendor", "Amazon EC2\n", true},
		{"class/dmi/id/board_vendor", "Amazon EC2\n", true},
		{"hypervisor/uuid", "ec2e1916-9099-7caf-fd21-012345abcdef\n", true},
		{"hypervisor/uuid", "4b2e1916-9099-7caf-fd21-012345abcdef\n", false},
		{"class/dmi/id/sys_vendor", "QEMU\n", false},
	} {
		sys := t.TempDir()
		path := filepath.Join(sys, c.file)
		lab.OK(t, os.MkdirAll(filepath.Dir(path), 0o700))
		lab.OK(t, os.WriteFile(path, []byte(c.content), 0o600))
		if got := onEC2(sys); got != c.want {
			t.Errorf("%s says %q: %v", c.file, c.content, got)
		}
	}
}
