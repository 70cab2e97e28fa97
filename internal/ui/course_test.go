package ui

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/attempts"
	"github.com/leasehold-go/leasehold/internal/core"
	"github.com/leasehold-go/leasehold/internal/decide"
	"github.com/leasehold-go/leasehold/internal/holders"
	"github.com/leasehold-go/leasehold/internal/lab"
	"github.com/leasehold-go/leasehold/internal/liveness"
	"github.com/leasehold-go/leasehold/internal/machine"
	"github.com/leasehold-go/leasehold/internal/protocol"
	"github.com/leasehold-go/leasehold/internal/records"
	"github.com/leasehold-go/leasehold/layout"
	"github.com/leasehold-go/leasehold/localdynamo"
	"github.com/leasehold-go/leasehold/table"
)

// These are the delays of a request (thither) and of its reply (hither) on the slow
// network.
const (
	thither = 30 * time.Millisecond
	hither  = 20 * time.Millisecond
	trip    = thither + hither
)

// slow is an HTTP client that delays each request and each reply, like a slow network
// between the observers and the table.
type slow struct{ next aws.HTTPClient }

func (s slow) Do(r *http.Request) (*http.Response, error) {
	time.Sleep(thither)
	out, err := s.next.Do(r)
	time.Sleep(hither)
	return out, err
}

// stage is a table whose records change while three observers (a waiter, a command and the
// page) read them.
type stage struct {
	*testing.T
	began   time.Time
	layout  layout.Layout
	skew    time.Duration // MaxSkew of every client; zero if no client sets it
	proto   protocol.Protocol
	db, far *dynamodb.Client // clients of the table: db for the records that the test writes, far for observers on the slow network
	send    *attempts.Sender
	job     protocol.Key // key of the lock
}

func newStage(t *testing.T, l layout.Layout, skew time.Duration) *stage {
	engine := localdynamo.New()
	proto := lab.Must(records.WithMaxSkew(l, skew))(t)
	s := &stage{T: t, began: time.Now(), layout: l, skew: skew, proto: proto, db: engine.Client()}
	s.far = engine.Client(func(o *dynamodb.Options) { o.HTTPClient = slow{o.HTTPClient} })
	lab.OK(t, table.Create(t.Context(), s.db, table.Spec{Name: "locks", Layout: l}))
	s.send = s.sender(s.db)
	s.job = protocol.Key{Partition: "job"}
	if proto.Schema().SortNumber {
		s.job.Sort = "0"
	}
	return s
}

func (s *stage) sender(db *dynamodb.Client) *attempts.Sender {
	return &attempts.Sender{DB: db, Table: "locks", Keys: s.proto, Chance: func() float64 { return 0 }, Log: slog.New(slog.DiscardHandler)}
}

func (s *stage) write(w *protocol.Write) {
	s.Helper()
	if r := s.send.Write(s.Context(), w, time.Minute); r.Err != nil {
		s.Fatal(r.Err)
	}
}

// actor is the simulated owner of one record: the holder of a lock, or a session.
type actor struct {
	s       *stage
	proto   protocol.Protocol
	hold    protocol.Hold
	version string
}

// sessionID is the client id of all actors.
const sessionID = "abcdefghijklmnopqrstuvwxyz"

// grant writes a grant of key to a new actor. If session is not "", the lock is under the
// session with that id.
func (s *stage) grant(proto protocol.Protocol, key protocol.Key, session string) *actor {
	s.Helper()
	version, owner := protocol.NewVersion(), "host/"+sessionID
	s.write(proto.Grant(protocol.Grant{Key: key, Owner: owner, Version: version, Lease: 20 * time.Second, Now: time.Now(), Session: session}))
	return &actor{s, proto, protocol.Hold{Key: key, Owner: owner, Grants: []string{version}, Versions: []string{version}}, version}
}

func (s *stage) lock() *actor { return s.grant(s.proto, s.job, "") }

// shared writes a grant of the lock under a new session. It returns the actor that renews
// the session.
func (s *stage) shared() *actor {
	s.Helper()
	s.grant(s.proto, s.job, sessionID)
	sharing := s.proto.(protocol.Native)
	return s.grant(sharing.Session(), sharing.SessionKey(sessionID), "")
}

func (a *actor) renew() {
	a.s.Helper()
	version := protocol.NewVersion()
	a.s.write(a.proto.Renew(a.hold, protocol.Renewal{Version: version, Lease: 20 * time.Second, Now: time.Now()}))
	a.hold.Versions = []string{version}
}

func (a *actor) release() {
	a.s.Helper()
	a.s.write(a.proto.Release(a.hold, protocol.Release{Version: protocol.NewVersion(), Now: time.Now()}))
}

func (a *actor) remove() {
	a.s.Helper()
	lab.Must(a.s.db.DeleteItem(a.s.Context(), &dynamodb.DeleteItemInput{TableName: aws.String("locks"), Key: a.key()}))(a.s)
}

func (a *actor) damage() {
	a.s.Helper()
	item := a.key()
	item["ownerName"] = &types.AttributeValueMemberN{Value: "1"}
	lab.Must(a.s.db.PutItem(a.s.Context(), &dynamodb.PutItemInput{TableName: aws.String("locks"), Item: item}))(a.s)
}

func (a *actor) key() map[string]types.AttributeValue {
	a.s.Helper()
	return lab.Must(a.s.proto.Key(a.hold.Key))(a.s)
}

// verdict is the state of a holder as an observer judges it.
type verdict struct {
	what string        // state of the holder or key: live, dead, free or damaged
	at   time.Duration // time at which the holder is found dead, counted from the start of the test
}

// looksOn is a function that observes the holder in a record, and returns its verdict once
// it has one.
type looksOn func(s *stage, of leasehold.Record) verdict

// told is a core.Errors for an observer. For an unreadable record it returns the error in
// its field.
type told struct {
	core.Errors
	error error
}

func (e told) Unreadable(protocol.Key, protocol.Item, error) error { return e.error }

// asWaiter observes a key as a waiting acquire does.
func asWaiter(s *stage, of leasehold.Record) verdict {
	errDamaged := errors.New("damaged")
	clock := func() decide.Instant { d := time.Since(s.began); return decide.Instant{Mono: d, Boot: d} }
	env := &core.Env{
		Machine:  machine.Machine{Now: clock, Wall: time.Now, Memory: 100},
		Requests: s.sender(s.far), Proto: s.proto, Caps: s.layout.Capabilities(), Lease: protocol.DefaultLease, PollMax: time.Second,
		Errors: told{error: errDamaged},
	}
	env.Native, _ = s.proto.(protocol.Native)
	o := liveness.New(env)
	first := ""
	for {
		item, err := o.Requests.Read(s.Context(), s.job)
		if err != nil {
			s.Error(err)
			return verdict{}
		}
		wall, now := time.Now(), clock()
		r, v, err := o.Observe(s.job, item, now)
		switch {
		case errors.Is(err, errDamaged):
			return verdict{what: "damaged"}
		case err != nil:
			s.Error(err)
			return verdict{}
		case r == nil:
			return verdict{what: "free"}
		}
		version, deadAt := r.Version, o.DeadAt(*r, v, now, wall)
		if session := o.SessionOf(*r); session != nil {
			row, at, err := session.Look(s.Context(), 0)
			if err != nil {
				s.Error(err)
			}
			version, deadAt = row.Version, at
		}
		if first == "" {
			first = version
		}
		now = clock()
		switch {
		case now.Mono >= deadAt:
			return verdict{"dead", deadAt}
		case version != first && !protocol.IsNoRow(version):
			return verdict{what: "live"}
		}
		time.Sleep(min(time.Second, deadAt-now.Mono))
	}
}

// asCommand observes a key as the commands ls --check, get --check and break do.
func asCommand(s *stage, of leasehold.Record) verdict {
	locks, err := leasehold.New(s.far, leasehold.Config{Table: "locks", Layout: s.layout})
	if err != nil {
		s.Error(err)
		return verdict{}
	}
	switch found := holders.New(s.far, "locks", s.proto, s.layout.Capabilities(), locks).Observe(s.Context(), []leasehold.Record{of})[0]; {
	case errors.As(found.Err, new(*leasehold.RecordError)):
		return verdict{what: "damaged"}
	case found.Gone, found.Record.Released:
		return verdict{what: "free"}
	default:
		return verdict{string(found.State), found.Beat.Until.Sub(s.began)}
	}
}

// asPage observes a key as the page does: it reads the whole table repeatedly.
func asPage(s *stage, of leasehold.Record) verdict {
	scan := newScanner(Config{Source: NewTable(s.far, "locks", nil, s.proto, s.layout.Capabilities()), Rate: 100, Every: time.Second}, s.proto, liveness.RuleOf(s.proto, s.layout.Capabilities()), s.began)
	for {
		var at attempts.Walk
		scan.begin(time.Now())
		if err := scan.page(s.Context(), &at); err != nil {
			s.Error(err)
			return verdict{}
		}
		lock := scan.board.entries[s.job].lock
		switch stateAt(lock, lock.Look.Asked) {
		case Damaged:
			return verdict{what: "damaged"}
		case Released:
			return verdict{what: "free"}
		}
		h := scan.holder(s.job, holders.GrantOf(of))
		renewals := h.Beat.Renewals
		if of.Session != "" {
			renewals = 0
			if row := scan.board.entries[s.proto.(protocol.Native).SessionKey(of.Session)]; row != nil && row.lock.Holder != nil {
				renewals = row.lock.Holder.Beat.Renewals
			}
		}
		switch {
		case h.Beat.Dead:
			return verdict{"dead", h.Beat.Until.Sub(s.began)}
		case renewals > 0:
			return verdict{what: "live"}
		}
		time.Sleep(time.Second)
	}
}

// nothing does nothing: no record is written after the observers have begun.
func nothing() {}

// later returns a function that waits for d and then calls do.
func later(d time.Duration, do func()) func() {
	return func() { time.Sleep(d); do() }
}

func TestUIPageAndCommandAndWaiterAgreeOnStateOfHolder(t *testing.T) {
	const lease, soon = 20 * time.Second, 5 * time.Second
	clocked := layout.DynamoDLM{MaxSkew: 3 * time.Second}
	every := clocked.Capabilities().LeaseStep
	silent, live := verdict{"dead", trip + lease}, verdict{what: "live"}
	for name, course := range map[string]struct {
		layout layout.Layout
		// play writes the records that exist before the observers begin. It returns a
		// function that writes the later records.
		play func(s *stage) (then func())
		// want is the verdict that each observer must reach. Its time may be up to two
		// trips later than want.at. If want.at is zero, the time is not checked.
		want verdict
	}{
		"silence": {layout.Native{}, func(s *stage) func() { s.lock(); return nothing }, silent},
		"silence after a renewal that nobody saw": {layout.Native{}, func(s *stage) func() { s.lock().renew(); return nothing }, silent},
		"renewals":                       {layout.Native{}, func(s *stage) func() { return later(soon, s.lock().renew) }, live},
		"a renewal at the last moment":   {layout.Native{}, func(s *stage) func() { return later(trip+lease+thither-time.Millisecond, s.lock().renew) }, live},
		"a release":                      {layout.Native{}, func(s *stage) func() { return later(soon, s.lock().release) }, verdict{what: "free"}},
		"a deletion":                     {layout.Native{}, func(s *stage) func() { return later(soon, s.lock().remove) }, verdict{what: "free"}},
		"damage":                         {layout.Native{}, func(s *stage) func() { return later(soon, s.lock().damage) }, verdict{what: "damaged"}},
		"a session in silence":           {layout.Native{}, func(s *stage) func() { s.shared(); return nothing }, silent},
		"a session that is renewed":      {layout.Native{}, func(s *stage) func() { return later(soon, s.shared().renew) }, live},
		"a session that is marked dead":  {layout.Native{}, func(s *stage) func() { return later(soon, s.shared().release) }, verdict{what: "dead"}},
		"a session without a row":        {layout.Native{}, func(s *stage) func() { s.shared().remove(); return nothing }, silent},
		"a session whose row goes":       {layout.Native{}, func(s *stage) func() { return later(10*time.Second, s.shared().remove) }, verdict{what: "dead"}},
		"an expiry time":                 {clocked, func(s *stage) func() { s.lock(); return nothing }, verdict{"dead", lease + 3*time.Second + every}},
		"an expiry time that is put off": {clocked, func(s *stage) func() { return later(soon, s.lock().renew) }, live},
	} {
		t.Run(name, func(t *testing.T) { giveOneAnswer(t, course.layout, 0, course.play, course.want) })
	}
}

func TestWaiterAndUIPageAgreeOnHolderUnderMaxSkew(t *testing.T) {
	const lease, skew = 20 * time.Second, 3 * time.Second
	for name, course := range map[string]struct {
		play func(s *stage) (then func())
		want verdict
	}{
		"a lease that has ended":   {func(s *stage) func() { s.lock(); time.Sleep(lease + skew); return nothing }, verdict{"dead", lease + skew}},
		"a lease that ends soon":   {func(s *stage) func() { s.lock(); time.Sleep(15 * time.Second); return nothing }, verdict{"dead", lease + skew}},
		"a session that has ended": {func(s *stage) func() { s.shared(); time.Sleep(lease + skew); return nothing }, verdict{"dead", lease + skew}},
		"renewals": {func(s *stage) func() {
			a := s.lock()
			time.Sleep(15 * time.Second)
			return later(2*time.Second, a.renew)
		}, verdict{what: "live"}},
		"a holder who does not vouch": {func(s *stage) func() {
			vouched := s.proto
			s.proto, _ = records.Of(s.layout)
			s.lock()
			s.proto = vouched
			time.Sleep(lease)
			return nothing
		}, verdict{"dead", lease + trip + lease}},
	} {
		t.Run(name, func(t *testing.T) { giveOneAnswer(t, layout.Native{}, skew, course.play, course.want) })
	}
}

// giveOneAnswer runs the three observers at once, and checks that each of them reaches the
// verdict want.
func giveOneAnswer(t *testing.T, l layout.Layout, skew time.Duration, play func(s *stage) (then func()), want verdict) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t, l, skew)
		then := play(s)
		holder := s.holder()
		type told struct {
			who string
			verdict
		}
		all := make(chan told)
		for who, look := range map[string]looksOn{"the waiter": asWaiter, "the command": asCommand, "the page": asPage} {
			go func() { all <- told{who, look(s, holder)} }()
		}
		go then()
		for range 3 {
			if got := <-all; got.what != want.what || want.at > 0 && (got.at < want.at || got.at > want.at+2*trip) {
				t.Errorf("to %s the holder is %s since %v, want %s since %v", got.who, got.what, got.at, want.what, want.at)
			}
		}
	})
}

// holder returns the record of the holder, which must be the only record in the list of the
// table.
func (s *stage) holder() leasehold.Record {
	s.Helper()
	locks := lab.Must(leasehold.New(s.db, leasehold.Config{Table: "locks", Layout: s.layout}))(s)
	var all []leasehold.Record
	for r, err := range locks.List(context.Background(), leasehold.ListOptions{}) {
		lab.OK(s, err)
		all = append(all, r)
	}
	if len(all) != 1 {
		s.Fatalf("%+v", all)
	}
	return all[0]
}
