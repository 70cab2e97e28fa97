package behaviour_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
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

// errorTypes returns the names of the error types of package leasehold. It finds them in the
// package's source files.
func errorTypes(t *testing.T) map[string]bool {
	t.Helper()
	method := regexp.MustCompile(`(?m)^func \(\w+ \*(\w+)\) Error\(\) string`)
	files := lab.Must(filepath.Glob("../../*.go"))(t)
	found := map[string]bool{}
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		source := lab.Must(os.ReadFile(name))(t)
		for _, m := range method.FindAllStringSubmatch(string(source), -1) {
			found["*leasehold."+m[1]] = true
		}
	}
	return found
}

// typesIn adds the type of err to the map "found", and also the types of all errors that err wraps.
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

func TestErrorsOfAllTypesContainKeyAndTable(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		w.Work()
		c, wire := w.Client(lab.Config())
		other, _ := w.Client(lab.Config())
		lock := w.Acquire(c, "job")
		seen := lock.Record()
		soon := w.Within(time.Second)
		errs := map[string]error{
			"held":      lab.ErrorOf(other.TryAcquire(t.Context(), "job")),
			"waited":    lab.ErrorOf(other.Acquire(soon, "job")),
			"late":      lab.ErrorOf(other.Acquire(soon, "job")),
			"not run":   other.Do(t.Context(), "job", nil),
			"reentrant": lab.ErrorOf(c.Acquire(lock.Context(), "job")),
			"no record": lab.ErrorOf(c.Get(t.Context(), "job/none")),
			"if exists": lab.ErrorOf(c.Acquire(t.Context(), "job/none", leasehold.IfExists())),
			"sort key":  lab.ErrorOf(c.Acquire(t.Context(), "job", leasehold.WithSortKey("eu"))),
			"no lease":  lab.ErrorOf(c.Acquire(t.Context(), "job", leasehold.WithLease(time.Nanosecond))),
			"no data":   lock.Renew(t.Context(), leasehold.WithAttributes(map[string]types.AttributeValue{"data": nil})),
			"commit":    lock.Commit(t.Context(), lab.Writes(lab.NoteIf("a", "1"))),
		}
		group := w.AcquireAll(c, leasehold.Keys("job/1", "job/2"))
		errs["order"] = lab.ErrorOf(c.Acquire(group.Context(), "job/0"))
		breaks(w, other, seen)
		errs["changed"] = other.Break(t.Context(), seen, leasehold.BreakOptions{})
		errs["lost"] = lock.Renew(t.Context())
		w.Put(map[string]types.AttributeValue{"key": lab.Str("job/odd"), "ownerName": lab.Str("x")})
		errs["damaged"] = lab.ErrorOf(c.Acquire(t.Context(), "job/odd"))
		wire.SetFault(lab.Refused("AccessDeniedException"))
		errs["refused"] = lab.ErrorOf(c.Acquire(t.Context(), "job/b"))
		wire.SetFault(nil)
		w.Release(w.Acquire(other, "job/once", leasehold.Once("mon")), leasehold.MarkDone())
		errs["done"] = lab.ErrorOf(other.Acquire(t.Context(), "job/once", leasehold.Once("mon")))
		wire.SetFault(lab.Refused("AccessDeniedException"))
		errs["close"] = c.Close(t.Context())
		errs["closed"] = lab.ErrorOf(c.Acquire(t.Context(), "job/c"))

		found := map[string]bool{}
		for name, err := range errs {
			typesIn(err, found)
			if err == nil || !strings.Contains(err.Error(), "table locks") || strings.Contains(err.Error(), "\n") {
				t.Errorf("%s: the text has no table, or several lines: %v", name, err)
				continue
			}
			if no := (*leasehold.UnsupportedError)(nil); errors.As(err, &no) {
				continue // an UnsupportedError is the same for every key, so it need not name the key
			}
			if !strings.Contains(err.Error(), "job") {
				t.Errorf("%s: the text has no key: %v", name, err)
			}
		}
		for name := range errorTypes(t) {
			if !found[name] {
				t.Errorf("no error has the type %s", name)
			}
		}
	})
}

func TestLongKeyIsShortenedInErrors(t *testing.T) {
	oneClient(t, func(t *testing.T, w *lab.World, c *leasehold.Client, _ *lab.Wire) {
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
		lab.Want(t, "key", key.String(), want)
	}
	oneClient(t, func(t *testing.T, w *lab.World, c *leasehold.Client, wire *lab.Wire) {
		lab.WantText(t, "an empty key", lab.ErrorOf(c.Acquire(t.Context(), "")), `acquire "" in table locks`)
		wire.SetFault(lab.Cut)
		if _, err := c.Acquire(w.Within(10*time.Second), "a\nb"); err == nil || strings.Contains(err.Error(), "\n") || !strings.Contains(err.Error(), `"a\nb"`) {
			t.Errorf("a key of two lines: %v", err)
		}
		_ = c.Close(t.Context())
	})
}

func TestErrorAdvisesRenamingUserAttributeIfItsNameIsReserved(t *testing.T) {
	for _, l := range []layout.Layout{layout.Dynamolock{}, layout.AWSLabs{}} {
		for name, own := range map[string]map[string]types.AttributeValue{
			"kind":            {"kind": lab.Str("invoice")},
			"fencingToken":    {"fencingToken": lab.Str("none")},
			"both attributes": {"kind": lab.Num("7"), "fencingToken": lab.Num("-1")},
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
						t.Errorf("%q does not contain %q", s, want)
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
		shown := get(w, c, "job")
		lock := w.Acquire(c, "job")
		for name, r := range map[string]leasehold.Record{"Get": shown, "the lock": lock.Record()} {
			lab.Want(t, "attributes shown by "+name, r.Attributes, own)
		}
		w.Release(lock)
		lab.WantFailed(t, "reserved names", lab.ErrorOf(c.TryAcquire(t.Context(), "job", leasehold.WithAttributes(own))))
	})
}

// DynamoDB throttles every request of the call until the call's context expires. A throttled
// request is not applied, so the outcome of the call is known.
func TestThrottledCallDoesNotReturnErrUnknownOutcome(t *testing.T) {
	type row struct {
		do  func(ctx context.Context, c *leasehold.Client, lock *leasehold.Lock) error
		cfg leasehold.Config
		op  string // operation that the error's text names
	}
	lab.Each(t, map[string]row{
		"renew": {func(ctx context.Context, _ *leasehold.Client, lock *leasehold.Lock) error { return lock.Renew(ctx) }, lab.Config(), "renew"},
		"close": {func(ctx context.Context, c *leasehold.Client, _ *leasehold.Lock) error { return c.Close(ctx) }, lab.SharedConfig(), "release"},
		"get": {func(ctx context.Context, c *leasehold.Client, _ *leasehold.Lock) error {
			return lab.ErrorOf(c.Get(ctx, "job"))
		}, lab.Config(), "get"},
	}, func(t *testing.T, w *lab.World, tc row) {
		c, wire, lock := w.Holding(tc.cfg)
		wire.SetFault(lab.Refused("ThrottlingException"))
		ctx := w.Within(5 * time.Second)
		began := time.Now()
		err := tc.do(ctx, c, lock)
		lab.WantTook(t, "it took", began, 5*time.Second, 5*time.Second)
		if errors.Is(err, leasehold.ErrUnknownOutcome) || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("error %v", err)
		}
		lab.WantText(t, "the call", err, "in table locks: throttled: raise the table's capacity", tc.op)
		wire.SetFault(nil)
		_ = c.Close(t.Context())
	})
}

func TestErrOfLostLockExplainsWhyRenewalsFailed(t *testing.T) {
	oneLock(t, func(t *testing.T, _ *lab.World, c *leasehold.Client, wire *lab.Wire, lock *leasehold.Lock) {
		wire.SetFault(lab.Refused("AccessDeniedException"))
		lab.Elapse(20 * time.Second)
		lab.WantText(t, "lost", lock.Err(), "no renewal got through in time: access denied: allow it in the caller's IAM policy")
		wire.SetFault(nil)
		_ = c.Close(t.Context())
	})
}

func TestLockErrorsContainKeyAndTableAfterReleaseDetachOrClose(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		named := func(what string, err, want error) {
			t.Helper()
			if !errors.Is(err, want) || !strings.HasPrefix(fmt.Sprint(err), want.Error()+":") ||
				!strings.Contains(err.Error(), "job") || !strings.HasSuffix(err.Error(), " in table locks") {
				t.Errorf("%s: %v", what, err)
			}
		}
		c, _, released := w.Holding(lab.Config())
		ctx, cancel := released.Bind(t.Context())
		defer cancel()
		record := released.Record()
		w.Release(released)
		synctest.Wait()
		named("released", released.Err(), leasehold.ErrReleased)
		named("bound", context.Cause(ctx), leasehold.ErrReleased)
		named("renew", released.Renew(t.Context()), leasehold.ErrReleased)
		named("commit", released.Commit(t.Context(), lab.Writes(lab.Note("a", "1"))), leasehold.ErrReleased)
		named("detach", lab.ErrorOf(released.Detach()), leasehold.ErrReleased)

		detached := w.Acquire(c, "job")
		g := w.Detach(detached)
		named("detached", detached.Err(), core.ErrDetached)
		named("released after", detached.Release(t.Context()), core.ErrDetached)

		resumed := w.Resume(c, g)
		waiter := begin(func() error { return lab.ErrorOf(c.Acquire(t.Context(), "job")) })
		synctest.Wait()
		closes(w, c)
		named("closed", resumed.Err(), leasehold.ErrClosed)
		if err := <-waiter; !errors.Is(err, leasehold.ErrClosed) || !strings.Contains(err.Error(), "job is held by") || !strings.Contains(err.Error(), " in table locks") {
			t.Errorf("waiter: %v", err)
		}
		named("acquire", lab.ErrorOf(c.Acquire(t.Context(), "job")), leasehold.ErrClosed)
		named("acquire all", lab.ErrorOf(c.AcquireAll(t.Context(), leasehold.Keys("job", "k"))), leasehold.ErrClosed)
		named("acquire any", lab.ErrorOf(c.AcquireAny(t.Context(), leasehold.Keys("job", "k"))), leasehold.ErrClosed)
		named("resume", lab.ErrorOf(c.Resume(t.Context(), g)), leasehold.ErrClosed)
		named("break", c.Break(t.Context(), record, leasehold.BreakOptions{}), leasehold.ErrClosed)
		for _, err := range c.Watch(t.Context(), "job") {
			named("watch", err, leasehold.ErrClosed)
		}
	})
}

func TestErrorTextsEscapeUnprintableCharacters(t *testing.T) {
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
		t.Errorf("the owner is not quoted: %s", named)
	}
	if !strings.Contains((&leasehold.HeldError{Holder: leasehold.Record{Owner: "Jörg@山田/812"}}).Error(), "held by Jörg@山田/812") {
		t.Error("the text of an ordinary owner has changed")
	}
}

func TestErrorsQuoteAndShortenTextFromRecords(t *testing.T) {
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
