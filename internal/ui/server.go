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

// breakLimit is how long a break may take.
const breakLimit = 30 * time.Second

// longestBody bounds what a page may send.
const longestBody = 64 << 10

//go:embed page
var files embed.FS

// Config says what to serve, and to whom. All fields but Hosts are needed.
type Config struct {
	Source     Source
	Layout     layout.Layout
	Table      string        // as shown
	Location   string        // of the table, as shown: Region, URL or file
	Secret     string        // of which the token and the proofs are made: see Token
	Name       string        // "host:port" of the page's URL; the host is NewName's, new for each server
	Rate       float64       // read units a second, at most
	Every      time.Duration // between the starts of two passes over the table
	AllowBreak bool          // who may look may break, too
	Remote     bool          // addresses other than those of loopback may be asked for
	Hosts      []string      // names by which the server may be asked for, besides addresses and localhost
	Explain    func(error) string
	Broke      func(r leasehold.Record, reason string) // a break has happened, or may have
}

// hello is what a page is told first.
type hello struct {
	Page       string `json:"page"`   // names the page in its requests
	Secret     string `json:"secret"` // by which it knows this server again, and the next one
	Host       string `json:"host"`   // Config.Name
	Table      string `json:"table"`
	Location   string `json:"location"`
	Layout     string `json:"layout"`
	SortKey    string `json:"sortKey,omitempty"` // the name of the table's sort key
	Clocked    bool   `json:"clocked,omitempty"` // records say when they expire
	AllowBreak bool   `json:"allowBreak,omitempty"`
	Started    int64  `json:"started"` // the history begins here
}

// Server serves the page. It is safe for concurrent use.
type Server struct {
	cfg     Config
	hello   hello
	scan    *scanner
	closing chan struct{}
	handler http.Handler
}

// New returns a server. Run has it read the table.
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

// Token is what lets a page in: to this server, and to no other that has its secret.
func (s *Server) Token() string { return tokenFor(s.cfg.Secret, s.cfg.Name) }

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.handler.ServeHTTP(w, r) }

// Run reads the table until ctx ends. Then all streams end. It is called once.
func (s *Server) Run(ctx context.Context) {
	defer close(s.closing)
	s.scan.run(ctx)
}

// decode reads the JSON that a page has sent. It answers by itself if that is none.
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

// show is the route by which a page says which lock it shows.
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

// rate is the route by which a page says how fast the table may be read.
func (s *Server) rate(w http.ResponseWriter, r *http.Request) {
	var asked struct{ Rate float64 }
	if !decode(w, r, &asked) {
		return
	}
	s.scan.setRate(asked.Rate)
	answer(w, http.StatusOK, struct{}{})
}

// look is the route by which a page reads the record of a key as it is now.
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

// shownRecord is a record as the break dialog shows it: as a holder's card does.
type shownRecord struct {
	shownGrant
	Record   leasehold.Record `json:"record"`
	Released bool             `json:"released,omitempty"`
	Session  string           `json:"session,omitempty"`
	Seen     int64            `json:"seen,omitempty"` // the first sight of the grant; zero if the table was not read since
	beatView
}

// shownNow returns a record as the break dialog shows it. Whether its holder is dead, and
// when it was seen to renew, the reading of the table has found out.
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
