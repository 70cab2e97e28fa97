package ui

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"go.uber.org/goleak"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/lab"
	"github.com/leasehold-go/leasehold/internal/records"
	"github.com/leasehold-go/leasehold/layout"
)

// bench is a test fixture: a ui server for the table of a lab.World, and one connected web page.
// It stores the messages that the page has received.
type bench struct {
	*lab.World
	server *Server
	source Source
	wire   *lab.Wire // the server's network connection to the table
	page   *listener
	broke  []string

	rows    map[int]rowView // rows that the page has received, by id
	lock    lockView        // the one lock whose details the page shows
	status  status
	hello   hello
	beats   int
	lists   int
	stopped chan struct{}
}

// hang holds back every reply from the table to the server until end is called.
func (b *bench) hang() (end func()) {
	answered := make(chan struct{})
	b.wire.SetFault(func(r *lab.Request) (*http.Response, error) {
		reply, err := r.Send()
		select {
		case <-answered:
			return reply, err
		case <-r.Context().Done():
			return nil, r.Context().Err()
		}
	})
	return func() {
		b.wire.SetFault(nil)
		close(answered)
	}
}

// serve starts a ui server for w's table, which has the layout l, and connects a page to it. The
// server stops when the test ends.
func serve(t *testing.T, w *lab.World, l layout.Layout, change ...func(*Config)) *bench {
	t.Helper()
	return serveWith(t, w, lab.ConfigOf("locks", l), change...)
}

// serveWith is like serve. The server has the layout and the MaxSkew of cfg.
func serveWith(t *testing.T, w *lab.World, cfg leasehold.Config, change ...func(*Config)) *bench {
	t.Helper()
	l := cfg.Layout
	proto := lab.Must(records.WithMaxSkew(l, cfg.MaxSkew))(t)
	locks, _ := w.Client(cfg)
	b := &bench{World: w, wire: w.Wire(), rows: map[int]rowView{}, stopped: make(chan struct{})}
	b.wire.Meter = &lab.Meter{}
	db := w.Engine.Client(func(o *dynamodb.Options) { o.HTTPClient = b.wire })
	b.source = NewTable(db, "locks", locks, proto, l.Capabilities())
	c := Config{
		Source: b.source, Layout: l, Table: "locks", Location: "here", Secret: secret, Name: named, Rate: 100, Every: time.Second,
		Explain: func(err error) string { return err.Error() },
		Broke:   func(r leasehold.Record, reason string) { b.broke = append(b.broke, r.Key.String()+": "+reason) },
	}
	for _, change := range change {
		change(&c)
	}
	b.server = lab.Must(New(c, proto, l.Capabilities()))(t)
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

// onPage runs a test in a synctest bubble, with a table in the native layout and a connected page.
func onPage(t *testing.T, test func(t *testing.T, w *lab.World, b *bench)) {
	t.Helper()
	lab.InBubble(t, func(t *testing.T, w *lab.World) { test(t, w, serve(t, w, layout.Native{})) })
}

// mortal returns a client and its network connection (wire). The test may cut the wire to
// make the client appear dead. When the test ends, a cleanup function repairs the wire and
// closes the client.
func mortal(t *testing.T, w *lab.World, cfg leasehold.Config) (*leasehold.Client, *lab.Wire) {
	t.Helper()
	c, wire := w.Client(cfg)
	t.Cleanup(func() {
		wire.SetFault(nil)
		_ = c.Close(context.Background())
	})
	return c, wire
}

// acquire acquires a key with a new client. The test must release or detach the lock.
func acquire(w *lab.World, key string, opts ...leasehold.AcquireOption) *leasehold.Lock {
	w.T.Helper()
	c, _ := w.Client(lab.Config())
	return w.Acquire(c, key, opts...)
}

// listen makes the page process all messages that the server has sent to it.
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
		r.Since, r.Until, r.Lease, r.Renewals = beat[1], beat[2], beat[3], int(beat[4])
		b.rows[r.ID] = r
		b.beats++
	}
	for _, id := range list.Gone {
		delete(b.rows, id)
	}
}

// heard returns the latest status message that the page has received.
func (b *bench) heard() status {
	b.T.Helper()
	b.listen()
	return b.status
}

// row returns the row that the page has received for a key, or an empty row.
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

// isShown fails the test unless the page shows a key in the given state. The failure message
// begins with the text "what".
func (b *bench) isShown(what, key string, state State) {
	b.T.Helper()
	if r := b.row(key); r.State != state {
		b.T.Errorf("%s: %+v, want %s", what, r, state)
	}
}

// The method "tells" fails the test unless exactly the given events are on the page, in the details
// of the selected lock.
func (b *bench) tells(events string) {
	b.T.Helper()
	b.listen()
	var told []string
	for _, e := range b.lock.Events {
		s := string(e.Kind)
		if e.Reason != "" {
			s += ": " + e.Reason
		}
		told = append(told, s)
	}
	lab.Want(b.T, "events", strings.Join(told, "; "), events)
}

// post sends a request as the page would, decodes the response into the value that reply points
// to, and returns the status code.
func (b *bench) post(path string, body, reply any) int {
	b.T.Helper()
	sent := lab.Must(json.Marshal(body))(b.T)
	r := httptest.NewRequest(http.MethodPost, "http://"+here+path, bytes.NewReader(sent))
	ours(r)
	w := httptest.NewRecorder()
	b.server.ServeHTTP(w, r)
	if err := json.Unmarshal(w.Body.Bytes(), reply); err != nil {
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

// look asks the server for the current grant of a key, as the page does when it opens the break
// dialog.
func (b *bench) look(key, sort string) shownGrant {
	b.T.Helper()
	var shown shownGrant
	if code := b.post("/look", map[string]string{"key": key, "sort": sort}, &shown); code != http.StatusOK {
		b.T.Fatalf("look: %d %+v", code, shown)
	}
	return shown
}

// breaks sends a break request as the page would, and returns the reply. It fails the test unless
// the reply has the given status code and outcome.
func (b *bench) breaks(asked breakRequest, code int, outcomeIs string) (reply outcome) {
	b.T.Helper()
	if got := b.post("/break", asked, &reply); got != code || reply.Outcome != outcomeIs {
		b.T.Errorf("break: %d %+v, want %d and %s", got, reply, code, outcomeIs)
	}
	return reply
}

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }
