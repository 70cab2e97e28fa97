package repair

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/cli/arguments"
	"github.com/leasehold-go/leasehold/internal/cli/invocation"
	"github.com/leasehold-go/leasehold/internal/cli/requests"
	"github.com/leasehold-go/leasehold/internal/cli/store"
	"github.com/leasehold-go/leasehold/internal/records"
	"github.com/leasehold-go/leasehold/layout"
	"github.com/leasehold-go/leasehold/localdynamo"
	"github.com/leasehold-go/leasehold/table"
)

// breaking is break --dead of a checked table, at a terminal.
type breaking struct {
	*checked
	command        *command
	stdout, stderr bytes.Buffer
	prefix         string
	said           []saying
	began          time.Time
}

// saying is what was written, and how long after the beginning.
type saying struct {
	at   time.Duration
	text string
}

func (b *breaking) Write(p []byte) (int, error) {
	b.said = append(b.said, saying{time.Since(b.began), string(p)})
	return b.stderr.Write(p)
}

// first is when text was written first; -1: never.
func (b *breaking) first(text string) time.Duration {
	for _, s := range b.said {
		if strings.Contains(s.text, text) {
			return s.at
		}
	}
	return -1
}

// checked is a table whose holders are observed.
type checked struct {
	t       *testing.T
	db      *dynamodb.Client
	clients *leasehold.Client // of the holders
	table   *store.Table
}

func newChecked(t *testing.T, cfg leasehold.Config, opts ...func(*dynamodb.Options)) *checked {
	t.Helper()
	db := localdynamo.New().Client(opts...)
	if err := table.Create(t.Context(), db, table.Spec{Name: "locks"}); err != nil {
		t.Fatal(err)
	}
	cfg.Table = "locks"
	clients, err := leasehold.New(db, cfg)
	if err != nil {
		t.Fatal(err)
	}
	locks, err := leasehold.New(db, leasehold.Config{Table: "locks"})
	if err != nil {
		t.Fatal(err)
	}
	proto, err := records.Of(layout.Native{})
	if err != nil {
		t.Fatal(err)
	}
	s := &store.Store{DB: db, Table: "locks", Location: "here", Layout: layout.Native{}, Proto: proto}
	return &checked{t, db, clients, &store.Table{Store: s, Locks: locks}}
}

// hold acquires n keys.
func (c *checked) hold(n int, prefix string, opts ...leasehold.AcquireOption) {
	c.t.Helper()
	for i := range n {
		c.acquire(fmt.Sprint(prefix, i), opts...)
	}
}

func (c *checked) acquire(key string, opts ...leasehold.AcquireOption) *leasehold.Lock {
	c.t.Helper()
	lock, err := c.clients.Acquire(c.t.Context(), key, opts...)
	if err != nil {
		c.t.Fatal(err)
	}
	return lock
}

func (c *checked) close() {
	c.t.Helper()
	if err := c.clients.Close(context.WithoutCancel(c.t.Context())); err != nil {
		c.t.Fatal(err)
	}
}

// throttling refuses requests while on.
type throttling struct {
	on   atomic.Bool
	next aws.HTTPClient
}

func (th *throttling) Do(r *http.Request) (*http.Response, error) {
	if th.on.Load() {
		return nil, errors.New("the network is down")
	}
	return th.next.Do(r)
}

func newBreaking(t *testing.T, answer io.Reader, opts ...func(*dynamodb.Options)) *breaking {
	t.Helper()
	b := &breaking{checked: newChecked(t, leasehold.Config{Logger: slog.New(slog.DiscardHandler)}, opts...)}
	env := invocation.Env{Stdin: answer, Stdout: &b.stdout, Stderr: b, Now: time.Now, LookupEnv: nothingSet}
	b.command = &command{invocation.New(env)}
	b.began = time.Now()
	return b
}

// run is break --dead with what --for is if nobody says it.
func (b *breaking) run(ctx context.Context, f breakFlags) error {
	b.began = time.Now()
	b.said = nil
	b.table.DB, b.table.Meter = requests.Metered(b.db)
	return b.command.breakDead(ctx, b.table, b.prefix, f)
}

func nothingSet(string) (string, bool) { return "", false }

// byDefault are the flags of break --dead if nobody gives others.
func byDefault() breakFlags {
	value := Break(invocation.New(invocation.Env{LookupEnv: nothingSet})).Flags().Lookup("for").Value
	return breakFlags{dead: true, checkFor: *value.(arguments.Duration).D}
}

// silence is a terminal at which nobody types.
type silence struct{ ctx context.Context }

func (s silence) Read([]byte) (int, error) {
	<-s.ctx.Done()
	return 0, io.EOF
}

func TestEachDeadHolderIsShownAsItIsKnownAndThoseKnownInAMinuteAreAskedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBreaking(t, strings.NewReader("y\n"))
		b.hold(1, "brief/", leasehold.WithLease(5*time.Second), leasehold.WithoutRenewal())
		b.hold(1, "middling/", leasehold.WithLease(30*time.Second), leasehold.WithoutRenewal())
		b.hold(1, "long/", leasehold.WithLease(12*time.Hour), leasehold.WithoutRenewal())
		b.hold(1, "live/")
		if err := b.run(t.Context(), byDefault()); err != nil {
			t.Fatal(err)
		}
		if at := b.first("brief/0"); at < 5*time.Second || at > 7*time.Second {
			t.Errorf("a lease of 5 s was shown after %v", at)
		}
		if at := b.first("middling/0"); at < 30*time.Second || at > 33*time.Second {
			t.Errorf("a lease of 30 s was shown after %v", at)
		}
		if at := b.first("Break the grants of 2 dead holders? [y/N] "); at != time.Minute {
			t.Errorf("it asked after %v", at)
		}
		if b.first("long/0") >= 0 || b.first("live/0") >= 0 {
			t.Errorf("holders are shown that are not dead:\n%s", &b.stderr)
		}
		if at := b.first("1 holder is not known to be dead yet: left alone; observe for longer with --for"); at != time.Minute {
			t.Errorf("what was left alone was said after %v", at)
		}
		if lines := strings.Count(b.stdout.String(), "broke the grant of "); lines != 2 {
			t.Errorf("stdout:\n%s", &b.stdout)
		}
		for key, released := range map[string]bool{"brief/0": true, "middling/0": true, "long/0": false, "live/0": false} {
			if r, err := b.table.Locks.Get(t.Context(), key); err != nil || r.Released != released {
				t.Errorf("%s: released: %v, %v", key, r.Released, err)
			}
		}
		b.close()
	})
}

func TestWithoutALimitTheDeadAreAskedForOnceAllAreKnown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBreaking(t, strings.NewReader("y\n"))
		b.hold(1, "long/", leasehold.WithLease(12*time.Hour), leasehold.WithoutRenewal())
		f := byDefault()
		f.checkFor = 0 // until all are known
		if err := b.run(t.Context(), f); err != nil {
			t.Fatal(err)
		}
		if at := b.first("Break the grant of 1 dead holder? [y/N] "); at < 12*time.Hour {
			t.Errorf("--for 0 asked after %v", at)
		}
		b.close()
	})
}

func TestCtrlCEndsTheSearchForTheDeadAndBreaksNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(t.Context())
		b := newBreaking(t, silence{ctx})
		b.hold(1, "brief/", leasehold.WithLease(5*time.Second), leasehold.WithoutRenewal())
		b.hold(1, "long/", leasehold.WithLease(12*time.Hour), leasehold.WithoutRenewal())
		enough := errors.New("Ctrl-C")
		time.AfterFunc(10*time.Second, func() { cancel(enough) })
		if err := b.run(ctx, byDefault()); !errors.Is(err, enough) {
			t.Fatalf("it ended with %v", err)
		}
		if b.first("brief/0") < 0 {
			t.Errorf("what was known is not shown:\n%s", &b.stderr)
		}
		if r, err := b.table.Locks.Get(t.Context(), "brief/0"); err != nil || r.Released {
			t.Errorf("%+v, %v", r, err)
		}
		b.close()
	})
}

// hanging keeps breaks of one key from the table, and answers them after their caller
// has left.
type hanging struct {
	key  string
	then func()
	next aws.HTTPClient
}

func (h hanging) Do(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	if strings.HasSuffix(r.Header.Get("X-Amz-Target"), ".UpdateItem") && bytes.Contains(body, []byte(`"`+h.key+`"`)) && bytes.Contains(body, []byte("lastBreak")) {
		h.then()
		time.Sleep(time.Minute)
		return nil, errors.New("no answer")
	}
	return h.next.Do(r)
}

func TestCtrlCWhileTheDeadAreBrokenSaysWhatBecameOfEach(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(t.Context())
		enough := errors.New("Ctrl-C")
		b := newBreaking(t, silence{ctx}, func(o *dynamodb.Options) {
			o.HTTPClient = hanging{"brief/11", func() { time.AfterFunc(time.Second, func() { cancel(enough) }) }, o.HTTPClient}
		})
		b.hold(2*breaksAtOnce, "brief/", leasehold.WithLease(5*time.Second), leasehold.WithoutRenewal())
		f := byDefault()
		f.yes = true
		if err := b.run(ctx, f); !errors.Is(err, enough) {
			t.Fatalf("it ended with %v", err)
		}
		for r, err := range b.table.Locks.List(t.Context()) {
			if err != nil {
				t.Fatal(err)
			}
			said := strings.Contains(b.stdout.String(), fmt.Sprintf("broke the grant of %s to ", r.Key.Partition))
			if said != r.Released {
				t.Errorf("%s: broken: %v, said: %v", r.Key, r.Released, said)
			}
		}
		if lines := strings.Count(b.stdout.String(), "broke the grant of "); lines != breaksAtOnce-1 {
			t.Errorf("%d were said to be broken:\n%s", lines, &b.stdout)
		}
		if !strings.Contains(b.stderr.String(), "break brief/11 in ") || !strings.Contains(b.stderr.String(), "the outcome is unknown") {
			t.Errorf("nothing says what became of brief/11:\n%s", &b.stderr)
		}
		b.close()
		time.Sleep(2 * time.Minute) // until the last request is answered
	})
}

func TestAHolderThatHasRenewedItsSessionSinceIsNotBroken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := t.Context()
		c := newChecked(t, leasehold.Config{SharedLease: true})
		lock := c.acquire("job")
		by := c.table.Observer(time.Second)
		found := by.Observe(ctx, []leasehold.Record{lock.Record()})
		time.Sleep(6 * time.Second)
		if errs := breakAll(ctx, by, found, breakFlags{}); !errors.Is(errs[0], leasehold.ErrChanged) || lock.Err() != nil {
			t.Errorf("after it has renewed: %v, and the holder: %v", errs[0], lock.Err())
		}
		c.close()
		if errs := breakAll(ctx, by, found, breakFlags{}); errs[0] != nil {
			t.Errorf("after its session has ended: %v", errs[0])
		}
	})
}
