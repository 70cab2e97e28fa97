package localdynamo

import (
	"bytes"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// fragile is a Store whose transactions panic at their second Put.
type fragile struct{ Store }

func (s fragile) Update(fn func(Tx) error) error {
	return s.Store.Update(func(tx Tx) error { return fn(&fragileTx{Tx: tx}) })
}

type fragileTx struct {
	Tx
	puts int
}

func (tx *fragileTx) Put(key, value []byte) error {
	if tx.puts++; tx.puts > 1 {
		panic("boom")
	}
	return tx.Tx.Put(key, value)
}

const twoPuts = `{"RequestItems":{"locks":[{"PutRequest":{"Item":{"id":{"S":"b"}}}},{"PutRequest":{"Item":{"id":{"S":"c"}}}}]}}`

func TestPanicInStoreIsLoggedAndChangesNothing(t *testing.T) {
	var log bytes.Buffer
	before := slog.Default()
	slog.SetDefault(slog.New(slog.NewTextHandler(&log, nil)))
	defer slog.SetDefault(before)
	e := seededEngine(t)
	whole := storedBy(t, e)
	sound := e.store
	e.store = fragile{sound}
	for range 3 {
		w := send(e, "BatchWriteItem", twoPuts)
		if w.Code != http.StatusInternalServerError || !strings.Contains(w.Body.String(), "#InternalServerError") || !strings.Contains(w.Body.String(), "boom") {
			t.Errorf("%d %s", w.Code, w.Body)
		}
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "http://localdynamo/", strings.NewReader(twoPuts))
		r.Header.Set("X-Amz-Target", "DynamoDB_20120810.BatchWriteItem")
		reply, err := e.RoundTrip(r)
		if err != nil || reply.StatusCode != http.StatusInternalServerError {
			t.Errorf("in this process: %v, %v", reply, err)
		}
	}
	if said := strings.Count(log.String(), "boom"); said != 1 || !strings.Contains(log.String(), "fragileTx") {
		t.Errorf("said %d times, or not where: %s", said, &log)
	}
	e.store = sound
	if !maps.Equal(whole, storedBy(t, e)) {
		t.Error("half of the request was stored")
	}
	if w := send(e, "BatchWriteItem", twoPuts); w.Code != http.StatusOK {
		t.Errorf("after it: %d %s", w.Code, w.Body)
	}
}

func TestEngineRefusesRequestsOfBrowserPages(t *testing.T) {
	const put = `{"TableName":"locks","Item":{"id":{"S":"evil"}}}`
	const allow = "Access-Control-Allow-Origin"
	for name, change := range map[string]func(*http.Request){
		"of another site":                func(r *http.Request) { r.Header.Set("Origin", "http://evil.example") },
		"of a sandbox":                   func(r *http.Request) { r.Header.Set("Origin", "null") },
		"of this port":                   func(r *http.Request) { r.Header.Set("Origin", "http://127.0.0.1:8000") },
		"whose name leads here":          func(r *http.Request) { r.Host = "evil.example"; r.Header.Set("Origin", "http://evil.example") },
		"whose name leads here, as GET":  func(r *http.Request) { r.Host, r.Method = "evil.example", http.MethodGet },
		"that asks first":                func(r *http.Request) { r.Method = http.MethodOptions },
		"that sends a form without head": func(r *http.Request) { r.Header.Del("X-Amz-Target") },
	} {
		e := seededEngine(t)
		before := storedBy(t, e)
		w := send(e, "PutItem", put, change)
		if w.Code != http.StatusForbidden && w.Code != http.StatusBadRequest || w.Header().Get(allow) != "" {
			t.Errorf("a page %s: %d %s %v", name, w.Code, w.Body, w.Header())
		}
		if !maps.Equal(before, storedBy(t, e)) {
			t.Errorf("a page %s has written", name)
		}
	}
}

// cut is a request body whose read fails at its end, as if the connection broke.
type cut struct{ io.Reader }

func (c cut) Read(b []byte) (int, error) {
	n, err := c.Reader.Read(b)
	if err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	return n, err
}

func TestTruncatedBodyChangesNothing(t *testing.T) {
	const put = `{"TableName":"locks","Item":{"id":{"S":"half"}}}`
	for name, length := range map[string]int64{"in chunks": -1, "of a length": int64(len(put)) + 1} {
		e := seededEngine(t)
		before := storedBy(t, e)
		w := serve(e, "PutItem", cut{strings.NewReader(put)}, ofLength(length))
		if w.Code != http.StatusBadRequest || !strings.Contains(w.Body.String(), "could not be read") {
			t.Errorf("%s: %d %s", name, w.Code, w.Body)
		}
		if !maps.Equal(before, storedBy(t, e)) {
			t.Errorf("%s: it was stored", name)
		}
	}
}
