//go:build linux

package sharing

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/leasehold-go/leasehold/internal/lab"
	"github.com/leasehold-go/leasehold/proof/interop/engines"
	"github.com/leasehold-go/leasehold/proof/interop/peers"
	"github.com/leasehold-go/leasehold/proof/interop/proxy"
)

// match is a lock table that leasehold and a peer (another lock library) share on one
// server. Leasehold uses the layout of the peer.
type match struct {
	peer, ours peers.Peer
	server     *engines.Server
	settings   peers.Settings // settings that both libraries use
	poll       time.Duration
}

// matches runs a scenario with every peer library on every server.
func matches(t *testing.T, lease time.Duration, scenario func(t *testing.T, m match)) {
	engines.Each(t, func(t *testing.T, e engines.Engine) {
		t.Parallel()
		server := engines.Run(t, e)
		for i, p := range append(peers.All(), peers.Dynamolock) {
			t.Run(p.Name, func(t *testing.T) {
				if err := p.Install(peers.Patiently(t)); errors.Is(err, peers.ErrNotInstallable) {
					t.Skip(err)
				}
				m := match{peer: p, ours: peers.Ours(p.Layout), server: server, poll: 100 * time.Millisecond, settings: peers.Settings{
					Table: fmt.Sprintf("locks%d", i), Lease: lease,
				}}
				lab.OK(t, p.CreateTable(peers.Patiently(t), server, m.settings))
				scenario(t, m)
			})
		}
	})
}

// bothWays runs a scenario twice: with the peer in the first role and leasehold in the
// second, and the reverse. Both runs are parallel, because they mostly wait.
func (m match) bothWays(t *testing.T, scenario func(t *testing.T, first, second peers.Peer, key string)) {
	t.Run("peer first", func(t *testing.T) { t.Parallel(); scenario(t, m.peer, m.ours, "peer first") })
	t.Run("ours first", func(t *testing.T) { t.Parallel(); scenario(t, m.ours, m.peer, "ours first") })
}

// run starts a process that uses the library p. If p has heartbeats, the process renews six
// times in each lease.
func (m match) run(t *testing.T, p peers.Peer) *peers.Driver {
	t.Helper()
	return m.runAt(t, p, m.server.Endpoint)
}

// runBehind starts a process that uses the library p and sends its requests through a proxy.
func (m match) runBehind(t *testing.T, p peers.Peer) (*peers.Driver, *proxy.Proxy) {
	t.Helper()
	front := proxy.Run(t, m.server)
	return m.runAt(t, p, front.Endpoint), front
}

func (m match) runAt(t *testing.T, p peers.Peer, endpoint string) *peers.Driver {
	t.Helper()
	s := m.settings
	if p.Name != peers.DynamoDLM.Name { // dynamo-dlm has no setting for the pause between polls: it polls without pauses
		s.Poll = m.poll
	}
	if p.Heartbeats {
		s.Heartbeat = s.Lease / 6
	}
	return peers.Run(t, p, endpoint, s)
}

// item returns the item of a lock with all its attributes, or nil if the item does not exist.
func (m match) item(t *testing.T, key string) map[string]types.AttributeValue {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), peers.Patience)
	defer cancel()
	out := lab.Must(m.server.Client().Scan(ctx, &dynamodb.ScanInput{
		TableName: aws.String(m.settings.Table), ConsistentRead: aws.Bool(true),
	}))(t)
	for _, item := range out.Items {
		for _, v := range item {
			if s, ok := v.(*types.AttributeValueMemberS); ok && s.Value == key {
				return item
			}
		}
	}
	return nil
}

// text returns a string attribute of an item, or "" if the item does not have this attribute.
func text(item map[string]types.AttributeValue, name string) string {
	if s, ok := item[name].(*types.AttributeValueMemberS); ok {
		return s.Value
	}
	return ""
}

// integer returns a number attribute of an item, or 0 if the item does not have this attribute.
func integer(t *testing.T, item map[string]types.AttributeValue, name string) (n int64) {
	t.Helper()
	if v, ok := item[name].(*types.AttributeValueMemberN); ok {
		lab.Must(fmt.Sscan(v.Value, &n))(t)
	}
	return n
}

// tick calls fn every 20 ms until fn returns true. It fails the test after [peers.Patience].
func tick(t *testing.T, what string, fn func() bool) {
	t.Helper()
	again := time.NewTicker(20 * time.Millisecond)
	defer again.Stop()
	ctx, cancel := context.WithTimeout(t.Context(), peers.Patience)
	defer cancel()
	for !fn() {
		select {
		case <-again.C:
		case <-ctx.Done():
			t.Fatalf("%s: not within %v", what, peers.Patience)
		}
	}
}

// elapse waits for d in real time, because the processes under test run in real time.
func elapse(t *testing.T, d time.Duration) {
	t.Helper()
	select {
	case <-time.After(d):
	case <-t.Context().Done():
		t.Fatal(t.Context().Err())
	}
}

// waiting fails the test if the waiter's call has been answered. It is called while another client
// holds the key.
func waiting(t *testing.T, c *peers.Call) {
	t.Helper()
	select {
	case <-c.Done():
		reply, err := c.Await(t)
		t.Fatalf("a waiter was answered while the key was held: %+v, %v", reply.Record, err)
	default:
	}
}
