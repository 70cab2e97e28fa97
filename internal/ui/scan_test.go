package ui

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/lab"
	"github.com/leasehold-go/leasehold/internal/protocol"
	"github.com/leasehold-go/leasehold/internal/records"
	"github.com/leasehold-go/leasehold/layout"
	"github.com/leasehold-go/leasehold/semaphore"
)

// bench is a server over the table of a World, and a page of it.
type bench struct {
	*lab.World
	server *Server
	source *counted
	page   *listener
	broke  []string

	rows    map[int]rowView // what the page knows
	lock    lockView        // that it shows
	status  status
	hello   hello
	beats   int
	lists   int
	stopped chan struct{}
}

// counted counts the requests of the page, and makes them fail.
type counted struct {
	Source

	mu    sync.Mutex
	pages int
	units float64
	err   error
}

func (c *counted) Page(ctx context.Context, start protocol.Item) (Page, error) {
	if err := c.count(1, 0); err != nil {
		return Page{}, err
	}
	p, err := c.Source.Page(ctx, start)
	return p, errors.Join(err, c.count(0, p.Units))
}

func (c *counted) Item(ctx context.Context, key protocol.Key) (protocol.Item, float64, error) {
	if err := c.count(0, 0); err != nil {
		return nil, 0, err
	}
	item, units, err := c.Source.Item(ctx, key)
	return item, units, errors.Join(err, c.count(0, units))
}

func (c *counted) count(pages int, units float64) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.pages += pages
	c.units += units
	return c.err
}

// fail has every request fail; nil mends it.
func (c *counted) fail(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.err = err
}

// sofar returns the pages and read units that were taken so far.
func (c *counted) sofar() (pages int, units float64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.pages, c.units
}

// serve starts a server over w's table, which ends with the test, and opens a page.
func serve(t *testing.T, w *lab.World, l layout.Layout, change ...func(*Config)) *bench {
	t.Helper()
	proto, err := records.Of(l)
	if err != nil {
		t.Fatal(err)
	}
	cfg := lab.Config()
	cfg.Layout = l
	locks, _ := w.Client(cfg)
	b := &bench{World: w, rows: map[int]rowView{}, stopped: make(chan struct{})}
	b.source = &counted{Source: NewTable(w.DB, "locks", locks, proto)}
	c := Config{
		Source: b.source, Layout: l, Table: "locks", Location: "here", Token: secret, Rate: 100, Every: time.Second,
		Explain: func(err error) string { return err.Error() },
		Broke:   func(r leasehold.Record, reason string) { b.broke = append(b.broke, r.Key.String()+": "+reason) },
	}
	for _, change := range change {
		change(&c)
	}
	b.server, err = New(c, proto, locks.Capabilities(), &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 4711})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	go func() {
		defer close(b.stopped)
		b.server.Run(ctx)
	}()
	t.Cleanup(func() {
		stop()
		<-b.stopped
		_ = locks.Close(context.Background())
	})
	b.page = b.server.scan.join(b.server.hello)
	lab.Elapse(50 * time.Millisecond)
	return b
}

// listen reads what the page was sent.
func (b *bench) listen() {
	b.T.Helper()
	for {
		select {
		case m := <-b.page.out:
			b.hear(m)
		default:
			return
		}
	}
}

func (b *bench) hear(m []byte) {
	b.T.Helper()
	event, data, _ := bytes.Cut(bytes.TrimSuffix(m, []byte("\n\n")), []byte("\ndata: "))
	var list changes
	to := map[string]any{"event: hello": &b.hello, "event: status": &b.status, "event: list": &list, "event: lock": &b.lock}[string(event)]
	switch string(event) {
	case "event: lock":
		b.lock = lockView{}
	case "event: status":
		b.status = status{}
	}
	if err := json.Unmarshal(data, to); err != nil {
		b.T.Fatalf("%s: %v", m, err)
	}
	if string(event) == "event: list" {
		b.lists++
	}
	for _, r := range list.Rows {
		b.rows[r.ID] = r
	}
	for _, beat := range list.Beats {
		r := b.rows[int(beat[0])]
		r.Since, r.Until, r.Warn, r.Lease, r.Renewals = beat[1], beat[2], beat[3], beat[4], int(beat[5])
		b.rows[r.ID] = r
		b.beats++
	}
	for _, id := range list.Gone {
		delete(b.rows, id)
	}
}

// row is a key as the page knows it.
func (b *bench) row(key string) rowView {
	b.T.Helper()
	b.listen()
	for _, r := range b.rows {
		if r.Key == key {
			return r
		}
	}
	return rowView{}
}

// post sends what a page sends, and decodes the answer.
func (b *bench) post(path string, body, to any) int {
	b.T.Helper()
	sent, err := json.Marshal(body)
	if err != nil {
		b.T.Fatal(err)
	}
	r := httptest.NewRequest(http.MethodPost, "http://"+here+path, bytes.NewReader(sent))
	ours(r)
	w := httptest.NewRecorder()
	b.server.ServeHTTP(w, r)
	if err := json.Unmarshal(w.Body.Bytes(), to); err != nil {
		b.T.Fatalf("%s: %d: %s", path, w.Code, w.Body)
	}
	return w.Code
}

func (b *bench) show(key, sort string) {
	b.T.Helper()
	var out outcome
	if code := b.post("/show", map[string]string{"page": b.page.id, "key": key, "sort": sort}, &out); code != http.StatusOK {
		b.T.Fatalf("show: %d %v", code, out)
	}
	lab.Elapse(0)
	b.listen()
}

// told is what has happened to the lock that is shown.
func (b *bench) told() string {
	var all []string
	for _, e := range b.lock.Events {
		s := string(e.Kind)
		if e.Reason != "" {
			s += ": " + e.Reason
		}
		all = append(all, s)
	}
	return strings.Join(all, "; ")
}

func TestAPageSeesALockChange(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		b := serve(t, w, layout.Native{})
		holder, _ := w.Client(lab.Config())
		lab.Elapse(2 * time.Second)
		lock := w.Acquire(holder, "job", leasehold.WithData([]byte("10.0.0.7")))
		lab.Elapse(time.Second)
		r := b.row("job")
		if r.State != Held || r.Owner != lock.Record().Owner || r.Token != lock.Token() || r.Lease != 20_000 {
			t.Errorf("held: %+v", r)
		}
		b.show("job", "")
		before := r.Until
		lab.Elapse(6 * time.Second)
		if r := b.row("job"); r.Until <= before || r.Renewals == 0 || b.beats == 0 {
			t.Errorf("renewed: %+v, %d beats", r, b.beats)
		}
		w.Release(lock)
		lab.Elapse(time.Second)
		if r := b.row("job"); r.State != Released {
			t.Errorf("released: %+v", r)
		}
		w.Delete("job")
		lab.Elapse(2 * time.Second)
		if r := b.row("job"); r.ID != 0 {
			t.Errorf("deleted: %+v", r)
		}
		b.listen()
		if got := b.told(); got != "grant; release; deletion" || len(b.lock.Spans) != 1 || b.lock.Spans[0].Value != "10.0.0.7" {
			t.Errorf("told: %s; spans %+v", got, b.lock.Spans)
		}
	})
}

func TestADeadHolderTurnsDeadAfterItsLeaseAndTheNextOneTakesOver(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		b := serve(t, w, layout.Native{})
		first, _ := w.Client(lab.Config())
		w.Detach(w.Acquire(first, "job", leasehold.WithLease(10*time.Second)))
		lab.Elapse(time.Second)
		b.show("job", "")
		lab.Elapse(8 * time.Second)
		if r := b.row("job"); r.State != Held && r.State != Expiring {
			t.Errorf("before its lease has ended: %+v", r)
		}
		lab.Elapse(3 * time.Second)
		if r := b.row("job"); r.State != Dead {
			t.Errorf("after it: %+v", r)
		}
		second, _ := w.Client(lab.Config())
		lock := w.Acquire(second, "job")
		lab.Elapse(time.Second)
		b.listen()
		if got := b.told(); got != "grant; death; takeover" {
			t.Errorf("told: %s", got)
		}
		last := b.lock.Events[len(b.lock.Events)-1]
		if last.Token != lock.Token() || last.FromToken != lock.Token()-1 || last.FromOwner == last.Owner {
			t.Errorf("takeover: %+v", last)
		}
		w.Release(lock)
	})
}

func TestAllLayoutsAreShown(t *testing.T) {
	for _, name := range layout.Names() {
		l, err := layout.Parse(name)
		if err != nil {
			t.Fatal(err)
		}
		t.Run(name, func(t *testing.T) {
			lab.InLayout(t, l, func(t *testing.T, w *lab.World, cfg leasehold.Config) {
				b := serve(t, w, l)
				lab.Elapse(time.Second)
				holder, _ := w.Client(cfg)
				var opts []leasehold.AcquireOption
				proto, _ := records.Of(l)
				if proto.Schema().Sort != "" && proto.Complete(protocol.Key{}).Sort == "" {
					opts = append(opts, leasehold.WithSortKey("s"))
				}
				lock := w.Acquire(holder, "job", opts...)
				lab.Elapse(2 * time.Second)
				r := b.row("job")
				if r.State != Held || r.Token != lock.Token() || r.Until <= b.status.Now || r.Sort != lock.Key().Sort {
					t.Errorf("held: %+v", r)
				}
				b.show(r.Key, r.Sort)
				w.Detach(lock)
				lab.Elapse(40 * time.Second)
				if r := b.row("job"); r.State != Dead {
					t.Errorf("dead: %+v", r)
				}
				b.server.cfg.AllowBreak = true
				var shown []shownRecord
				if code := b.post("/look", map[string]string{"key": r.Key, "sort": r.Sort}, &anyRecord{&shown}); code != http.StatusOK || len(shown) != 1 {
					t.Fatalf("look: %d %+v", code, shown)
				}
				var out outcome
				if code := b.post("/break", breakRequest{shown[0].shownGrant, r.Key, "it is stuck"}, &out); code != http.StatusOK {
					t.Fatalf("break: %d %+v", code, out)
				}
				b.listen()
				if got := b.told(); got != "grant; death; break: it is stuck" {
					t.Errorf("told: %s", got)
				}
			})
		})
	}
}

// anyRecord reads what look answers. A leasehold.Record is written as JSON, never read.
type anyRecord struct{ to *[]shownRecord }

func (a *anyRecord) UnmarshalJSON(b []byte) error {
	var all []shownGrant
	err := json.Unmarshal(b, &all)
	for _, g := range all {
		*a.to = append(*a.to, shownRecord{shownGrant: g})
	}
	return err
}

func TestReadWriteLocksSemaphoresAndSessionsAreShownAsWhatTheyAre(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		b := serve(t, w, layout.Native{})
		c, _ := w.Client(lab.Config())
		readers := []*leasehold.Lock{}
		for range 2 {
			lock, err := c.AcquireRead(t.Context(), "index")
			if err != nil {
				t.Fatal(err)
			}
			readers = append(readers, lock)
		}
		other, _ := w.Client(lab.Config())
		writes := make(chan *leasehold.Lock)
		go func() {
			lock, err := other.AcquireWrite(t.Context(), "index")
			if err != nil {
				t.Error(err)
			}
			writes <- lock
		}()
		sem, err := semaphore.New(c, "gpu", 3)
		if err != nil {
			t.Fatal(err)
		}
		permit, err := sem.Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		shared, _ := w.Client(lab.SharedConfig())
		under := w.Acquire(shared, "customer/7")
		lab.Elapse(2 * time.Second)

		if r := b.row("index"); r.Kind != KindReadWrite || r.Holders != 2 || r.Mode != protocol.ModeRead || r.Intent == "" {
			t.Errorf("read/write lock: %+v", r)
		}
		if r := b.row("gpu"); r.Kind != KindSemaphore || r.Permits != 3 {
			t.Errorf("semaphore: %+v", r)
		}
		if r := b.row(permit.Key().Partition); r.Semaphore != "gpu" || r.State != Held {
			t.Errorf("permit: %+v", r)
		}
		r := b.row("customer/7")
		row := b.row("leasehold/session/" + r.Session)
		if r.Session == "" || r.State != Held || row.Kind != KindSession || row.Until <= b.status.Now || r.Until != 0 {
			t.Errorf("lock %+v under session %+v", r, row)
		}
		for _, lock := range readers {
			w.Release(lock)
		}
		writer := <-writes
		lab.Elapse(2 * time.Second)
		if r := b.row("index"); r.Mode != protocol.ModeWrite || r.Holders != 1 || r.Intent != "" {
			t.Errorf("a writer: %+v", r)
		}
		w.Release(writer)
		w.Release(permit)
		w.Release(under)
		_ = shared.Close(t.Context())
	})
}

func TestTheLocksUnderASessionDieWithIt(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		b := serve(t, w, layout.Native{})
		c, wire := w.Client(lab.SharedConfig())
		w.Acquire(c, "customer/7")
		lab.Elapse(2 * time.Second)
		b.show("customer/7", "")
		wire.SetFault(lab.Cut)
		lab.Elapse(25 * time.Second)
		if r := b.row("customer/7"); r.State != Dead {
			t.Errorf("%+v", r)
		}
		b.listen()
		if got := b.told(); got != "grant; death" {
			t.Errorf("told: %s", got)
		}
		wire.SetFault(nil)
		_ = c.Close(t.Context())
	})
}

func TestADamagedRecordIsShownWithWhatIsWrong(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		b := serve(t, w, layout.Native{})
		w.Put(map[string]types.AttributeValue{"key": &types.AttributeValueMemberS{Value: "odd"}})
		lab.Elapse(2 * time.Second)
		if r := b.row("odd"); r.State != Damaged || !strings.Contains(r.Problem, "attribute") {
			t.Errorf("%+v", r)
		}
	})
}

func TestSeveralPagesCostOneScan(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		b := serve(t, w, layout.Native{})
		for range 5 {
			l := b.server.scan.join(b.server.hello)
			defer b.server.scan.leave(l)
		}
		before, _ := b.source.sofar()
		lab.Elapse(20 * time.Second)
		if after, _ := b.source.sofar(); after-before < 19 || after-before > 21 {
			t.Errorf("%d requests in 20 s for 6 pages", after-before)
		}
	})
}

func TestTheTableIsNeverReadFasterThanSaidAndAPageMaySlowItDown(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, _ := w.Client(lab.Config())
		for i := range 600 {
			w.Detach(w.Acquire(c, fmt.Sprint("job/", i), leasehold.WithLease(time.Hour)))
		}
		b := serve(t, w, layout.Native{}, func(c *Config) { c.Rate = 10 })
		_, began := b.source.sofar()
		lab.Elapse(60 * time.Second)
		_, units := b.source.sofar()
		took := (units - began) / 60
		b.listen()
		if took > 10.5 || took < 8 || b.status.Reading > 12 || b.status.Rate != 10 {
			t.Errorf("%.1f read units a second at most 10; the page says %+v", took, b.status)
		}
		if len(b.rows) != 600 || !b.status.Whole {
			t.Errorf("%d rows", len(b.rows))
		}
		var out struct{}
		b.post("/rate", map[string]float64{"rate": 0}, &out)
		lab.Elapse(2 * time.Second)
		_, began = b.source.sofar()
		lab.Elapse(2 * time.Minute)
		if _, units := b.source.sofar(); units != began {
			t.Errorf("%v read units while it is stopped", units-began)
		}
		b.post("/rate", map[string]float64{"rate": 1e9}, &out)
		lab.Elapse(time.Second)
		b.listen()
		if b.status.Rate != 10 {
			t.Errorf("a page set the rate to %v", b.status.Rate)
		}
	})
}

func TestTheWholeTableIsReadThoughSingleLocksTakeAllThatMayBeRead(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, _ := w.Client(lab.Config())
		w.Detach(w.Acquire(c, "job", leasehold.WithLease(time.Hour)))
		b := serve(t, w, layout.Native{}, func(c *Config) { c.Rate = 1 })
		lab.Elapse(5 * time.Second)
		b.show("job", "")
		lab.Elapse(5 * time.Second)
		w.Detach(w.Acquire(c, "other", leasehold.WithLease(time.Hour)))
		lab.Elapse(time.Minute)
		if r := b.row("other"); r.State != Held {
			t.Errorf("after a minute with a page that shows another lock: %+v", r)
		}
	})
}

func TestAPageIsToldThatTheTableDoesNotAnswerAndThatItDoesAgain(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		b := serve(t, w, layout.Native{})
		lab.Elapse(2 * time.Second)
		b.source.fail(errors.New("the network is down"))
		lab.Elapse(20 * time.Second)
		b.listen()
		if b.status.Trouble != "the network is down" || b.status.Since == 0 {
			t.Errorf("%+v", b.status)
		}
		b.source.fail(nil)
		lab.Elapse(15 * time.Second)
		b.listen()
		if b.status.Trouble != "" {
			t.Errorf("%+v", b.status)
		}
	})
}

func TestABreakFreesTheGrantThatWasShownAndNoOther(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		b := serve(t, w, layout.Native{}, func(c *Config) { c.AllowBreak = true })
		c, _ := w.Client(lab.Config())
		first := w.Acquire(c, "job")
		lab.Elapse(2 * time.Second)
		b.show("job", "")
		look := func() shownGrant {
			var shown []shownRecord
			b.post("/look", map[string]string{"key": "job"}, &anyRecord{&shown})
			if len(shown) != 1 {
				t.Fatalf("shown: %+v", shown)
			}
			return shown[0].shownGrant
		}
		shown := look()
		var out outcome
		if code := b.post("/break", breakRequest{shown, "jab", ""}, &out); code != http.StatusBadRequest {
			t.Errorf("the wrong key was typed: %d %+v", code, out)
		}
		lab.Elapse(6 * time.Second) // it renews: that is the same grant
		if code := b.post("/break", breakRequest{shown, "job", "stuck since noon"}, &out); code != http.StatusOK || out.Outcome != "broken" {
			t.Errorf("break: %d %+v", code, out)
		}
		b.listen()
		if got := b.told(); got != "grant; break: stuck since noon" {
			t.Errorf("told: %s", got)
		}
		if len(b.broke) != 1 || b.broke[0] != "job: stuck since noon" {
			t.Errorf("said: %q", b.broke)
		}
		<-first.Context().Done()
		second := w.Acquire(c, "job")
		if code := b.post("/break", breakRequest{shown, "job", ""}, &out); code != http.StatusConflict || out.Outcome != "changed" || !strings.Contains(string(out.Record), fmt.Sprint(second.Token())) {
			t.Errorf("the grant has changed: %d %+v", code, out)
		}
		if second.Err() != nil {
			t.Error("the second grant was broken")
		}
		w.Release(second)
	})
}

func TestAHolderThatWasShownDeadAndRenewsIsNotBroken(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		b := serve(t, w, layout.Native{}, func(c *Config) { c.AllowBreak = true })
		c, _ := w.Client(lab.Config())
		grant := w.Detach(w.Acquire(c, "job", leasehold.WithLease(5*time.Second)))
		lab.Elapse(10 * time.Second)
		var shown []shownRecord
		b.post("/look", map[string]string{"key": "job"}, &anyRecord{&shown})
		if !shown[0].Dead {
			t.Fatalf("shown: %+v", shown[0])
		}
		item := w.Item("job")
		item["recordVersionNumber"] = &types.AttributeValueMemberS{Value: "renewed-after-all"}
		w.Put(item)
		var out outcome
		if code := b.post("/break", breakRequest{shown[0].shownGrant, "job", ""}, &out); code != http.StatusConflict {
			t.Errorf("%d %+v", code, out)
		}
		_ = grant
	})
}

func TestAHolderWhoseSessionWasShownDeadAndRenewsIsNotBroken(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		b := serve(t, w, layout.Native{}, func(c *Config) { c.AllowBreak = true })
		c, wire := w.Client(lab.SharedConfig())
		w.Acquire(c, "job")
		wire.SetFault(lab.Cut)
		lab.Elapse(30 * time.Second)
		var shown []shownRecord
		b.post("/look", map[string]string{"key": "job"}, &anyRecord{&shown})
		if !shown[0].Dead {
			t.Fatalf("shown: %+v", shown[0])
		}
		session := w.Item("leasehold/session/" + b.row("job").Session)
		session["recordVersionNumber"] = &types.AttributeValueMemberS{Value: "renewed-after-all"}
		w.Put(session)
		var out outcome
		if code := b.post("/break", breakRequest{shown[0].shownGrant, "job", ""}, &out); code != http.StatusConflict || out.Outcome != "changed" {
			t.Errorf("%d %+v", code, out)
		}
		wire.SetFault(nil)
		_ = c.Close(t.Context())
	})
}

func TestNothingIsBrokenUnlessThatIsAllowed(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		b := serve(t, w, layout.Native{})
		var out outcome
		code := b.post("/break", breakRequest{shownGrant{Key: "job", Grant: "g", Version: "v"}, "job", ""}, &out)
		if code != http.StatusForbidden || !strings.Contains(out.Message, "--allow-break") {
			t.Errorf("%d %+v", code, out)
		}
	})
}

func TestAPageThatDoesNotKeepUpIsCutOffAndHoldsNobodyUp(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		b := serve(t, w, layout.Native{})
		lab.Elapse((backlog + 60) * time.Second)
		select {
		case <-b.page.done:
		default:
			t.Errorf("it is %d messages behind", len(b.page.out))
		}
		synctest.Wait()
	})
}
