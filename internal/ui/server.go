package ui

import (
	"context"
	"embed"
	"encoding/json"
	"errors"
	"io/fs"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/holders"
	"github.com/leasehold-go/leasehold/internal/liveness"
	"github.com/leasehold-go/leasehold/internal/protocol"
	"github.com/leasehold-go/leasehold/layout"
)

// breakLimit is the time limit for breaking a grant.
const breakLimit = 30 * time.Second

// longestBody is the maximum number of bytes in the body of a page's request.
const longestBody = 64 << 10

//go:embed page
var files embed.FS

// Config configures a Server. All fields except Hosts must be set.
type Config struct {
	Source   Source
	Layout   layout.Layout
	Table    string // table's name, for display
	Location string // table's Region, URL or file, for display
	// Secret from which the server derives its token and its proofs. See Server.Token.
	Secret     string
	Name       string        // "host:port" in the page's URL; each server has its own host, which NewName returns
	Rate       float64       // maximum number of read units per second
	Every      time.Duration // interval between the starts of two passes over the table
	AllowBreak bool          // whether pages may break grants
	// Whether the Host header may contain any IP address, not only a loopback address.
	Remote bool
	// Names that the Host header may contain, besides IP addresses and localhost.
	Hosts   []string
	Explain func(error) string
	// Called after a break that was applied, or whose outcome is unknown.
	Broke func(r leasehold.Record, reason string)
}

// hello is the first message that the server sends to a web page.
type hello struct {
	Page string `json:"page"` // page's id, which the page sends with its requests
	// With the secret, the page checks the proofs of this server, and of later servers that have
	// the same secret.
	Secret     string `json:"secret"`
	Host       string `json:"host"` // server's name (Config.Name)
	Table      string `json:"table"`
	Location   string `json:"location"`
	Layout     string `json:"layout"`
	SortKey    string `json:"sortKey,omitempty"` // name of the table's sort key attribute; empty if it has none
	Clocked    bool   `json:"clocked,omitempty"` // whether records contain the time at which their lease expires
	AllowBreak bool   `json:"allowBreak,omitempty"`
	Started    int64  `json:"started"` // time when the server started; no history begins earlier
}

// Server serves the web page that shows the locks of a table. It is safe for concurrent use.
type Server struct {
	cfg     Config
	hello   hello
	scan    *scanner
	closing chan struct{}
	handler http.Handler
}

// New returns a server. The server does not read the table until Run is called.
func New(cfg Config, proto protocol.Protocol, caps layout.Capabilities) (*Server, error) {
	page, err := fs.Sub(files, "page")
	if err != nil {
		return nil, err
	}
	now := time.Now()
	by := liveness.RuleOf(proto, caps)
	s := &Server{cfg: cfg, scan: newScanner(cfg, proto, by, now), closing: make(chan struct{})}
	s.hello = hello{
		Secret: cfg.Secret, Host: cfg.Name,
		Table: cfg.Table, Location: cfg.Location, Layout: cfg.Layout.Name(), SortKey: proto.Schema().Sort,
		Clocked: by.Clocked, AllowBreak: cfg.AllowBreak, Started: s.scan.clock.ms(now),
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /events", s.events)
	mux.HandleFunc("POST /show", s.show)
	mux.HandleFunc("POST /rate", s.rate)
	mux.HandleFunc("POST /look", s.look)
	mux.HandleFunc("POST /break", s.breakGrant)
	open := http.NewServeMux()
	open.Handle("GET /", http.FileServerFS(page))
	open.HandleFunc("GET "+whoPath, s.who)
	hosts := map[string]bool{}
	for _, h := range cfg.Hosts {
		hosts[strings.ToLower(h)] = true
	}
	if cfg.Remote {
		if name, err := os.Hostname(); err == nil {
			hosts[strings.ToLower(name)] = true
		}
	}
	s.handler = &guard{token: s.Token(), hosts: hosts, remote: cfg.Remote, open: open, next: mux}
	return s, nil
}

// Token returns the token that gives a page access to this server. A server with another name
// has a different token, even if it has the same secret.
func (s *Server) Token() string { return tokenFor(s.cfg.Secret, s.cfg.Name) }

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.handler.ServeHTTP(w, r) }

// Run reads the table until ctx is done. Then it ends the streams to all pages. It may be called
// only once.
func (s *Server) Run(ctx context.Context) {
	defer close(s.closing)
	s.scan.run(ctx)
}

// decode decodes the JSON body of a page's request into the value that body points to. If the
// body is invalid, decode sends an error response and returns false.
func decode(w http.ResponseWriter, r *http.Request, body any) bool {
	in := json.NewDecoder(http.MaxBytesReader(w, r.Body, longestBody))
	in.DisallowUnknownFields()
	if err := in.Decode(body); err != nil {
		answer(w, http.StatusBadRequest, outcome{Outcome: "refused", Message: "The request cannot be read: " + err.Error()})
		return false
	}
	return true
}

func answer(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v)
}

// show serves the route on which a page selects the lock whose details it shows.
func (s *Server) show(w http.ResponseWriter, r *http.Request) {
	var asked struct{ Page, Key, Sort string }
	if !decode(w, r, &asked) {
		return
	}
	if !s.scan.show(asked.Page, protocol.Key{Partition: asked.Key, Sort: asked.Sort}) {
		answer(w, http.StatusGone, outcome{Outcome: "refused", Message: "This server does not know the page."})
		return
	}
	answer(w, http.StatusOK, struct{}{})
}

// rate serves the route on which a web page sets the maximum number of read units per second.
func (s *Server) rate(w http.ResponseWriter, r *http.Request) {
	var asked struct{ Rate float64 }
	if !decode(w, r, &asked) {
		return
	}
	s.scan.setRate(asked.Rate)
	answer(w, http.StatusOK, struct{}{})
}

// look serves the route that returns the current record of a key.
func (s *Server) look(w http.ResponseWriter, r *http.Request) {
	var asked struct{ Key, Sort string }
	if !decode(w, r, &asked) {
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), breakLimit)
	defer cancel()
	key := protocol.Key{Partition: asked.Key, Sort: asked.Sort}
	now, err := s.cfg.Source.Record(ctx, key)
	if err != nil {
		status := http.StatusBadGateway
		if errors.Is(err, leasehold.ErrNotFound) {
			status = http.StatusNotFound
		}
		answer(w, status, outcome{Outcome: "failed", Message: s.cfg.Explain(err)})
		return
	}
	answer(w, http.StatusOK, s.shownNow(now))
}

// shownRecord is a record in the format that a page's break dialog expects.
type shownRecord struct {
	shownGrant
	Record   leasehold.Record `json:"record"`
	Released bool             `json:"released,omitempty"`
	Session  string           `json:"session,omitempty"`
	// Time when the scanner first read the record with this grant; zero if it has not done so.
	Seen int64 `json:"seen,omitempty"`
	beatView
}

// shownNow returns r in the format of the break dialog. It adds what the scanner has observed:
// whether the holder is dead, and when the holder renewed.
func (s *Server) shownNow(r leasehold.Record) shownRecord {
	grant := holders.GrantOf(r)
	h := s.scan.holder(r.Key, grant)
	return shownRecord{
		Record: r, Released: r.Released, Session: r.Session, Seen: s.scan.clock.ms(h.Seen), beatView: beatOf(h.Beat, s.scan.clock),
		shownGrant: shownGrant{
			Key: r.Key.Partition, Sort: r.Key.Sort, Grant: grant, Version: r.Version, Dead: h.Beat.Dead && h.Record.Version == r.Version,
		},
	}
}
