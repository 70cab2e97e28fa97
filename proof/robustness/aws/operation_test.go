package aws

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/election"
	"github.com/leasehold-go/leasehold/internal/lab"
)

// vault provides credentials, or returns an error if one is set.
type vault struct {
	mu  sync.Mutex
	err error
}

func (v *vault) Retrieve(context.Context) (sdk.Credentials, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	return sdk.Credentials{AccessKeyID: "a", SecretAccessKey: "b"}, v.err
}

func (v *vault) set(err error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.err = err
}

// scene contains the client under test, with its own network and credential provider. The
// client holds several locks. A second client holds another key.
type scene struct {
	*lab.World
	c     *leasehold.Client
	wire  *lab.Wire
	vault vault

	lock   *leasehold.Lock  // lock of c on the key "job"
	group  *leasehold.Group // locks of c on the keys "left" and "right"
	other  *leasehold.Client
	theirs *leasehold.Lock // lock of the client other on the key "theirs"
	grant  leasehold.Grant // detached grant of the key "passed", which c can resume
}

func newScene(t *testing.T, w *lab.World, cfg leasehold.Config) *scene {
	t.Helper()
	return newSceneOver(t, w, cfg, func(wire *lab.Wire) dynamodb.HTTPClient { return wire })
}

// newSceneOver is like newScene, but the client under test sends its requests with the HTTP
// client that the parameter "through" returns for the simulated network.
func newSceneOver(t *testing.T, w *lab.World, cfg leasehold.Config, through func(*lab.Wire) dynamodb.HTTPClient) *scene {
	t.Helper()
	s := newIdleSceneOver(t, w, cfg, through)
	s.lock = w.Acquire(s.c, "job")
	s.group = w.AcquireAll(s.c, leasehold.Keys("left", "right"))
	s.theirs = w.Acquire(s.other, "theirs")
	s.grant = w.Detach(w.Acquire(s.other, "passed"))
	return s
}

// newIdleScene is like newScene, but neither client holds a lock.
func newIdleScene(t *testing.T, w *lab.World, cfg leasehold.Config) *scene {
	t.Helper()
	return newIdleSceneOver(t, w, cfg, func(wire *lab.Wire) dynamodb.HTTPClient { return wire })
}

func newIdleSceneOver(t *testing.T, w *lab.World, cfg leasehold.Config, through func(*lab.Wire) dynamodb.HTTPClient) *scene {
	t.Helper()
	s := &scene{World: w.Work()}
	s.wire = w.Wire()
	s.c = w.ClientOf(w.Connect(nil, func(o *dynamodb.Options) { o.HTTPClient, o.Credentials = through(s.wire), &s.vault }), cfg)
	s.other, _ = w.Client(lab.Config())
	return s
}

// begin makes the network and the credential provider fail as x describes. end makes both
// work again.
func (s *scene) begin(x trouble) {
	s.wire.SetFault(x.answer)
	s.vault.set(x.vault)
}

func (s *scene) end() { s.begin(trouble{}) }

// operation is a call of leasehold's public API, and what the tests expect of the call.
type operation struct {
	name      string
	op        string        // operation name that the errors of this call contain
	key       string        // key that the errors of this call contain
	grants    []string      // keys that the operation acquires
	writes    bool          // the operation changes an existing record, so its outcome is unknown if no answer arrives
	reads     bool          // the operation sends only reads
	transacts bool          // the operation reads in a transaction
	watches   bool          // the operation watches a key, and yields nothing during a failure of AWS
	commits   bool          // the operation includes the caller's own writes
	joins     bool          // the operation's error may combine the errors of several locks
	hasty     bool          // the operation returns without waiting for answers that do not arrive
	ends      string        // keys of the locks that the operation ends
	grace     time.Duration // how long the operation may continue after the end of its context
	do        func(ctx context.Context, s *scene) error
	again     func(ctx context.Context, s *scene) error // call that the test makes after the simulated failure has ended; nil to repeat do
}

var errNothing = errors.New("nothing was seen")

// operations lists the operations in the order of the page docs/internals/aws-errors.md.
var operations = []operation{
	{name: "Acquire", op: "acquire", key: "free", grants: []string{"free"}, do: func(ctx context.Context, s *scene) error {
		return lab.ErrorOf(s.c.Acquire(ctx, "free"))
	}},
	{name: "TryAcquire", op: "acquire", key: "free", grants: []string{"free"}, do: func(ctx context.Context, s *scene) error {
		return lab.ErrorOf(s.c.TryAcquire(ctx, "free"))
	}},
	{name: "Do", op: "acquire", key: "free", grants: []string{"free"}, do: func(ctx context.Context, s *scene) error {
		return s.c.Do(ctx, "free", func(context.Context, *leasehold.Lock) error { return nil })
	}},
	{name: "AcquireAll", op: "acquire", key: "free", grace: 2 * time.Second, grants: []string{"free", "more"}, do: func(ctx context.Context, s *scene) error {
		return lab.ErrorOf(s.c.AcquireAll(ctx, leasehold.Keys("free", "more")))
	}},
	{name: "AcquireAny", op: "acquire", key: "free", grants: []string{"free", "more"}, do: func(ctx context.Context, s *scene) error {
		return lab.ErrorOf(s.c.AcquireAny(ctx, leasehold.Keys("free", "more")))
	}},
	{name: "Election.Campaign", op: "acquire", key: "free", grants: []string{"free"}, do: func(ctx context.Context, s *scene) error {
		e, err := election.New(s.c, "free")
		if err != nil {
			return err
		}
		return lab.ErrorOf(e.Campaign(ctx, "me"))
	}},
	{name: "Client.Resume", op: "resume", key: "passed", writes: true, grants: []string{"passed"}, do: func(ctx context.Context, s *scene) error {
		return lab.ErrorOf(s.c.Resume(ctx, s.grant))
	}},
	{name: "Lock.Renew", op: "renew", key: "job", writes: true, do: func(ctx context.Context, s *scene) error { return s.lock.Renew(ctx) }},
	{name: "Lock.Commit", op: "commit", key: "job", writes: true, commits: true, do: func(ctx context.Context, s *scene) error {
		return s.lock.Commit(ctx, lab.Writes(lab.Note("a", "1")))
	}},
	{name: "Lock.CommitAndRelease", op: "commit", key: "job", writes: true, commits: true, hasty: true, joins: true, ends: "job", do: func(ctx context.Context, s *scene) error {
		return s.lock.CommitAndRelease(ctx, lab.Writes(lab.Note("a", "1")))
	}, again: func(ctx context.Context, s *scene) error { return s.lock.Release(ctx) }},
	{name: "Group.Commit", op: "commit", key: "left", writes: true, commits: true, do: func(ctx context.Context, s *scene) error {
		return s.group.Commit(ctx, lab.Writes(lab.Note("a", "1")))
	}},
	{name: "Lock.Read", op: "read", key: "job", reads: true, transacts: true, do: func(ctx context.Context, s *scene) error {
		return lab.ErrorOf(s.lock.Read(ctx, nil))
	}},
	{name: "Lock.Release", op: "release", key: "job", writes: true, ends: "job", do: func(ctx context.Context, s *scene) error { return s.lock.Release(ctx) }},
	{name: "Group.Release", op: "release", key: "left", writes: true, joins: true, ends: "left", do: func(ctx context.Context, s *scene) error { return s.group.Release(ctx) }},
	{name: "Client.Close", op: "release", writes: true, ends: "job, left", do: func(ctx context.Context, s *scene) error { return s.c.Close(ctx) },
		again: func(ctx context.Context, s *scene) error { return lab.ErrorOf(s.other.Acquire(ctx, "job")) }},
	{name: "Client.Break", op: "break", key: "theirs", writes: true, do: func(ctx context.Context, s *scene) error {
		return s.c.Break(ctx, s.theirs.Record(), leasehold.BreakOptions{})
	}},
	{name: "Client.Get", op: "get", key: "theirs", reads: true, do: func(ctx context.Context, s *scene) error {
		return lab.ErrorOf(s.c.Get(ctx, "theirs"))
	}},
	{name: "Client.List", op: "list", reads: true, do: func(ctx context.Context, s *scene) error {
		for _, err := range s.c.List(ctx, leasehold.ListOptions{}) {
			if err != nil {
				return err
			}
		}
		return nil
	}},
	{name: "Client.Watch", op: "watch", key: "theirs", reads: true, watches: true, do: func(ctx context.Context, s *scene) error {
		for _, err := range s.c.Watch(ctx, "theirs") {
			return err
		}
		return errNothing
	}},
	{name: "Election.Observe", op: "watch", key: "theirs", reads: true, watches: true, do: func(ctx context.Context, s *scene) error {
		e, err := election.New(s.c, "theirs")
		if err != nil {
			return err
		}
		for _, err := range e.Observe(ctx) {
			return err
		}
		return errNothing
	}},
}
