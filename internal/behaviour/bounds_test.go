package behaviour_test

import (
	"context"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/lab"
)

type protoItem = map[string]types.AttributeValue

// scene is the state in which a call begins. The client c holds a lock and a group. It has also
// detached another lock, whose grant is in the field "grant". The client's wire has no fault yet.
type scene struct {
	*lab.World
	c     *leasehold.Client
	wire  *lab.Wire
	lock  *leasehold.Lock
	group *leasehold.Group
	grant leasehold.Grant
}

// The first four constants are the time limits of calls whose context does not end. A call that
// reaches its limit cancels its request, and may then take the time "undoes" to reverse any effect
// of this request.
const (
	tries    = 10 * time.Second // the documentation of NoWait and Get promises this limit
	trust    = 18 * time.Second // time for which a holder trusts its lock after a renewal
	term     = 20 * time.Second // the lease
	tokenUse = 5 * time.Minute  // time limit of a commit
	byCtx    = 0                // no time limit: under a fault, the call returns only when its context ends
	patience = 5 * time.Second  // timeout of the context, in the cases in which the context ends
	undoes   = 3*time.Second + 2*time.Second + time.Second
)

var calls = []struct {
	name  string
	most  time.Duration
	alone bool // if true, the call is not tested with Config.SharedLease
	call  func(ctx context.Context, s *scene) error
}{
	{"Acquire", byCtx, false, func(ctx context.Context, s *scene) error { return lab.ErrorOf(s.c.Acquire(ctx, "a")) }},
	{"TryAcquire", tries, false, func(ctx context.Context, s *scene) error { return lab.ErrorOf(s.c.TryAcquire(ctx, "a")) }},
	{"TryAcquire of a held key", tries, false, func(ctx context.Context, s *scene) error { return lab.ErrorOf(s.c.TryAcquire(ctx, "other's")) }},
	{"TryAcquire without renewal", tries, true, func(ctx context.Context, s *scene) error {
		return lab.ErrorOf(s.c.TryAcquire(ctx, "a", leasehold.WithoutRenewal()))
	}},
	{"AcquireAll", byCtx, false, func(ctx context.Context, s *scene) error {
		return lab.ErrorOf(s.c.AcquireAll(ctx, leasehold.Keys("a", "b", "c")))
	}},
	{"AcquireAll NoWait", tries, false, func(ctx context.Context, s *scene) error {
		return lab.ErrorOf(s.c.AcquireAll(ctx, leasehold.Keys("a", "b", "c"), leasehold.NoWait()))
	}},
	{"AcquireAll NoWait of a held key", tries, false, func(ctx context.Context, s *scene) error {
		return lab.ErrorOf(s.c.AcquireAll(ctx, leasehold.Keys("a", "other's", "z"), leasehold.NoWait()))
	}},
	{"AcquireAny", byCtx, false, func(ctx context.Context, s *scene) error {
		return lab.ErrorOf(s.c.AcquireAny(ctx, leasehold.Keys("a", "other's")))
	}},
	{"AcquireAny NoWait", tries, false, func(ctx context.Context, s *scene) error {
		return lab.ErrorOf(s.c.AcquireAny(ctx, leasehold.Keys("other's", "a"), leasehold.NoWait()))
	}},
	{"Do", byCtx, false, func(ctx context.Context, s *scene) error {
		return s.c.Do(ctx, "a", func(context.Context, *leasehold.Lock) error { return nil })
	}},
	{"Resume", byCtx, true, func(ctx context.Context, s *scene) error { return lab.ErrorOf(s.c.Resume(ctx, s.grant)) }},
	{"Get", tries, false, func(ctx context.Context, s *scene) error { return lab.ErrorOf(s.c.Get(ctx, "lock")) }},
	{"List", tries, false, func(ctx context.Context, s *scene) error {
		for _, err := range s.c.List(ctx, leasehold.ListOptions{}) {
			if err != nil {
				return err
			}
		}
		return nil
	}},
	{"Watch", byCtx, false, func(ctx context.Context, s *scene) error {
		for _, err := range s.c.Watch(ctx, "other's") {
			if err != nil {
				return err
			}
		}
		return nil
	}},
	{"Break", byCtx, false, func(ctx context.Context, s *scene) error {
		return s.c.Break(ctx, s.lock.Record(), leasehold.BreakOptions{})
	}},
	{"Close", byCtx, false, func(ctx context.Context, s *scene) error { return s.c.Close(ctx) }},

	{"Lock.Release", term, false, func(ctx context.Context, s *scene) error { return s.lock.Release(ctx) }},
	{"Lock.Release that deletes", term, false, func(ctx context.Context, s *scene) error {
		return s.lock.Release(ctx, leasehold.DeleteOnRelease(true))
	}},
	{"Lock.Renew", trust, false, func(ctx context.Context, s *scene) error { return s.lock.Renew(ctx) }},
	{"Lock.Commit", tokenUse, false, func(ctx context.Context, s *scene) error { return s.lock.Commit(ctx, someWrites()) }},
	{"Lock.CommitAndRelease", tokenUse + term, false, func(ctx context.Context, s *scene) error { return s.lock.CommitAndRelease(ctx, someWrites()) }},
	{"Lock.Read", byCtx, false, func(ctx context.Context, s *scene) error {
		return lab.ErrorOf(s.lock.Read(ctx, []types.TransactGetItem{{Get: &types.Get{TableName: aws.String("locks"), Key: protoItem{"key": lab.Str("x")}}}}))
	}},
	{"Lock.Do", byCtx, false, func(ctx context.Context, s *scene) error {
		return s.lock.Do(ctx, func(context.Context, *leasehold.Lock) error { return nil })
	}},
	{"Group.Release", term, false, func(ctx context.Context, s *scene) error { return s.group.Release(ctx) }},
	{"Group.Commit", tokenUse, false, func(ctx context.Context, s *scene) error { return s.group.Commit(ctx, someWrites()) }},
	{"Group.CommitAndRelease", tokenUse + term, false, func(ctx context.Context, s *scene) error { return s.group.CommitAndRelease(ctx, someWrites()) }},
}

func someWrites() []types.TransactWriteItem {
	return []types.TransactWriteItem{{Put: &types.Put{TableName: aws.String("locks"), Item: protoItem{"key": lab.Str("x")}}}}
}

var faults = map[string]lab.Fault{
	"hang":     lab.Cut,
	"5xx":      lab.Answer(func() *http.Response { return lab.Refusal(500, "InternalServerError") }),
	"throttle": lab.Throttled,
	"reset":    lab.Drop,
	"refused":  lab.Refused("AccessDeniedException"),
}

// replies are faults in which the server sends a reply with a bad body.
var replies = map[string]lab.Fault{
	"trickle": func(r *lab.Request) (*http.Response, error) {
		return answered(io.NopCloser(&trickle{r.Context()})), nil
	},
	"other JSON": lab.Answer(func() *http.Response { return answered(io.NopCloser(strings.NewReader(`{"name":"search"}`))) }),
	"no body":    lab.Answer(func() *http.Response { return answered(http.NoBody) }),
}

// answered returns a successful reply like DynamoDB's, but with the given body.
func answered(body io.ReadCloser) *http.Response {
	reply := lab.Refusal(http.StatusOK, "")
	_ = reply.Body.Close()
	reply.Body, reply.ContentLength = body, -1
	return reply
}

// trickle is the body of a reply that arrives one byte a second, for as long as the client
// reads it.
type trickle struct{ ctx context.Context }

func (b *trickle) Read(p []byte) (int, error) {
	select {
	case <-b.ctx.Done():
		return 0, b.ctx.Err()
	case <-time.After(time.Second):
		p[0] = ' '
		return 1, nil
	}
}

// kinds contains named sets of API operations. The test makes all operations of one set fail.
// PutItem is missing, because the library never sends it.
var kinds = map[string][]string{
	"get": {"GetItem"}, "update": {"UpdateItem"}, "delete": {"DeleteItem"}, "batch get": {"BatchGetItem"},
	"transact": {"TransactWriteItems"}, "transact get": {"TransactGetItems"}, "list": {"Scan", "Query"},
	"all reads":               {"GetItem", "BatchGetItem", "TransactGetItems", "Scan", "Query"},
	"all writes":              {"UpdateItem", "DeleteItem", "TransactWriteItems"},
	"reads and single writes": {"GetItem", "BatchGetItem", "TransactGetItems", "UpdateItem", "DeleteItem"},
	"everything":              {"GetItem", "BatchGetItem", "TransactGetItems", "Scan", "Query", "UpdateItem", "DeleteItem", "TransactWriteItems"},
}

func newScene(w *lab.World, shared bool) *scene {
	cfg := lab.Config()
	cfg.SharedLease = shared
	s := &scene{World: w}
	other, _ := w.Client(lab.Config())
	w.T.Cleanup(func() { _ = other.Close(context.Background()) })
	w.Acquire(other, "other's", leasehold.WithoutRenewal(), leasehold.WithLease(time.Hour))
	s.c, s.wire = w.Client(cfg)
	if !shared {
		s.grant = w.Detach(w.Acquire(s.c, "detached"))
	}
	s.lock, s.group = w.Acquire(s.c, "lock"), w.AcquireAll(s.c, leasehold.Keys("g1", "g2"))
	s.wire.Sent()
	return s
}

func TestCallsReturnWithinTimeLimitsUnderEveryFault(t *testing.T) {
	all, kinds := maps.Clone(faults), maps.Clone(kinds)
	maps.Copy(all, replies)
	if lab.IsQuick() { // keep only the faults that delay calls most
		maps.DeleteFunc(all, func(name string, _ lab.Fault) bool { return name != "hang" && name != "5xx" && name != "trickle" })
		maps.DeleteFunc(kinds, func(_ string, ops []string) bool { return len(ops) < 3 })
	}
	for _, c := range calls {
		t.Run(strings.ReplaceAll(c.name, " ", ""), func(t *testing.T) {
			for _, shared := range []bool{false, true} {
				if shared && c.alone {
					continue
				}
				used := map[string]bool{}
				// This run has no faults: it finds out which API operations the call uses.
				lab.InBubble(t, func(_ *testing.T, w *lab.World) {
					s := newScene(w, shared)
					_ = c.call(w.Within(patience), s)
					for _, op := range lab.Ops(s.wire.Sent()) {
						used[op] = true
					}
					_ = s.c.Close(context.Background())
				})
				for kind, ops := range kinds {
					if !slices.ContainsFunc(ops, func(op string) bool { return used[op] }) {
						continue
					}
					for name, fault := range all {
						for _, bounded := range []bool{true, false} {
							if !bounded && c.most == byCtx {
								continue
							}
							lab.InBubble(t, func(t *testing.T, w *lab.World) {
								s := newScene(w, shared)
								s.wire.SetFault(func(r *lab.Request) (*http.Response, error) {
									if slices.Contains(ops, r.Op) {
										return fault(r)
									}
									return r.Send()
								})
								ctx, cancel := context.WithCancel(context.Background())
								most := c.most
								if bounded {
									ctx, cancel = context.WithTimeout(context.Background(), patience)
									most = patience
								}
								defer cancel()
								began := time.Now()
								err := c.call(ctx, s)
								if took := time.Since(began); took > most+undoes {
									t.Errorf("%s (shared lease: %v, %s: %s) ended after %v, not %v: %v", c.name, shared, kind, name, took, most, err)
								}
								s.wire.SetFault(nil)
								_ = s.c.Close(context.Background())
								lab.Elapse(time.Minute) // let the requests in flight end
							})
						}
					}
				}
			}
		})
	}
}
