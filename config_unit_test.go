package leasehold_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/lab"
	"github.com/leasehold-go/leasehold/localdynamo"
)

func TestANumberWithoutItsUnitIsRefusedWithTheLikelyOne(t *testing.T) {
	db := localdynamo.New().Client()
	for _, tc := range []struct {
		name   string
		change func(*leasehold.Config)
		says   []string
	}{
		{"renewals", func(c *leasehold.Config) { c.RenewEvery = 5 }, []string{"RenewEvery is 5ns", "5 * time.Second"}},
		{"the longest pause", func(c *leasehold.Config) { c.PollMax = 1 }, []string{"PollMax is 1ns", "1 * time.Second"}},
		{"the shortest pause", func(c *leasehold.Config) { c.PollMin = 25 }, []string{"PollMin is 25ns"}},
		{"the margin", func(c *leasehold.Config) { c.Margin = 2 }, []string{"Margin is 2ns", "2 * time.Second"}},
		{"milliseconds", func(c *leasehold.Config) { c.Margin = 2000 }, []string{"Margin is 2µs", "2000 * time.Millisecond"}},
		{"the lease", func(c *leasehold.Config) { c.Lease = 20 }, []string{"Lease is 20ns", "20 * time.Second", "at least 1s"}},
		{"the retention", func(c *leasehold.Config) { c.Retention = 86400 }, []string{"Retention is 86.4µs"}},
		{"the grace", func(c *leasehold.Config) { c.ReleaseGrace = 2 }, []string{"ReleaseGrace is 2ns"}},
		{"a margin a hair below the lease", func(c *leasehold.Config) { c.Margin = 20*time.Second - 1 }, []string{"Margin is 19.999999999s", "leaves 1ns", "at least 500ms"}},
		{"all at once", func(c *leasehold.Config) {
			c.RenewEvery, c.PollMax, c.Margin, c.ReleaseGrace = 5, 1, 30*time.Second, -1
		},
			[]string{"RenewEvery is 5ns", "PollMax is 1ns", "Margin is 30s", "ReleaseGrace is -1ns"}},
		{"two negative ones", func(c *leasehold.Config) { c.RenewEvery, c.Margin = -1, -1 }, []string{"RenewEvery is -1ns", "Margin is -1ns"}},
	} {
		cfg := lab.Config()
		tc.change(&cfg)
		_, err := leasehold.New(db, cfg)
		for _, says := range tc.says {
			if err == nil || !strings.Contains(err.Error(), says) {
				t.Errorf("%s: %q is missing in: %v", tc.name, says, err)
			}
		}
	}
	for name, change := range map[string]func(*leasehold.Config){
		"a millisecond": func(c *leasehold.Config) { c.PollMin, c.PollMax = time.Millisecond, time.Millisecond },
		"a short lease": func(c *leasehold.Config) { c.Lease = time.Second },
		"for ever":      func(c *leasehold.Config) { c.Retention = leasehold.Forever },
	} {
		cfg := lab.Config()
		change(&cfg)
		if _, err := leasehold.New(db, cfg); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestTheIdleConnectionsAreNoticedByTheNumberOfLocks(t *testing.T) {
	for _, shared := range []bool{false, true} {
		lab.InBubble(t, func(t *testing.T, w *lab.World) {
			var book logBook
			cfg := lab.Config()
			cfg.SharedLease, cfg.Logger = shared, slog.New(slog.NewTextHandler(&book, nil))
			pool := &pool{Wire: w.Wire()}
			c := w.ClientOf(w.Connect(nil, func(o *dynamodb.Options) { o.HTTPClient = pool }), cfg)
			for i := range 300 {
				if i == 100 && strings.Contains(strings.Join(book.lines(), ""), "MaxIdleConnsPerHost") {
					t.Error("warned of a hundred locks")
				}
				w.Acquire(c, fmt.Sprint(i))
			}
			if n := bytes.Count([]byte(strings.Join(book.lines(), "\n")), []byte("MaxIdleConnsPerHost=10")); n != 1 && !shared || n != 0 && shared {
				t.Errorf("shared lease %v: %d warnings", shared, n)
			}
			if err := c.Close(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
}

// pool is a wire that looks like the SDK's own HTTP client.
type pool struct{ *lab.Wire }

func (*pool) GetTransport() *http.Transport { return awshttp.NewBuildableClient().GetTransport() }
