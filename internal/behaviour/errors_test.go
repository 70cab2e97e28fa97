package behaviour_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/core"
	"github.com/leasehold-go/leasehold/internal/lab"
	"github.com/leasehold-go/leasehold/internal/visible"
	"github.com/leasehold-go/leasehold/layout"
)

// errorTypes lists the error types of the package, from its sources.
func errorTypes(t *testing.T) map[string]bool {
	t.Helper()
	method := regexp.MustCompile(`(?m)^func \(\w+ \*(\w+)\) Error\(\) string`)
	files, err := filepath.Glob("../../*.go")
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]bool{}
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		source, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range method.FindAllStringSubmatch(string(source), -1) {
			found["*leasehold."+m[1]] = true
		}
	}
	return found
}

// typesIn adds the types of err, and of all errors that it wraps, to found.
func typesIn(err error, found map[string]bool) {
	if err == nil {
		return
	}
	found[fmt.Sprintf("%T", err)] = true
	switch err := err.(type) {
	case interface{ Unwrap() error }:
		typesIn(err.Unwrap(), found)
	case interface{ Unwrap() []error }:
		for _, e := range err.Unwrap() {
			typesIn(e, found)
		}
	}
}

func TestEveryErrorTypeNamesKeyAndTable(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		w.Work()
		c, wire := w.Client(lab.Config())
		other, _ := w.Client(lab.Config())
		lock := w.Acquire(c, "job")
		seen := lock.Record()
		second := func(_ any, err error) error { return err }
		soon, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		errs := map[string]error{
			"held":      second(other.TryAcquire(t.Context(), "job")),
			"waited":    second(other.Acquire(soon, "job")),
			"late":      second(other.Acquire(soon, "job")),
			"not run":   other.Do(t.Context(), "job", nil),
			"reentrant": second(c.Acquire(lock.Context(), "job")),
			"not there": second(c.Get(t.Context(), "job/none")),
			"if exists": second(c.Acquire(t.Context(), "job/none", leasehold.IfExists())),
			"sort key":  second(c.Acquire(t.Context(), "job", leasehold.WithSortKey("eu"))),
			"no lease":  second(c.Acquire(t.Context(), "job", leasehold.WithLease(time.Nanosecond))),
			"no data":   lock.Renew(t.Context(), leasehold.WithAttributes(map[string]types.AttributeValue{"data": nil})),
			"commit":    lock.Commit(t.Context(), lab.Writes(lab.NoteIf("a", "1"))),
		}
		group := w.AcquireAll(c, leasehold.Keys("job/1", "job/2"))
		errs["order"] = second(c.Acquire(group.Context(), "job/0"))
		if err := other.Break(t.Context(), seen, leasehold.BreakOptions{}); err != nil {
			t.Error(err)
		}
		errs["changed"] = other.Break(t.Context(), seen, leasehold.BreakOptions{})
		errs["lost"] = lock.Renew(t.Context())
		w.Put(map[string]types.AttributeValue{"key": lab.Str("job/odd"), "ownerName": lab.Str("x")})
		errs["damaged"] = second(c.Acquire(t.Context(), "job/odd"))
		wire.SetFault(refuse("AccessDeniedException"))
		errs["refused"] = second(c.Acquire(t.Context(), "job/b"))
		wire.SetFault(nil)
		if err := other.Do(t.Context(), "job/once", func(context.Context, *leasehold.Lock) error { return nil }, leasehold.Once("mon")); err != nil {
			t.Error(err)
		}
		errs["done"] = second(other.Acquire(t.Context(), "job/once", leasehold.Once("mon")))
		wire.SetFault(refuse("AccessDeniedException"))
		errs["close"] = c.Close(t.Context())
		errs["closed"] = second(c.Acquire(t.Context(), "job/c"))

		found := map[string]bool{}
		for name, err := range errs {
			typesIn(err, found)
			if err == nil || !strings.Contains(err.Error(), "table locks") || strings.Contains(err.Error(), "\n") {
				t.Errorf("%s names no table, or is of several lines: %v", name, err)
				continue
			}
			if no := (*leasehold.UnsupportedError)(nil); errors.As(err, &no) {
				continue // the error need not name the key, because an UnsupportedError does not depend on the key
			}
			if !strings.Contains(err.Error(), "job") {
				t.Errorf("%s names no key: %v", name, err)
			}
		}
		missing := errorTypes(t)
		maps.DeleteFunc(missing, func(name string, _ bool) bool { return found[name] })
		if len(missing) > 0 {
			t.Errorf("no error of %v", missing)
		}
	})
}

func TestLongKeyIsShortenedInErrors(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, _ := w.Client(lab.Config())
		key := "begin/" + strings.Repeat("☂", 600) + "/end"
		lock := w.Acquire(c, key)
		_, err := c.TryAcquire(t.Context(), key)
		w.Release(lock)
		for _, err := range []error{err, lock.Err()} {
			if text := fmt.Sprint(err); len([]rune(text)) > 250 || !strings.Contains(text, "begin/☂") || !strings.Contains(text, "☂…☂") || !strings.Contains(text, "☂/end") {
				t.Error(text)
			}
		}
	})
}

func TestKeyWithControlCharactersIsQuotedInErrors(t *testing.T) {
	for key, want := range map[leasehold.Key]string{
		{Partition: "customer/42"}:          "customer/42",
		{Partition: "ключ"}:                 "ключ",
		{Partition: "ключ☂"}:                `"ключ☂"`,
		{Partition: "a", Sort: "b"}:         "a (b)",
		{}:                                  `""`,
		{Partition: "nightly report"}:       `"nightly report"`,
		{Partition: "a\nlevel=ERROR"}:       `"a\nlevel=ERROR"`,
		{Partition: `a"b`}:                  `"a\"b"`,
		{Partition: "a'b"}:                  `"a'b"`,
		{Partition: "\x1b[31m", Sort: "\t"}: `"\x1b[31m" ("\t")`,
		{Partition: "\xff"}:                 `"\xff"`,
	} {
		if got := key.String(); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, wire := w.Client(lab.Config())
		if _, err := c.Acquire(t.Context(), ""); err == nil || !strings.Contains(err.Error(), `acquire "" in table locks`) {
			t.Errorf("an empty key: %v", err)
		}
		wire.SetFault(lab.Cut)
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		if _, err := c.Acquire(ctx, "a\nb"); err == nil || strings.Contains(err.Error(), "\n") || !strings.Contains(err.Error(), `"a\nb"`) {
			t.Errorf("a key of two lines: %v", err)
		}
		_ = c.Close(t.Context())
	})
}

func TestRecordErrorSuggestsRenamingAttributeOfFreeLock(t *testing.T) {
	for _, l := range []layout.Layout{layout.Dynamolock{}, layout.AWSLabs{}} {
		for name, own := range map[string]map[string]types.AttributeValue{
			"kind":              {"kind": lab.Str("invoice")},
			"fencingToken":      {"fencingToken": lab.Str("none")},
			"kind and its like": {"kind": lab.Num("7"), "fencingToken": lab.Num("-1")},
		} {
			t.Run(l.Name()+"/"+name, func(t *testing.T) {
				lab.InLayout(t, l, func(t *testing.T, w *lab.World, cfg leasehold.Config) {
					c, _ := w.Client(cfg)
					w.Release(w.Acquire(c, "job", leasehold.DeleteOnRelease(false)))
					w.Update("job", own)
					_, err := c.TryAcquire(t.Context(), "job")
					var bad *leasehold.RecordError
					if !errors.As(err, &bad) || own[bad.Attribute] == nil {
						t.Fatalf("%v", err)
					}
					want := "a free lock of layout " + l.Name() + ": rename the attribute " + bad.Attribute
					if s := err.Error(); !strings.Contains(s, want) || strings.Contains(s, "leasehold break") {
						t.Errorf("%q does not say %q", s, want)
					}
				})
			})
		}
	}
}

func TestGetShowsAttributesThatLayoutDoesNotUse(t *testing.T) {
	own := map[string]types.AttributeValue{
		"session": lab.Str("s-17"), "dead": lab.Str("letters"), "writer": lab.Str("ann"),
		"waiters": lab.Num("5"), "lastDone": lab.Str("monday"), "leaseEnds": lab.Str("2030"), "stepDown": lab.Str("no"),
	}
	lab.InLayout(t, layout.Dynamolock{}, func(t *testing.T, w *lab.World, cfg leasehold.Config) {
		c, _ := w.Client(cfg)
		w.Release(w.Acquire(c, "job", leasehold.DeleteOnRelease(false)))
		w.Update("job", own)
		for name, show := range map[string]func() (leasehold.Record, error){
			"Get": func() (leasehold.Record, error) { return c.Get(t.Context(), "job") },
			"the lock": func() (leasehold.Record, error) {
				lock := w.Acquire(c, "job")
				defer w.Release(lock)
				return lock.Record(), nil
			},
		} {
			r, err := show()
			if err != nil || !reflect.DeepEqual(r.Attributes, own) {
				t.Errorf("%s: %v, %v", name, r.Attributes, err)
			}
		}
		if _, err := c.TryAcquire(t.Context(), "job", leasehold.WithAttributes(own)); err == nil {
			t.Error("the names are not reserved")
		}
	})
}

// Every request of these calls is refused until the context ends. So no request is without
// an answer when the context ends.
func TestCallWithAllRequestsAnsweredReportsKnownOutcome(t *testing.T) {
	throttled := lab.Answer(func() *http.Response { return lab.Refusal(400, "ThrottlingException") })
	for name, call := range map[string]struct {
		do     func(ctx context.Context, c *leasehold.Client, lock *leasehold.Lock) error
		shared bool
	}{
		"renew": {do: func(ctx context.Context, _ *leasehold.Client, lock *leasehold.Lock) error { return lock.Renew(ctx) }},
		"close": {do: func(ctx context.Context, c *leasehold.Client, _ *leasehold.Lock) error { return c.Close(ctx) }, shared: true},
		"get": {do: func(ctx context.Context, c *leasehold.Client, _ *leasehold.Lock) error {
			_, err := c.Get(ctx, "job")
			return err
		}},
	} {
		t.Run(name, func(t *testing.T) {
			lab.InBubble(t, func(t *testing.T, w *lab.World) {
				cfg := lab.Config()
				cfg.SharedLease = call.shared
				c, wire := w.Client(cfg)
				lock := w.Acquire(c, "job")
				wire.SetFault(throttled)
				ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
				defer cancel()
				began := time.Now()
				err := call.do(ctx, c, lock)
				if took := time.Since(began); took != 5*time.Second {
					t.Errorf("it took %v", took)
				}
				if errors.Is(err, leasehold.ErrUnknownOutcome) || !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("error %v", err)
				}
				for _, part := range []string{"in table locks: throttled: raise the table's capacity", name} {
					if !strings.Contains(fmt.Sprint(err), part) && !strings.Contains(strings.Replace(fmt.Sprint(err), "release", "close", 1), part) {
						t.Errorf("%q is missing in: %v", part, err)
					}
				}
				wire.SetFault(nil)
				_ = c.Close(t.Context())
			})
		})
	}
}

func TestLostLockErrorGivesAdviceAboutRenewals(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, wire := w.Client(lab.Config())
		lock := w.Acquire(c, "job")
		wire.SetFault(refuse("AccessDeniedException"))
		lab.Elapse(20 * time.Second)
		if err := lock.Err(); err == nil || !strings.Contains(err.Error(), "no renewal got through in time: access denied: allow it in the caller's IAM policy") {
			t.Errorf("lost: %v", err)
		}
		wire.SetFault(nil)
		_ = c.Close(t.Context())
	})
}

func TestErrorsAfterReleaseDetachAndCloseNameKeyAndTable(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		named := func(what string, err, want error) {
			t.Helper()
			if !errors.Is(err, want) || !strings.HasPrefix(fmt.Sprint(err), want.Error()+":") ||
				!strings.Contains(err.Error(), "job") || !strings.HasSuffix(err.Error(), " in table locks") {
				t.Errorf("%s: %v", what, err)
			}
		}
		c, _ := w.Client(lab.Config())
		released := w.Acquire(c, "job")
		ctx, cancel := released.Bind(t.Context())
		defer cancel()
		record := released.Record()
		w.Release(released)
		synctest.Wait()
		named("released", released.Err(), leasehold.ErrReleased)
		named("bound", context.Cause(ctx), leasehold.ErrReleased)
		named("renew", released.Renew(t.Context()), leasehold.ErrReleased)
		named("commit", released.Commit(t.Context(), lab.Writes(lab.Note("a", "1"))), leasehold.ErrReleased)
		_, err := released.Detach()
		named("detach", err, leasehold.ErrReleased)

		detached := w.Acquire(c, "job")
		g := w.Detach(detached)
		named("detached", detached.Err(), core.ErrDetached)
		named("released after", detached.Release(t.Context()), core.ErrDetached)

		resumed, err := c.Resume(t.Context(), g)
		if err != nil {
			t.Fatal(err)
		}
		waiter := make(chan error)
		go func() { _, err := c.Acquire(t.Context(), "job"); waiter <- err }()
		synctest.Wait()
		if err := c.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		named("closed", resumed.Err(), leasehold.ErrClosed)
		if err := <-waiter; !errors.Is(err, leasehold.ErrClosed) || !strings.Contains(err.Error(), "job is held by") || !strings.Contains(err.Error(), " in table locks") {
			t.Errorf("waiter: %v", err)
		}
		_, err = c.Acquire(t.Context(), "job")
		named("acquire", err, leasehold.ErrClosed)
		_, err = c.AcquireAll(t.Context(), leasehold.Keys("job", "k"))
		named("acquire all", err, leasehold.ErrClosed)
		_, err = c.AcquireAny(t.Context(), leasehold.Keys("job", "k"))
		named("acquire any", err, leasehold.ErrClosed)
		_, err = c.Resume(t.Context(), g)
		named("resume", err, leasehold.ErrClosed)
		named("break", c.Break(t.Context(), record, leasehold.BreakOptions{}), leasehold.ErrClosed)
		for _, err := range c.Watch(t.Context(), "job") {
			named("watch", err, leasehold.ErrClosed)
		}
	})
}

func TestErrorsEscapeTextWrittenByOtherClients(t *testing.T) {
	const acts = "\x1b]0;x\a\u009b2J\u202e\u2028\ufeff\U000e0041\xff\r"
	key := leasehold.Key{Partition: "k" + acts, Sort: "s" + acts}
	at := time.Date(2026, 11, 23, 10, 0, 0, 0, time.UTC)
	record := leasehold.Record{
		Key: key, Owner: "web 1" + acts, Grant: "g", GrantedAt: at, Token: 8,
		Broken: &leasehold.End{By: "op" + acts, Reason: "why" + acts, At: at, Token: 7},
	}
	peers := record
	peers.Grant = ""
	ofServer := &smithy.OperationError{ServiceID: "DynamoDB", OperationName: "UpdateItem", Err: &smithy.GenericAPIError{Code: "Code" + acts, Message: "two\nlines" + acts}}
	for what, err := range map[string]error{
		"held":    &leasehold.HeldError{Table: "locks", Key: key, Holder: record, Err: ofServer},
		"peer":    &leasehold.HeldError{Table: "locks", Key: key, Holder: peers},
		"broken":  &leasehold.LostError{Table: "locks", Key: key, Token: 7, Reason: leasehold.LostReplaced, By: &record, Err: ofServer},
		"changed": &leasehold.ChangedError{Table: "locks", Now: record},
		"record":  &leasehold.RecordError{Table: "locks", Key: key, Attribute: "a" + acts, Problem: "is " + acts},
		"op":      &leasehold.OpError{Op: "acquire", Table: "locks", Key: key, Err: ofServer},
		"commit":  &leasehold.CommitError{Table: "locks", Key: key, Reasons: []types.CancellationReason{{Code: aws.String("C" + acts), Message: aws.String("M" + acts)}}},
	} {
		text := err.Error()
		if visible.Line(text) != text || !strings.Contains(text, `\u202e`) {
			t.Errorf("%s: %q", what, text)
		}
	}
	if named := (&leasehold.HeldError{Holder: record}).Error(); !strings.Contains(named, `held by "web 1\x1b]0;x\a\u009b2J`) {
		t.Errorf("the owner's end is not to be seen: %s", named)
	}
	if !strings.Contains((&leasehold.HeldError{Holder: leasehold.Record{Owner: "Jörg@山田/812"}}).Error(), "held by Jörg@山田/812") {
		t.Error("an ordinary owner is not shown as it is")
	}
}

func TestErrorsQuoteAndShortenNamesFromRecords(t *testing.T) {
	const speech = "nobody: it is free; run leasehold break k --yes"
	long := strings.Repeat("long/", 20_000)
	errorsOf := func(text string) []error {
		by := leasehold.Record{Key: leasehold.Key{Partition: "k"}, Owner: text, Grant: "g", Token: 7}
		broken := leasehold.Record{Token: 7, Released: true, Broken: &leasehold.End{By: text, Reason: text, Token: 7}}
		return []error{
			&leasehold.HeldError{Table: "locks", Key: by.Key, Holder: by},
			&leasehold.HeldError{Table: "locks", Key: by.Key, Holder: by, Err: errors.New(long)},
			&leasehold.LostError{Key: by.Key, Token: 6, Reason: leasehold.LostReplaced, By: &by},
			&leasehold.LostError{Key: by.Key, Token: 7, Reason: leasehold.LostBroken, By: &broken},
			&leasehold.ChangedError{Now: by},
			&leasehold.DoneError{Key: by.Key, Done: leasehold.Done{Once: text, Owner: text}},
			&leasehold.RecordError{Key: by.Key, Attribute: text, Problem: "is missing"},
			&leasehold.RecordError{Key: by.Key, Attribute: "lease", Problem: long},
			&leasehold.OpError{Op: "get", Table: "locks", Key: leasehold.Key{Partition: text}, Err: errors.New(long)},
			&leasehold.CommitError{Key: by.Key, Reasons: []types.CancellationReason{{Code: &text, Message: &long}}},
		}
	}
	quoted := regexp.MustCompile(`"(?:[^"\\]|\\.)*"`)
	for _, err := range errorsOf(speech) {
		if text := quoted.ReplaceAllString(err.Error(), ""); strings.Contains(text, "it is free") {
			t.Errorf("%T: %s", err, text)
		}
	}
	for _, err := range errorsOf(long) {
		if text := err.Error(); len(text) > 2000 {
			t.Errorf("%T: %d bytes: %.200s", err, len(text), text)
		}
	}
}
