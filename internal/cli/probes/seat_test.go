package probes

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/leasehold-go/leasehold/election"
)

// term is an election term that is trusted until a time that the test sets.
type term struct {
	until   time.Time
	running bool
}

func (t *term) TrustedUntil() time.Time { return t.until }
func (t *term) Running() bool           { return t.running }

// newSeat returns a Seat whose clock always shows the time "now", and a function that sends a probe
// to the Seat and checks the answer.
func newSeat(t *testing.T, now time.Time) (s *Seat, check func(path string, code int, text string)) {
	s = NewSeat(func() time.Time { return now }, 6*time.Second)
	return s, func(path string, code int, text string) {
		t.Helper()
		w := ask(s, http.MethodGet, path)
		if w.Code != code || w.Body.String() != text {
			t.Errorf("%s: %d %q, want %d %q", path, w.Code, w.Body, code, text)
		}
	}
}

func ask(s *Seat, method, path string) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	s.Handler().ServeHTTP(w, httptest.NewRequest(method, "http://127.0.0.1:8080"+path, nil))
	return w
}

func TestLeaderProbeSucceedsOnlyWhileProcessLeads(t *testing.T) {
	now := time.Now().Round(0)
	s, check := newSeat(t, now)
	const unknown = "who leads is not known\n"

	check("/leader", 503, unknown) // no record has been read yet
	check("/live", 200, "live\n")
	s.Saw(election.Leader{}) // a record without an owner
	check("/leader", 503, unknown)
	s.Saw(election.Leader{Owner: "other/1/abcd", Value: "10.0.0.7:8080", Token: 6})
	check("/leader", 503, "owner\tother/1/abcd\nvalue\t10.0.0.7:8080\ntoken\t6\n")
	check("/live", 200, "live\n")

	mine := &term{until: now.Add(18 * time.Second)}
	s.Won(mine, election.Leader{Owner: "me/2/efgh", Token: 7})
	check("/leader", 200, "owner\tme/2/efgh\ntoken\t7\n")
	mine.running = true
	s.Saw(election.Leader{Owner: "other/1/abcd"}) // an event about an earlier leader that arrives after this process has become the leader
	check("/leader", 200, "owner\tme/2/efgh\ntoken\t7\n")
	mine.until = now.Add(6 * time.Second)
	check("/live", 200, "live\n")
	mine.until = now.Add(6*time.Second - 1)
	check("/leader", 200, "owner\tme/2/efgh\ntoken\t7\n")
	check("/live", 503, "renewals are overdue\n")
	mine.until = now.Add(1) // the last moment of trust
	check("/leader", 200, "owner\tme/2/efgh\ntoken\t7\n")
	check("/live", 503, "renewals are overdue\n")
	mine.until = now
	check("/leader", 503, unknown)
	check("/live", 503, "renewals are overdue\n")
	mine.running = false // CMD has ended
	check("/live", 200, "live\n")
	s.Left()
	check("/leader", 503, unknown)
	check("/live", 200, "live\n")
}

func TestReplyOfLeaderProbeEscapesControlCharacters(t *testing.T) {
	s, check := newSeat(t, time.Now())
	s.Saw(election.Leader{Owner: "a\ntoken\t9", Value: "\x1b[2J<script>\r\n\r\n"})
	check("/leader", 503, "owner\t\"a\\ntoken\\t9\"\nvalue\t\"\\x1b[2J<script>\\r\\n\\r\\n\"\n")
	h := ask(s, http.MethodGet, "/leader").Header()
	if h.Get("X-Content-Type-Options") != "nosniff" || !strings.HasPrefix(h.Get("Content-Type"), "text/plain") || h.Get("Cache-Control") != "no-store" {
		t.Errorf("the answer's header: %v", h)
	}
}

func TestProbeHandlerRejectsUnknownPathsAndMethods(t *testing.T) {
	s, _ := newSeat(t, time.Now())
	for _, c := range []struct {
		method, path string
		want         int
	}{
		{http.MethodHead, "/leader", 503},
		{http.MethodHead, "/live", 200},
		{http.MethodGet, "/live?verbose", 200},
		{http.MethodPost, "/leader", 405},
		{http.MethodPut, "/live", 405},
		{http.MethodDelete, "/leader", 405},
		{http.MethodOptions, "/live", 405},
		{http.MethodGet, "/", 404},
		{http.MethodGet, "/leader/", 404},
		{http.MethodGet, "/healthz", 404},
	} {
		if w := ask(s, c.method, c.path); w.Code != c.want {
			t.Errorf("%s %s: %d, want %d", c.method, c.path, w.Code, c.want)
		}
	}
}
