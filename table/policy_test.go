package table_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"iter"
	"log/slog"
	"maps"
	"net/http"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/election"
	"github.com/leasehold-go/leasehold/internal/lab"
	"github.com/leasehold-go/leasehold/internal/records"
	"github.com/leasehold-go/leasehold/layout"
	"github.com/leasehold-go/leasehold/localdynamo"
	"github.com/leasehold-go/leasehold/rwlock"
	"github.com/leasehold-go/leasehold/semaphore"
	"github.com/leasehold-go/leasehold/table"
)

// accesses lists all kinds of access for which a policy exists.
var accesses = []table.Access{table.Use, table.Operate, table.Read}

const arn = "arn:aws:dynamodb:eu-west-1:123456789012:table/locks"

// document is an IAM policy document.
type document struct {
	Version   string
	Statement []struct {
		Effect    string
		Action    []string
		Resource  string
		Condition map[string]map[string]stringOrStrings
	}
}

func policy(t *testing.T, s table.Spec, arn string, a table.Access, prefixes ...string) document {
	t.Helper()
	var d document
	text := lab.Must(s.Policy(arn, a, prefixes...))(t)
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&d); err != nil || decoder.More() {
		t.Fatalf("%v in %s", err, text)
	}
	if d.Version != "2012-10-17" || len(d.Statement) != 1 || d.Statement[0].Effect != "Allow" || d.Statement[0].Resource != arn {
		t.Errorf("policy %+v", d)
	}
	return d
}

// iam simulates IAM for requests to the lock table. It records their actions, and denies
// actions that the policy does not allow. A nil policy allows every action.
type iam struct {
	engine    *localdynamo.Engine
	partition string // name of the partition key
	policy    *document
	mu        sync.Mutex
	asked     map[string]bool
	items     []access
}

func (i *iam) Do(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	_, operation, _ := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
	items := accessesOf(operation, body, i.partition)
	i.mu.Lock()
	for _, a := range items {
		i.asked[a.action] = true
	}
	i.items = append(i.items, items...)
	i.mu.Unlock()
	if i.policy != nil && !slices.ContainsFunc(items, i.policy.denies) || i.policy == nil {
		return i.engine.RoundTrip(r)
	}
	return &http.Response{
		StatusCode: http.StatusBadRequest, Request: r, Header: http.Header{"Content-Type": {"application/x-amz-json-1.0"}},
		Body: io.NopCloser(strings.NewReader(`{"__type":"com.amazon.coral.service#AccessDeniedException","Message":"not authorized"}`)),
	}, nil
}

// account simulates an AWS account with a lock table and two clients.
type account struct {
	*testing.T
	iam           *iam
	layout        layout.Layout
	first, second *leasehold.Client
}

func newAccount(t *testing.T, l layout.Layout) *account {
	proto := lab.Must(records.Of(l))(t)
	a := &account{T: t, layout: l, iam: &iam{engine: localdynamo.New(), partition: proto.Schema().Partition, asked: map[string]bool{}}}
	t.Cleanup(func() { _ = a.iam.engine.Close() })
	db := a.iam.engine.Client()
	for _, s := range []table.Spec{{Name: "locks", Layout: l}, {Name: "books", Layout: layout.AWSLabs{}}} {
		lab.OK(t, table.Create(t.Context(), db, s))
	}
	a.first, a.second = a.client(false), a.client(false)
	return a
}

func (a *account) client(shared bool) *leasehold.Client {
	a.Helper()
	cfg := leasehold.Config{Table: "locks", Layout: a.layout, Logger: slog.New(slog.DiscardHandler), SharedLease: shared}
	return lab.Must(leasehold.New(a.db(), cfg))(a)
}

// db returns a DynamoDB client whose requests the simulated IAM checks.
func (a *account) db() *dynamodb.Client {
	return a.iam.engine.Client(func(o *dynamodb.Options) { o.HTTPClient = a.iam })
}

func (a *account) must(errs ...error) {
	a.Helper()
	lab.OK(a, errors.Join(errs...))
}

func (a *account) lock(c *leasehold.Client, key string, opts ...leasehold.AcquireOption) *leasehold.Lock {
	a.Helper()
	return lab.Must(c.Acquire(a.Context(), key, opts...))(a)
}

func (a *account) group(keys ...string) *leasehold.Group {
	a.Helper()
	return lab.Must(a.first.AcquireAll(a.Context(), leasehold.Keys(keys...)))(a)
}

// election returns an election for the client c.
func (a *account) election(c *leasehold.Client) *election.Election {
	a.Helper()
	return lab.Must(election.New(c, "k"))(a)
}

// term campaigns with the client c, and returns the lock of the term that c has won.
func (a *account) term(c *leasehold.Client) *leasehold.Lock {
	a.Helper()
	return lab.Must(a.election(c).Campaign(a.Context(), ""))(a)
}

// semaphore returns a semaphore with two permits.
func (a *account) semaphore() *semaphore.Semaphore {
	a.Helper()
	return lab.Must(semaphore.New(a.first, "k", 2))(a)
}

// readWrite returns a read/write lock that consists of two keys.
func (a *account) readWrite() *rwlock.RWLock {
	a.Helper()
	return lab.Must(rwlock.New(a.first, "k", 2))(a)
}

// nothing is a function for Do that does no work.
func nothing(context.Context, *leasehold.Lock) error { return nil }

// write returns an example of the writes that users pass to Commit: a Put to a table of their own.
func write() []types.TransactWriteItem {
	return []types.TransactWriteItem{{Put: &types.Put{TableName: aws.String("books"),
		Item: map[string]types.AttributeValue{"key": &types.AttributeValueMemberS{Value: "1"}}}}}
}

// The method "later" releases the lock after one minute, in the background.
func (a *account) later(l *leasehold.Lock) {
	time.AfterFunc(time.Minute, func() {
		if err := l.Release(context.Background()); err != nil {
			a.Error(err)
		}
	})
}

// The function "twice" reads two values of a sequence, and then stops.
func twice[V any](a *account, all iter.Seq2[V, error]) {
	seen := 0
	for _, err := range all {
		a.must(err)
		if seen++; seen == 2 {
			break
		}
	}
}

// calls contains, for each method of the library that sends requests, a function that calls the
// method. The methods are grouped by the access that they need.
var calls = map[table.Access]map[string]func(a *account){
	table.Use: {
		"Client.Acquire": func(a *account) {
			a.later(a.lock(a.first, "k"))
			a.must(a.lock(a.second, "k").Release(a.Context())) // this acquisition waits until the other client releases
			a.lock(a.first, "dead", leasehold.WithoutRenewal())
			a.must(a.lock(a.second, "dead").Release(a.Context())) // this acquisition takes the key over from a dead holder
			first, second := a.lock(a.first, "k"), make(chan *leasehold.Lock)
			go func() { second <- a.lock(a.first, "k") }()
			synctest.Wait()
			a.must(first.Release(a.Context())) // this release hands the key to a waiter
			a.must((<-second).Release(a.Context()))
		},
		"Client.ForgetDone": func(a *account) {
			if a.layout.Name() != "native" {
				a.must(a.lock(a.first, "k").Release(a.Context()))
				return
			}
			a.must(a.first.Do(a.Context(), "k", nothing, leasehold.Once("it")))
			a.must(a.first.ForgetDone(a.Context(), lab.Must(a.first.Get(a.Context(), "k"))(a)))
		},
		"Client.TryAcquire": func(a *account) {
			l := lab.Must(a.first.TryAcquire(a.Context(), "k"))(a)
			lab.WantErr(a, "TryAcquire", lab.ErrorOf(a.second.TryAcquire(a.Context(), "k")), leasehold.ErrHeld)
			a.must(l.Release(a.Context()))
		},
		"Client.AcquireAll": func(a *account) {
			a.later(a.lock(a.second, "n"))
			a.must(a.group("k", "n", "m").Release(a.Context()))
			a.lock(a.second, "dead", leasehold.WithoutRenewal())
			a.must(a.group("k", "dead").Release(a.Context()))
		},
		"Client.AcquireAny": func(a *account) {
			a.later(a.lock(a.second, "k"))
			l := a.lock(a.second, "n")
			one := lab.Must(a.first.AcquireAny(a.Context(), leasehold.Keys("k", "n")))(a)
			a.must(l.Release(a.Context()), one.Release(a.Context()))
		},
		"Client.Do": func(a *account) { a.must(a.first.Do(a.Context(), "k", nothing)) },
		"Client.Resume": func(a *account) {
			g := lab.Must(a.lock(a.first, "k").Detach())(a)
			a.must(lab.Must(a.second.Resume(a.Context(), g))(a).Release(a.Context()))
		},
		"Client.Close": func(a *account) {
			c := a.client(false)
			a.lock(c, "k")
			a.must(c.Close(a.Context()))
		},
		"Config.SharedLease": func(a *account) {
			c := a.client(a.layout.Name() == "native") // only the native layout has shared leases
			a.later(a.lock(c, "k"))
			a.lock(c, "n")
			other := a.client(a.layout.Name() == "native")
			a.must(a.lock(other, "k").Release(a.Context()))
			a.must(c.Close(a.Context()), other.Close(a.Context()))
		},
		"Lock.Renew": func(a *account) {
			l := a.lock(a.first, "k")
			time.Sleep(time.Minute) // time in which the client also sends background renewals
			a.must(l.Renew(a.Context()))
			a.must(l.Release(a.Context()))
		},
		"Lock.Release": func(a *account) {
			a.must(a.lock(a.first, "k").Release(a.Context()))
			a.must(a.lock(a.first, "k").Release(a.Context(), leasehold.DeleteOnRelease(true)))
		},
		"Lock.Do": func(a *account) { a.must(a.lock(a.first, "k").Do(a.Context(), nothing)) },
		"Lock.Commit": func(a *account) {
			l := a.lock(a.first, "k")
			a.must(l.Commit(a.Context(), write()))
			a.must(l.Commit(a.Context(), nil))
			a.must(l.Release(a.Context()))
		},
		"Lock.CommitAndRelease": func(a *account) {
			a.must(a.lock(a.first, "k").CommitAndRelease(a.Context(), write()))
			a.must(a.lock(a.first, "k").CommitAndRelease(a.Context(), write(), leasehold.DeleteOnRelease(true)))
		},
		"Lock.Guards": func(a *account) {
			l := a.lock(a.first, "k")
			_, err := a.db().TransactWriteItems(a.Context(), &dynamodb.TransactWriteItemsInput{TransactItems: append(write(), l.Guards()...)})
			a.must(l.GuardError(err, 1), l.Release(a.Context()))
		},
		"Lock.Read": func(a *account) {
			l := a.lock(a.first, "k")
			_, err := l.Read(a.Context(), []types.TransactGetItem{{Get: &types.Get{TableName: aws.String("books"),
				Key: map[string]types.AttributeValue{"key": &types.AttributeValueMemberS{Value: "1"}}}}})
			a.must(err, l.Release(a.Context()))
		},
		"Group.Release": func(a *account) {
			a.must(a.group("k", "n").Release(a.Context()))
			a.must(a.group("k", "n").Release(a.Context(), leasehold.DeleteOnRelease(true)))
		},
		"Group.Do": func(a *account) {
			a.must(a.group("k", "n").Do(a.Context(), func(context.Context, *leasehold.Group) error { return nil }))
		},
		"Group.Commit": func(a *account) {
			g := a.group("k", "n")
			a.must(g.Commit(a.Context(), write()), g.Release(a.Context()))
		},
		"Group.CommitAndRelease": func(a *account) { a.must(a.group("k", "n").CommitAndRelease(a.Context(), write())) },
		"Group.Guards": func(a *account) {
			g := a.group("k", "n")
			_, err := a.db().TransactWriteItems(a.Context(), &dynamodb.TransactWriteItemsInput{TransactItems: append(write(), g.Guards()...)})
			a.must(g.GuardError(err, 1), g.Release(a.Context()))
		},
		"Election.Campaign": func(a *account) {
			a.later(a.term(a.first))
			a.must(a.term(a.second).Release(a.Context()))
		},
		"Election.Lead": func(a *account) { a.must(a.election(a.first).Lead(a.Context(), "", nothing)) },
		"Election.Leader": func(a *account) {
			lab.WantErr(a, "Leader", lab.ErrorOf(a.election(a.first).Leader(a.Context())), election.ErrNoLeader)
		},
		"Election.Observe": func(a *account) {
			a.later(a.term(a.second))
			twice(a, a.election(a.first).Observe(a.Context()))
		},
		"Election.StepDown": func(a *account) {
			term := a.term(a.second)
			if a.layout.Name() != "native" {
				a.must(term.Release(a.Context()))
				return
			}
			_ = a.election(a.second).OnStepDown(term, func() { a.later(term) })
			a.must(a.election(a.first).StepDown(a.Context()))
		},
		"Semaphore.Acquire": func(a *account) {
			for range 3 {
				a.later(lab.Must(a.semaphore().Acquire(a.Context()))(a))
			}
			time.Sleep(2 * time.Minute)
		},
		"Semaphore.Do": func(a *account) { a.must(a.semaphore().Do(a.Context(), nothing)) },
		"Client.Watch": func(a *account) {
			a.later(a.lock(a.second, "k"))
			twice(a, a.first.Watch(a.Context(), "k"))
		},
		"RWLock.DoRead": func(a *account) { a.must(a.readWrite().DoRead(a.Context(), nothing)) },
		"RWLock.DoWrite": func(a *account) {
			a.must(a.readWrite().DoWrite(a.Context(), func(context.Context, *leasehold.Group) error { return nil }))
		},
		"RWLock.AcquireRead":  func(a *account) { a.later(lab.Must(a.readWrite().AcquireRead(a.Context()))(a)) },
		"RWLock.AcquireWrite": func(a *account) { a.must(lab.Must(a.readWrite().AcquireWrite(a.Context()))(a).Release(a.Context())) },
	},
	table.Read: {
		"Client.Get": func(a *account) {
			lab.WantErr(a, "Get", lab.ErrorOf(a.first.Get(a.Context(), "k")), leasehold.ErrNotFound)
		},
		"Client.List": func(a *account) {
			for _, opts := range []leasehold.ListOptions{{}, {Prefix: "k"}, {Partition: "k"}} {
				for _, err := range a.first.List(a.Context(), opts) {
					a.must(err)
				}
			}
		},
	},
	table.Operate: {
		"Client.Break": func(a *account) {
			for _, opts := range []leasehold.BreakOptions{{}, {IfUnrenewed: true}} {
				l := a.lock(a.second, "k")
				a.must(a.first.Break(a.Context(), l.Record(), opts))
				lab.WantErr(a, "Release", l.Release(a.Context()), leasehold.ErrLost)
			}
		},
	},
}

// silent lists the methods of the library that send no request.
var silent = []string{
	"Client.Held", "Client.Stats", "Election.OnStepDown",
	"Lock.Bind", "Lock.Context", "Lock.Detach", "Lock.Err", "Lock.GuardError", "Group.GuardError", "Lock.Key", "Lock.LogValue", "Lock.Record", "Lock.String", "Lock.Token",
	"Lock.TookOver", "Lock.TrustedUntil",
	"Group.Bind", "Group.Context", "Group.Err", "Group.Locks",
}

// asked makes all calls that need the given access. It returns the IAM actions that these
// calls used.
func asked(t *testing.T, l layout.Layout, access table.Access) (actions []string) {
	synctest.Test(t, func(t *testing.T) {
		for _, name := range slices.Sorted(maps.Keys(calls[access])) {
			a := newAccount(t, l)
			calls[access][name](a)
			a.must(a.first.Close(t.Context()), a.second.Close(t.Context()))
			synctest.Wait()
			if len(a.iam.asked) == 0 {
				t.Errorf("%s sends nothing", name)
			}
			actions = slices.AppendSeq(actions, maps.Keys(a.iam.asked))
		}
	})
	return actions
}

func TestPolicyAllowsExactlyActionsThatLibraryUses(t *testing.T) {
	for _, name := range layout.Names() {
		l := lab.Must(layout.Parse(name))(t)
		called := map[table.Access][]string{}
		t.Run(name+"/calls", func(t *testing.T) {
			for access := range calls {
				called[access] = asked(t, l, access)
			}
		})
		called[table.Operate] = slices.Concat(called[table.Use], called[table.Read], called[table.Operate])
		for access, actions := range called {
			t.Run(name+"/"+string(access), func(t *testing.T) {
				slices.Sort(actions)
				actions = slices.Compact(actions)
				allowed := policy(t, table.Spec{Name: "locks", Layout: l}, arn, access).Statement[0].Action
				lab.Want(t, "called", actions, allowed)
			})
		}
	}
}

func TestEveryMethodOfLibraryIsListedInPolicyTests(t *testing.T) {
	var known, all []string
	for _, by := range calls {
		known = slices.AppendSeq(known, maps.Keys(by))
	}
	known = append(known, silent...)
	for _, of := range []reflect.Type{reflect.TypeFor[*leasehold.Client](), reflect.TypeFor[*leasehold.Lock](), reflect.TypeFor[*leasehold.Group](),
		reflect.TypeFor[*election.Election](), reflect.TypeFor[*semaphore.Semaphore](), reflect.TypeFor[*rwlock.RWLock]()} {
		for i := range of.NumMethod() {
			all = append(all, of.Elem().Name()+"."+of.Method(i).Name)
		}
	}
	known = slices.DeleteFunc(known, func(s string) bool { return strings.HasPrefix(s, "Config.") })
	slices.Sort(known)
	slices.Sort(all)
	lab.Want(t, "methods in these tests", all, known)
}

func TestPolicyContainsGivenARNUnchanged(t *testing.T) {
	for _, arn := range []string{"", `arn:"\` + "\n\x00", "arn:aws:dynamodb:*:*:table/<&>", "é\u2028"} {
		policy(t, table.Spec{}, arn, table.Use)
	}
}

func TestPolicyForUnknownAccessLevelAllowsNoAction(t *testing.T) {
	for _, access := range []table.Access{"", "admin", "USE"} {
		if d := policy(t, table.Spec{}, arn, access); d.Statement[0].Action == nil || len(d.Statement[0].Action) > 0 {
			t.Errorf("%q allows %v", access, d.Statement[0].Action)
		}
	}
}

func TestPolicyAllowsExactlyActionsThatDocumentationLists(t *testing.T) {
	page := lab.Must(os.ReadFile("../docs/table.md"))(t)
	rows := regexp.MustCompile("(?m)^\\| `(dynamodb:\\w+)` \\|(.*)\\|$").FindAllStringSubmatch(string(page), -1)
	listed := map[table.Access][]string{}
	for _, row := range rows {
		cells := strings.Split(row[2], "|")
		for i, access := range accesses {
			switch strings.TrimSpace(cells[i]) {
			case "yes":
				listed[access] = append(listed[access], row[1])
			case "":
			default:
				t.Errorf("%s: %q", row[1], cells[i])
			}
		}
	}
	for _, access := range accesses {
		allowed := policy(t, table.Spec{}, arn, access).Statement[0].Action
		lab.Want(t, string(access)+", as docs/table.md lists it", listed[access], allowed)
	}
}
