package behaviour_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/lab"
	"github.com/leasehold-go/leasehold/layout"
)

func TestInvalidInputIsRejectedBeforeAnyRequest(t *testing.T) {
	oneClient(t, func(t *testing.T, w *lab.World, c *leasehold.Client, wire *lab.Wire) {
		lock := w.Acquire(c, "held")
		defer w.Release(lock)
		wire.Sent()
		attribute := func(name string) leasehold.RecordOption {
			return leasehold.WithAttributes(map[string]types.AttributeValue{name: lab.Str("x")})
		}
		acquire := func(key string, opts ...leasehold.AcquireOption) func() error {
			return func() error { return lab.ErrorOf(c.Acquire(t.Context(), key, opts...)) }
		}
		list := func(opts leasehold.ListOptions) func() error {
			return func() error {
				for _, err := range c.List(t.Context(), opts) {
					return err
				}
				return nil
			}
		}
		for name, try := range map[string]func() error{
			"an empty key":                   acquire(""),
			"a key too long":                 acquire(strings.Repeat("a", 2049)),
			"a sort key in a table without":  acquire("job", leasehold.WithSortKey("x")),
			"a lease too short":              acquire("job", leasehold.WithLease(time.Second-1)),
			"data too large":                 acquire("job", leasehold.WithData(make([]byte, 400<<10))),
			"initial data too large":         acquire("job", leasehold.WithInitialData(make([]byte, 400<<10))),
			"attributes too large":           acquire("job", leasehold.WithAttributes(map[string]types.AttributeValue{"a": lab.Str(strings.Repeat("a", 400<<10))})),
			"a reserved attribute":           acquire("job", attribute("isReleased")), // other lock libraries accept this attribute, and a second holder can then acquire the lock
			"the key as an attribute":        acquire("job", attribute("key")),
			"an attribute without a name":    acquire("job", attribute("")),
			"a reserved attribute, renewing": func() error { return lock.Renew(t.Context(), attribute("fencingToken")) },
			"a lease too short, renewing":    func() error { return lock.Renew(t.Context(), leasehold.WithLease(1)) },
			"a reserved attribute, releasing": func() error {
				return lock.Release(t.Context(), attribute("waiters"))
			},
			"a key that is not UTF-8": acquire("a\xff"),
			"a negative lease":        acquire("job", leasehold.WithLease(-time.Second)),
			"a nil warning function":  acquire("job", leasehold.WithExpiryWarning(time.Second, nil)),
			"a negative warning time": acquire("job", leasehold.WithExpiryWarning(-time.Second, func(*leasehold.Lock) {})),
			"a nil function":          func() error { return c.Do(t.Context(), "job", nil) },
			"an empty key, getting":   func() error { return lab.ErrorOf(c.Get(t.Context(), "")) },
			"an empty record to break": func() error {
				return c.Break(t.Context(), leasehold.Record{Key: leasehold.Key{Partition: "a"}}, leasehold.BreakOptions{})
			},
			"list by partition and prefix": list(leasehold.ListOptions{Partition: "a", Prefix: "b"}),
			"list after half a key":        list(leasehold.ListOptions{After: leasehold.Key{Sort: "a"}}),
		} {
			if err := try(); err == nil {
				t.Errorf("%s: no error", name)
			} else if !strings.HasPrefix(err.Error(), "leasehold: ") {
				t.Errorf("%s: message %q", name, err)
			}
			synctest.Wait()
			lab.Want(t, name+": requests", len(wire.Sent()), 0)
		}
		lab.WantErr(t, "lock after invalid input", lock.Err(), nil)
	})
}

func TestComputedItemSizeIncludesKey(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, _ := w.Client(lab.ConfigOf("locks", layout.Native{SortKey: "shard"}))
		bytes := func(key, sort, attribute string, data int) int {
			return refusedBytes(t, c, key, leasehold.WithSortKey(sort), leasehold.WithData(make([]byte, data)),
				leasehold.WithAttributes(map[string]types.AttributeValue{attribute: lab.Str("value")}))
		}
		n := bytes("k", "s", "a", 400<<10)
		if n <= 400<<10 {
			t.Errorf("the error states %d bytes for %d bytes of data", n, 400<<10)
		}
		lab.Want(t, "further bytes", bytes("k/23", "s/345", "a/3", 400<<10+5)-n, 3+4+2+5)
	})
}

// refusedBytes calls Acquire with options that make the record too large. It returns the record's
// size as the error states it.
func refusedBytes(t *testing.T, c *leasehold.Client, key string, opts ...leasehold.AcquireOption) (n int) {
	t.Helper()
	_, err := c.Acquire(t.Context(), key, opts...)
	_, after, _ := strings.Cut(fmt.Sprint(err), "the record would have about ")
	lab.WantErr(t, "error without a size", lab.ErrorOf(fmt.Sscanf(after, "%d bytes", &n)), nil)
	return n
}

func TestNilOptionIsRejectedBeforeAnyRequest(t *testing.T) {
	ctx := context.Background()
	type call = func(c *leasehold.Client, lock *leasehold.Lock) error
	lab.Each(t, map[string]call{
		"Acquire":    func(c *leasehold.Client, _ *leasehold.Lock) error { return lab.ErrorOf(c.Acquire(ctx, "k", nil)) },
		"TryAcquire": func(c *leasehold.Client, _ *leasehold.Lock) error { return lab.ErrorOf(c.TryAcquire(ctx, "k", nil)) },
		"Do": func(c *leasehold.Client, _ *leasehold.Lock) error {
			return c.Do(ctx, "k", func(context.Context, *leasehold.Lock) error { panic("called") }, nil)
		},
		"AcquireAll": func(c *leasehold.Client, _ *leasehold.Lock) error {
			return lab.ErrorOf(c.AcquireAll(ctx, leasehold.Keys("k"), leasehold.NoWait(), nil))
		},
		"AcquireAny": func(c *leasehold.Client, _ *leasehold.Lock) error {
			return lab.ErrorOf(c.AcquireAny(ctx, leasehold.Keys("k"), nil))
		},
		"Get":   func(c *leasehold.Client, _ *leasehold.Lock) error { return lab.ErrorOf(c.Get(ctx, "k", nil)) },
		"Renew": func(_ *leasehold.Client, l *leasehold.Lock) error { return l.Renew(ctx, nil) },
		"Resume": func(c *leasehold.Client, _ *leasehold.Lock) error {
			return lab.ErrorOf(c.Resume(ctx, leasehold.Grant{}, nil))
		},
		"Watch": func(c *leasehold.Client, _ *leasehold.Lock) (err error) {
			for _, e := range c.Watch(ctx, "k", nil) {
				err = errors.Join(err, e)
			}
			return err
		},
		"Campaign": func(c *leasehold.Client, _ *leasehold.Lock) error {
			return lab.ErrorOf(electionOf(c, "e").Campaign(ctx, "v", nil))
		},
	}, func(t *testing.T, w *lab.World, call call) {
		c, wire, lock := w.Holding(lab.Config())
		wire.Sent()
		lab.WantText(t, "call with a nil option", call(c, lock), "nil: leave it out")
		lab.Want(t, "requests", len(wire.Sent()), 0)
		lab.WantErr(t, "lock", lock.Err(), nil)
		w.Release(lock)
	})
}

func TestNilReleaseOptionIsRejected(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		_, _, lock := w.Work().Holding(lab.Config())
		lab.WantFailed(t, "release", lock.Release(t.Context(), nil))
		lab.WantErr(t, "lock", lock.Err(), nil)
		lab.WantFailed(t, "commit and release", lock.CommitAndRelease(t.Context(), lab.Writes(lab.Note("a", "1")), nil))
		w.WantReleased("job")
		w.WantLog()
	})
}

func TestReleaseRejectsNewDataIfItWouldDeleteRecord(t *testing.T) {
	data := leasehold.WithData([]byte("d"))
	attributes := leasehold.WithAttributes(map[string]types.AttributeValue{"a": lab.Str("b")})
	type row struct {
		deletes bool // value of Config.DeleteOnRelease
		acquire []leasehold.AcquireOption
		release []leasehold.ReleaseOption
		refused bool
	}
	lab.Each(t, map[string]row{
		"with data":           {false, nil, []leasehold.ReleaseOption{leasehold.DeleteOnRelease(true), data}, true},
		"with attributes":     {false, nil, []leasehold.ReleaseOption{attributes, leasehold.DeleteOnRelease(true)}, true},
		"deletion by Config":  {true, nil, []leasehold.ReleaseOption{data}, true},
		"deletion by Acquire": {false, []leasehold.AcquireOption{leasehold.DeleteOnRelease(true)}, []leasehold.ReleaseOption{data}, true},
		"no new contents":     {false, nil, []leasehold.ReleaseOption{leasehold.DeleteOnRelease(true)}, false},
		"kept despite Config": {true, nil, []leasehold.ReleaseOption{leasehold.DeleteOnRelease(false), data}, false},
		"data from Acquire":   {true, []leasehold.AcquireOption{data}, nil, false},
	}, func(t *testing.T, w *lab.World, tc row) {
		cfg := lab.Config()
		cfg.DeleteOnRelease = tc.deletes
		_, wire, lock := w.Work().Holding(cfg, tc.acquire...)
		wire.Sent()
		err := lock.Release(t.Context(), tc.release...)
		if refused := err != nil; refused != tc.refused || refused && (len(wire.Sent()) > 0 || lock.Err() != nil) {
			t.Errorf("error %v, the lock: %v", err, lock.Err())
		}
		if tc.refused {
			if err := lock.CommitAndRelease(t.Context(), lab.Writes(lab.Note("a", "1")), tc.release...); err == nil || errors.Is(err, leasehold.ErrUnknownOutcome) {
				t.Errorf("commit: %v", err)
			}
			w.WantLog()
		}
	})
}

func TestOptionThatLayoutCannotSupportIsRejectedBeforeRequest(t *testing.T) {
	attributes := leasehold.WithAttributes(map[string]types.AttributeValue{"reason": lab.Str("month end")})
	for _, c := range []struct {
		layout  layout.Layout
		feature string
		ask     leasehold.AcquireOption
	}{
		{layout.Native{}, "sort key", leasehold.WithSortKey("eu")},
		{layout.AWSLabs{}, "sort key", leasehold.WithSortKey("eu")},
		{layout.Dynamolock{}, "sort key", leasehold.WithSortKey("eu")},
		{layout.DynamoDLM{NoSlots: true}, "sort key", leasehold.WithSortKey("1")},
		{layout.DyndbMutex{}, "sort key", leasehold.WithSortKey("eu")},
		{layout.PythonDynamoDBLock{}, "data", leasehold.WithData([]byte("x"))},
		{layout.PythonDynamoDBLock{}, "data", leasehold.WithInitialData([]byte("x"))},
		{layout.DynamoDLM{}, "data", leasehold.WithData([]byte("x"))},
		{layout.DyndbMutex{}, "data", leasehold.WithData([]byte("x"))},
		{layout.DynamoDLM{}, "attributes", attributes},
		{layout.DyndbMutex{}, "attributes", attributes},
		{layout.PythonDynamoDBLock{}, "KeepOnRelease", leasehold.DeleteOnRelease(false)},
		{layout.DynamoDLM{}, "KeepOnRelease", leasehold.DeleteOnRelease(false)},
	} {
		t.Run(c.layout.Name()+", "+c.feature, func(t *testing.T) {
			lab.InBubble(t, func(t *testing.T, w *lab.World) {
				client, wire := w.Client(lab.ConfigOf("locks", c.layout))
				defer client.Close(t.Context())
				_, err := client.Acquire(t.Context(), "job", c.ask)
				var unsupported *leasehold.UnsupportedError
				if !errors.As(err, &unsupported) || *unsupported != (leasehold.UnsupportedError{Table: "locks", Layout: c.layout.Name(), Feature: c.feature}) ||
					!errors.Is(err, errors.ErrUnsupported) {
					t.Errorf("acquire: %v", err)
				}
				err = client.Do(t.Context(), "job", func(context.Context, *leasehold.Lock) error { return nil }, c.ask)
				if !errors.As(err, &unsupported) || !errors.Is(err, leasehold.ErrNotRun) {
					t.Errorf("do: %v", err)
				}
				wantSent(t, wire, 0)
			})
		})
	}
}

func TestNilInsideAttributeValueIsRejected(t *testing.T) {
	list := func(v ...types.AttributeValue) types.AttributeValue { return &types.AttributeValueMemberL{Value: v} }
	object := func(name string, v types.AttributeValue) types.AttributeValue {
		return &types.AttributeValueMemberM{Value: map[string]types.AttributeValue{name: v}}
	}
	for where, v := range map[string]types.AttributeValue{
		`"note" itself`:          (*types.AttributeValueMemberS)(nil),
		`"note" itself is`:       (*types.AttributeValueMemberL)(nil),
		`"note" itself is a`:     (*types.AttributeValueMemberM)(nil),
		`"note" itself is a nil`: (*types.AttributeValueMemberNULL)(nil),
		`"note"[1]`:              list(lab.Str("a"), nil),
		`"note".in[0].deep`:      object("in", list(object("deep", (*types.AttributeValueMemberN)(nil)))),
	} {
		oneLock(t, func(t *testing.T, _ *lab.World, c *leasehold.Client, wire *lab.Wire, lock *leasehold.Lock) {
			wire.Sent()
			opt := leasehold.WithAttributes(map[string]types.AttributeValue{"note": v})
			_, acquired := c.Acquire(t.Context(), "other", opt)
			for name, err := range map[string]error{
				"acquire": acquired, "renew": lock.Renew(t.Context(), opt), "release": lock.Release(t.Context(), opt),
			} {
				lab.WantText(t, name+", "+where, err, where, "nil value")
			}
			lab.Want(t, where+": requests", len(wire.Sent()), 0)
			lab.WantErr(t, where, lock.Err(), nil)
			remove := leasehold.WithAttributes(map[string]types.AttributeValue{"note": nil})
			lab.WantErr(t, "removal of an attribute by nil", lock.Renew(t.Context(), remove), nil)
			// CommitAndRelease is tested last, because it releases the lock even if it
			// rejects the option.
			lab.WantText(t, "commit, "+where, lock.CommitAndRelease(t.Context(), nil, opt), where)
		})
	}
}

func TestComputedItemSizeIncludesAllAttributeTypes(t *testing.T) { // Developer Guide, "DynamoDB item sizes and formats"
	oneClient(t, func(t *testing.T, _ *lab.World, c *leasehold.Client, _ *lab.Wire) {
		bytes := func(v types.AttributeValue) int {
			return refusedBytes(t, c, "job", leasehold.WithData(make([]byte, 400<<10)),
				leasehold.WithAttributes(map[string]types.AttributeValue{"note": v}))
		}
		list := &types.AttributeValueMemberL{Value: []types.AttributeValue{lab.Str("abc"), lab.Num("12")}}
		without := bytes(lab.Str(""))
		for name, tc := range map[string]struct {
			v    types.AttributeValue
			want int
		}{
			"a string":            {lab.Str("abc"), 3},
			"a number":            {lab.Num("1234"), 4},
			"bytes":               {&types.AttributeValueMemberB{Value: []byte("abcd")}, 4},
			"true":                {&types.AttributeValueMemberBOOL{Value: true}, 1},
			"null":                {&types.AttributeValueMemberNULL{Value: true}, 1},
			"a set of strings":    {&types.AttributeValueMemberSS{Value: []string{"a", "bcd"}}, 3 + 1 + 3},
			"a set of numbers":    {&types.AttributeValueMemberNS{Value: []string{"1", "1234"}}, 3 + 2 + 4},
			"a set of bytes":      {&types.AttributeValueMemberBS{Value: [][]byte{[]byte("a"), []byte("bcd")}}, 3 + 1 + 3},
			"a list":              {list, 3 + 1 + 3 + 1 + 3},
			"a map":               {&types.AttributeValueMemberM{Value: map[string]types.AttributeValue{"name": lab.Str("abc")}}, 3 + 1 + 4 + 3},
			"a list inside a map": {&types.AttributeValueMemberM{Value: map[string]types.AttributeValue{"name": list}}, 3 + 1 + 4 + 11},
		} {
			lab.Want(t, name+": bytes", bytes(tc.v)-without, tc.want)
		}
	})
}
