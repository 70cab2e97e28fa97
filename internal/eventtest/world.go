package eventtest

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/lab"
)

// lease is long, so that clients emit few events for renewals.
const lease = 5 * time.Minute

// World is an in-memory DynamoDB that contains a lock table named "locks".
type World struct{ *lab.World }

// New returns a World that is closed when the test ends.
func New(t *testing.T) *World {
	t.Helper()
	return &World{lab.New(t)}
}

// Client returns a client that behaves like a separate process, and the Wire of that client.
func (w *World) Client(onEvent func(context.Context, leasehold.Event)) (*leasehold.Client, *Wire) {
	w.T.Helper()
	cfg := lab.Config()
	cfg.Lease, cfg.OnEvent = lease, onEvent
	c, wire := w.World.Client(cfg)
	return c, &Wire{wire}
}

// Acquire acquires a key with the client c. It ends the test if the call fails.
func (w *World) Acquire(ctx context.Context, c *leasehold.Client, key string) *leasehold.Lock {
	w.T.Helper()
	lock, err := c.Acquire(ctx, key)
	if err != nil {
		w.T.Fatal(err)
	}
	return lock
}

// Break breaks the grant of a key as an operator would, while the holder still trusts its lock.
func (w *World) Break(c *leasehold.Client, key string) {
	w.T.Helper()
	r, err := c.Get(w.T.Context(), key)
	if err == nil {
		err = c.Break(w.T.Context(), r, leasehold.BreakOptions{})
	}
	if err != nil {
		w.T.Fatal(err)
	}
}

// missing returns a condition check that is never true, so that a commit that contains it fails.
func missing() types.TransactWriteItem {
	return types.TransactWriteItem{ConditionCheck: &types.ConditionCheck{
		TableName: aws.String("locks"), Key: lab.Key("no such key"),
		ConditionExpression: aws.String("attribute_exists(#k)"), ExpressionAttributeNames: map[string]string{"#k": "key"},
	}}
}

// Wire is the network between one client and the engine.
type Wire struct{ *lab.Wire }

// Throttle makes the network reject the next request of the given operation as throttled.
func (w *Wire) Throttle(op string) {
	w.SetFault(lab.Once(func(c lab.Call) bool { return c.Op == op }, func(*lab.Request) (*http.Response, error) {
		return lab.Refusal(http.StatusBadRequest, "ThrottlingException"), nil
	}))
}

// Cut makes the network lose every request until Mend is called.
func (w *Wire) Cut() {
	w.SetFault(func(*lab.Request) (*http.Response, error) { return nil, lab.ErrReset })
}

// Mend ends the effect of Cut.
func (w *Wire) Mend() { w.SetFault(nil) }
