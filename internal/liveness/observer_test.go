package liveness_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/attempts"
	"github.com/leasehold-go/leasehold/internal/core"
	"github.com/leasehold-go/leasehold/internal/decide"
	"github.com/leasehold-go/leasehold/internal/lab"
	"github.com/leasehold-go/leasehold/internal/liveness"
	"github.com/leasehold-go/leasehold/internal/machine"
	"github.com/leasehold-go/leasehold/internal/protocol"
	"github.com/leasehold-go/leasehold/internal/records"
	"github.com/leasehold-go/leasehold/layout"
	"github.com/leasehold-go/leasehold/localdynamo"
)

const lease = 20 * time.Second

var errDamaged = errors.New("damaged")

// world is one table and a monotonic time, which the test sets. The monotonic clocks of all
// observers of the table show this time.
type world struct {
	*testing.T
	db    *network
	proto protocol.Protocol
	now   time.Duration
}

// network counts the reads of one client. If the field "cut" is true, reads get no reply. If the
// field "odd" is true, the items in replies cannot be decoded.
type network struct {
	*dynamodb.Client
	reads    int
	cut, odd bool
}

func (n *network) GetItem(ctx context.Context, in *dynamodb.GetItemInput, o ...func(*dynamodb.Options)) (*dynamodb.GetItemOutput, error) {
	n.reads++
	if n.cut {
		return nil, errors.New("connection reset")
	}
	out, err := n.Client.GetItem(ctx, in, o...)
	if n.odd {
		out.Item["recordVersionNumber"] = &types.AttributeValueMemberN{Value: "1"}
	}
	return out, err
}

func newWorld(t *testing.T, of layout.Layout) *world {
	t.Helper()
	engine := localdynamo.New()
	t.Cleanup(func() { _ = engine.Close() })
	proto := lab.Must(records.Of(of))(t)
	w := &world{T: t, db: &network{Client: engine.Client()}, proto: proto, now: time.Hour}
	name := aws.String(proto.Schema().Partition)
	if _, err := w.db.CreateTable(t.Context(), &dynamodb.CreateTableInput{
		TableName: aws.String("locks"), BillingMode: types.BillingModePayPerRequest,
		KeySchema:            []types.KeySchemaElement{{AttributeName: name, KeyType: types.KeyTypeHash}},
		AttributeDefinitions: []types.AttributeDefinition{{AttributeName: name, AttributeType: types.ScalarAttributeTypeS}},
	}); err != nil {
		t.Fatal(err)
	}
	return w
}

func (w *world) clock() decide.Instant { return decide.Instant{Mono: w.now, Boot: w.now} }

func (w *world) observer() *liveness.Observer {
	o := liveness.New(&core.Env{
		Machine: machine.Machine{Now: w.clock, Wall: time.Now, Memory: 100}, Proto: w.proto, Lease: lease, PollMax: time.Second,
		Errors: told{},
	})
	o.Native, _ = w.proto.(protocol.Native)
	if w.proto.Skew() > 0 {
		o.Caps = layout.DynamoDLM{}.Capabilities()
	}
	o.Requests = &attempts.Sender{
		DB: w.db, Table: "locks", Keys: w.proto, Chance: func() float64 { return 0 }, Log: slog.New(slog.DiscardHandler),
	}
	return o
}

// told implements core.Errors for observers in these tests: it makes the error for a damaged item.
type told struct{ core.Errors }

func (told) Unreadable(key protocol.Key, _ protocol.Item, err error) error {
	return fmt.Errorf("%w: %v: %w", errDamaged, key, err)
}

// send sends a write and fails the test unless it is applied. It returns the written item.
func (w *world) send(write *protocol.Write) protocol.Item {
	w.Helper()
	r := w.observer().Requests.Write(w.Context(), write, time.Minute)
	if r.Err != nil {
		w.Fatal(r.Err)
	}
	return r.Item
}

// grant writes a grant of key with the given version, and returns the written item.
func (w *world) grant(key protocol.Key, version string) protocol.Item {
	w.Helper()
	return w.send(w.proto.Grant(protocol.Grant{Key: key, Owner: "somebody", Version: version, Lease: lease, Now: time.Now()}))
}

func TestHolderIsDeadIfVersionInRecordStaysSameForWholeLease(t *testing.T) {
	w := newWorld(t, layout.Native{})
	o, key := w.observer(), protocol.Key{Partition: "job"}
	deadAt := func(item protocol.Item) time.Duration {
		t.Helper()
		r, v, err := o.Observe(key, item, w.clock())
		if err != nil || r.Released {
			t.Fatalf("observed %+v, %v", r, err)
		}
		return o.DeadAt(r, v, w.clock(), time.Now())
	}
	item := w.grant(key, "one")
	seen := w.now
	for range 3 {
		lab.Want(t, "dead at", deadAt(item), seen+lease)
		w.now += 7 * time.Second
	}
	item = w.send(w.proto.Renew(protocol.Hold{Key: key, Owner: "somebody", Grants: []string{"one"}, Versions: []string{"one"}},
		protocol.Renewal{Version: "two", Lease: lease, Now: time.Now()}))
	lab.Want(t, "dead at, after a renewal", deadAt(item), w.now+lease)
	if another := w.observer(); another != nil { // a new observer sees this version for the first time, so the lease counts from then
		w.now += 7 * time.Second
		r, v, _ := another.Observe(key, item, w.clock())
		lab.Want(t, "dead at, for a new client", another.DeadAt(r, v, w.clock(), time.Now()), w.now+lease)
	}
}

func TestTimeOfDeathIsComputedFromExpiryTimeInRecord(t *testing.T) {
	of := layout.DynamoDLM{MaxSkew: 3 * time.Second}
	w := newWorld(t, of)
	o, wall := w.observer(), time.Now()
	r := protocol.Record{Version: "one", Lease: lease, ExpiresAt: wall.Add(5 * time.Second)}
	want := w.now + 5*time.Second + w.proto.Skew() + of.Capabilities().LeaseStep
	lab.Want(t, "dead at", o.DeadAt(r, liveness.Version{Since: decide.Instant{Mono: math.MinInt64 / 2}}, w.clock(), wall), want)
}

func TestObserverForgetsFreeKey(t *testing.T) {
	w := newWorld(t, layout.Native{})
	o, key := w.observer(), protocol.Key{Partition: "job"}
	item := w.grant(key, "one")
	released := w.send(w.proto.Release(protocol.Hold{Key: key, Owner: "somebody", Grants: []string{"one"}, Versions: []string{"one"}},
		protocol.Release{Version: "two"}))
	for name, free := range map[string]protocol.Item{"no record": nil, "released": released} {
		_, _, _ = o.Observe(key, item, w.clock())
		if r, _, err := o.Observe(key, free, w.clock()); !r.Released || err != nil {
			t.Errorf("%s: %+v, %v", name, r, err)
		}
		w.now += time.Second
		if _, v, _ := o.Observe(key, item, w.clock()); v.Since != w.clock() {
			t.Errorf("%s: the earlier version is still remembered, since %v", name, v.Since)
		}
	}
}

func TestIsNewGrantReturnsFalseForRenewal(t *testing.T) {
	for _, tc := range []struct {
		what   string
		before *protocol.Record
		r      protocol.Record
		want   bool
	}{
		{"first grant", nil, protocol.Record{Grant: "a", Version: "a", Lease: lease}, true},
		{"renewal", &protocol.Record{Grant: "a", Version: "a", Lease: lease}, protocol.Record{Grant: "a", Version: "b", Lease: lease}, false},
		{"other grant id", &protocol.Record{Grant: "a", Version: "a", Lease: lease}, protocol.Record{Grant: "b", Version: "a", Lease: lease}, true},
		{"other library, renewed", &protocol.Record{Owner: "o", Version: "a", Lease: lease}, protocol.Record{Owner: "o", Version: "b", Lease: lease}, false},
		{"other library without owner, renewed", &protocol.Record{Version: "a", Lease: lease}, protocol.Record{Version: "b", Lease: lease}, false},
		{"no owner and no lease", &protocol.Record{Version: "a"}, protocol.Record{Version: "b"}, true},
		{"owner without lease", &protocol.Record{Owner: "o", Version: "a"}, protocol.Record{Owner: "o", Version: "b"}, true},
	} {
		lab.Want(t, tc.what, liveness.IsNewGrant(tc.before, tc.r), tc.want)
	}
}

// start is the time at which the tests begin to observe a record.
var start = time.Date(2026, 3, 4, 3, 12, 0, 0, time.UTC)

func at(d time.Duration) liveness.Reading {
	return liveness.Reading{Asked: start.Add(d), Answered: start.Add(d + 10*time.Millisecond)}
}

func TestHolderIsDeadOnlyIfReadBeganAfterExpiry(t *testing.T) {
	by, r := liveness.Rule{}, protocol.Record{Version: "v1", Lease: lease}
	first := by.Next(liveness.Beat{}, r, at(0))
	seen := at(0).Answered
	for _, c := range []struct {
		asked time.Time
		dead  bool
	}{
		{seen.Add(lease - 1), false}, // the read began before the lease ended, so the holder may have renewed since
		{seen.Add(lease), true},
	} {
		if b := by.Next(first, r, liveness.Reading{Asked: c.asked, Answered: seen.Add(lease + time.Second)}); b.Dead != c.dead || !b.Until.Equal(seen.Add(lease)) {
			t.Errorf("read %v after the version was first seen: dead %v, until %v", c.asked.Sub(seen), b.Dead, b.Until.Sub(seen))
		}
	}
	r.Version = "v2"
	if b := by.Next(first, r, at(9*time.Second)); b.Until != at(9*time.Second).Answered.Add(lease) || b.Renewals != 1 {
		t.Errorf("renewed: until %v, %d renewals", b.Until, b.Renewals)
	}
}

func TestHolderIsDeadAfterExpiryPlusMaxSkew(t *testing.T) {
	by := liveness.Rule{Clocked: true, Skew: 2 * time.Second, Step: time.Second}
	r := protocol.Record{Version: "v", GrantedAt: start, ExpiresAt: start.Add(lease)}
	end := start.Add(lease + 3*time.Second)
	b := by.Next(liveness.Beat{}, r, at(time.Second))
	if b.Dead || !b.Until.Equal(end) || b.Lease != lease+3*time.Second {
		t.Errorf("dead %v, until %v, lease %v", b.Dead, b.Until, b.Lease)
	}
	for _, later := range []time.Duration{0, time.Hour} {
		if b = by.Next(b, r, liveness.Reading{Asked: end.Add(later), Answered: end.Add(later)}); !b.Dead || !b.Until.Equal(end) {
			t.Errorf("%v after the lease has expired by every clock: %+v", later, b)
		}
	}
}

func TestRuleDeclaresSessionDeadAfterWholeLeaseWithoutRow(t *testing.T) {
	by, r := liveness.Rule{}, protocol.Record{Version: "v1", Lease: time.Hour}
	b := by.Next(liveness.Beat{}, r, at(0))
	b = by.Next(b, protocol.NoRow(lease), at(time.Minute))
	if b.Dead || b.Renewals != 0 || !b.Until.Equal(at(time.Minute).Answered.Add(lease)) {
		t.Errorf("first read without a row: %+v", b)
	}
	if b = by.Next(b, protocol.NoRow(lease), at(time.Minute+lease)); b.Dead {
		t.Error("dead before a lease has passed")
	}
	if b = by.Next(b, protocol.NoRow(lease), at(time.Minute+lease+time.Second)); !b.Dead {
		t.Error("live after a lease without a row")
	}
}

func TestHolderIsDeadAtStoredOrObservedExpiryWhicheverIsEarlier(t *testing.T) {
	r := protocol.Record{Version: "v", Lease: lease, LeaseEnds: start.Add(5 * time.Second)}
	for name, c := range map[string]struct {
		by    liveness.Rule
		ends  time.Time
		until time.Time
	}{
		"a stored end in the future":          {liveness.Rule{Skew: time.Second}, start.Add(5 * time.Second), start.Add(6 * time.Second)},
		"a stored end in the past":            {liveness.Rule{Skew: time.Second}, start.Add(-time.Hour), start.Add(time.Second - time.Hour)},
		"a stored end after the observed end": {liveness.Rule{Skew: time.Second}, start.Add(time.Hour), at(0).Answered.Add(lease)},
		"no stored end":                       {liveness.Rule{Skew: time.Second}, time.Time{}, at(0).Answered.Add(lease)},
		"no bound of the clock error":         {liveness.Rule{}, start.Add(-time.Hour), at(0).Answered.Add(lease)},
	} {
		r.LeaseEnds = c.ends
		if b := c.by.Next(liveness.Beat{}, r, at(0)); !b.Until.Equal(c.until) || b.Dead != c.until.Before(start) {
			t.Errorf("%s: until %v, dead %v", name, b.Until.Sub(start), b.Dead)
		}
	}
}

func TestSessionIsMarkedDeadBeforeTakeover(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		holder, holderWire := w.Client(lab.SharedConfig())
		w.Acquire(holder, "job")
		row := w.Sessions()[0]
		holderWire.SetFault(lab.Cut)
		// The waiter has no session of its own: it must read the row of the holder's session.
		waiter, wire := w.Client(lab.Config())
		var marked bool
		wire.SetFault(func(r *lab.Request) (*http.Response, error) {
			if r.Grants() && strings.Contains(string(r.Body), lab.Text(w.Item("job"), "recordVersionNumber")) {
				marked = lab.Text(w.Item(row), "dead") == "1"
			}
			return r.Send()
		})
		lock := w.Acquire(waiter, "job")
		lab.Want(t, "marked dead before the takeover", marked, true)
		lab.Want(t, "row of the dead session has a TTL", w.Item(row)["expiresAt"] != nil, true)
		w.Release(lock)
	})
}

func TestLiveSessionOfPreviousHolderDoesNotPreventTakeover(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		holder, _ := w.Client(lab.SharedConfig())
		w.Acquire(holder, "job")
		// The Java client acquires the key. It does not know sessions, so it leaves the id of the
		// former holder's session in the record.
		w.Update("job", map[string]types.AttributeValue{"ownerName": lab.Str("java"), "recordVersionNumber": lab.Str("j1"), "leaseDuration": lab.Str("20000")})
		began := time.Now()
		_, _, lock := w.Holding(lab.Config())
		lab.WantTook(t, "taken over after", began, 20*time.Second, 22*time.Second)
		w.Release(lock)
		_ = holder.Close(t.Context())
	})
}

func TestClosedSessionOfPreviousHolderDoesNotMakeNewHolderDead(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		former, _ := w.Client(lab.SharedConfig())
		w.Release(w.Acquire(former, "job"))
		lab.OK(t, former.Close(t.Context())) // the session has ended, but the record still contains its id
		_, _, lock := w.Holding(lab.Config())
		if lab.Text(w.Item("job"), "session") == "" {
			t.Fatal("the record contains no session: this test tests nothing")
		}
		c, _ := w.Client(lab.Config())
		lab.WantErr(t, "try of a held key", lab.ErrorOf(c.TryAcquire(t.Context(), "job")), leasehold.ErrHeld)
		w.Release(lock)
	})
}
