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

// breakLimit is the time limit of a break.
const breakLimit = 30 * time.Second

// longestBody limits the size of a page's request.
const longestBody = 64 << 10

//go:embed page
var files embed.FS

// Config configures a Server. All fields except Hosts are required.
type Config struct {
	Source     Source
	Layout     layout.Layout
	Table      string        // the table's name as displayed
	Location   string        // the table's Region, URL or file, as displayed
	Secret     string        // secret from which the token and the proofs are made: see Token
	Name       string        // "host:port" of the page's URL; the host is NewName's, new for each server
	Rate       float64       // highest number of read units a second
	Every      time.Duration // time between the starts of two passes over the table
	AllowBreak bool          // the pages may break grants
	Remote     bool          // requests may name any address, not only loopback
	Hosts      []string      // names that requests may use, besides addresses and localhost
	Explain    func(error) string
	Broke      func(r leasehold.Record, reason string) // called after a break that has happened or may have happened
}

// hello is the first message to a page.
type hello struct {
	Page       string `json:"page"`   // names the page in its requests
	Secret     string `json:"secret"` // proves this server, and the next one, to the page
	Host       string `json:"host"`   // Config.Name
	Table      string `json:"table"`
	Location   string `json:"location"`
	Layout     string `json:"layout"`
	SortKey    string `json:"sortKey,omitempty"` // the name of the table's sort key
	Clocked    bool   `json:"clocked,omitempty"` // records say when they expire
	AllowBreak bool   `json:"allowBreak,omitempty"`
	Started    int64  `json:"started"` // start of the history
}

// Server serves the page. It is safe for concurrent use.
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

// Token returns the token that gives a page access to this server, and to no other server
// with the same secret.
func (s *Server) Token() string { return tokenFor(s.cfg.Secret, s.cfg.Name) }

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.handler.ServeHTTP(w, r) }

// Run reads the table until ctx ends. Then it ends all streams. It may be called only once.
func (s *Server) Run(ctx context.Context) {
	defer close(s.closing)
	s.scan.run(ctx)
}

// decode reads the JSON of a page's request. It answers the request itself if the JSON is
// invalid.
func decode(w http.ResponseWriter, r *http.Request, to any) bool {
	in := json.NewDecoder(http.MaxBytesReader(w, r.Body, longestBody))
	in.DisallowUnknownFields()
	if err := in.Decode(to); err != nil {
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

// show serves the route by which a page selects the lock that it shows.
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

// rate serves the route by which a page limits how fast the table is read.
func (s *Server) rate(w http.ResponseWriter, r *http.Request) {
	var asked struct{ Rate float64 }
	if !decode(w, r, &asked) {
		return
	}
	s.scan.setRate(asked.Rate)
	answer(w, http.StatusOK, struct{}{})
}

// look serves the route by which a page reads the current record of a key.
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

// shownRecord is a record as the break dialog shows it, in the form of a holder's card.
type shownRecord struct {
	shownGrant
	Record   leasehold.Record `json:"record"`
	Released bool             `json:"released,omitempty"`
	Session  string           `json:"session,omitempty"`
	Seen     int64            `json:"seen,omitempty"` // the first sight of the grant; zero if the table has not been read since
	beatView
}

// shownNow returns a record as the break dialog shows it. The scanner knows whether the
// holder is dead and when it renewed.
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
