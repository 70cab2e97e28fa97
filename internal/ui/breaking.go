package ui

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"unicode"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/holders"
	"github.com/leasehold-go/leasehold/internal/protocol"
)

// shownGrant identifies the grant that the break dialog of a page shows. The server sends it to the
// page, and the page sends it back when it asks for the break.
type shownGrant struct {
	Key     string `json:"key"`
	Sort    string `json:"sort,omitempty"`
	Grant   string `json:"grant"`
	Version string `json:"version"`
	// Whether the dialog shows the holder as dead. If so, the server rejects the break once the
	// holder has renewed.
	Dead bool `json:"dead,omitempty"`
}

// breakRequest is the body of the request that the break dialog of a page sends.
type breakRequest struct {
	shownGrant
	Typed  string `json:"typed"` // the key, which the user types as a confirmation
	Reason string `json:"reason"`
}

// outcome is the response to a break request.
type outcome struct {
	Outcome string `json:"outcome"` // "broken", "changed", "unknown", "refused" or "failed"
	Message string `json:"message,omitempty"`
	// The key's current grant, if it is not the grant to break.
	Now json.RawMessage `json:"now,omitempty"`
}

// check returns the problem with a break request, or "" if the request is valid.
func (b breakRequest) check() string {
	switch {
	case b.Key == "" || b.Grant == "" || b.Version == "":
		return "The request names no grant."
	case b.Typed != b.Key:
		return "The typed key does not match."
	case protocol.ReasonProblem(b.Reason) != "":
		return "Nothing was broken: " + protocol.ReasonProblem(b.Reason) + "."
	case strings.ContainsFunc(b.Reason, unicode.IsControl):
		return "The reason must be one line."
	}
	return ""
}

// isIn reports whether the record r still contains the grant that the dialog showed. If the
// dialog showed the holder as dead, isIn also requires that the grant has not been renewed since.
func (g shownGrant) isIn(r leasehold.Record) bool {
	return !r.Released && holders.GrantOf(r) == g.Grant && (!g.Dead || r.Version == g.Version)
}

// breakGrant serves the route on which a page breaks a grant.
func (s *Server) breakGrant(w http.ResponseWriter, r *http.Request) {
	var asked breakRequest
	if !decode(w, r, &asked) {
		return
	}
	if !s.cfg.AllowBreak {
		answer(w, http.StatusForbidden, outcome{Outcome: "refused", Message: "This page is for looking: start leasehold ui with --allow-break to break grants."})
		return
	}
	if problem := asked.check(); problem != "" {
		answer(w, http.StatusBadRequest, outcome{Outcome: "refused", Message: problem})
		return
	}
	// If the user closes the page, the request's context is cancelled, but the break continues.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), breakLimit)
	defer cancel()
	status, out := s.tryBreak(ctx, asked)
	answer(w, status, out)
}

func (s *Server) tryBreak(ctx context.Context, asked breakRequest) (int, outcome) {
	key := protocol.Key{Partition: asked.Key, Sort: asked.Sort}
	r, err := s.cfg.Source.Record(ctx, key)
	if err != nil {
		return s.broke(asked, leasehold.Record{}, err)
	}
	changed := !asked.isIn(r)
	if !changed && asked.Dead {
		if changed, err = s.scan.revived(ctx, key, asked.Grant); err != nil {
			return s.broke(asked, r, err)
		}
	}
	if changed {
		return s.broke(asked, r, &leasehold.ChangedError{Now: r})
	}
	// Store the reason only if the record cannot show the break, because a stored reason can
	// mislead. If the outcome is unknown and the break was never applied, the pages show a break
	// when the grant later ends in another way.
	if !s.cfg.Layout.Capabilities().KeepOnRelease || r.Token == 0 {
		s.scan.mu.Lock()
		s.scan.board.willBreak(brokenGrant{key, asked.Grant}, asked.Reason)
		s.scan.mu.Unlock()
	}
	err = s.cfg.Source.Break(ctx, r, asked.Reason, asked.Dead)
	if err != nil && !errors.Is(err, leasehold.ErrUnknownOutcome) && !errors.Is(err, leasehold.ErrHolderUntold) {
		s.scan.mu.Lock()
		s.scan.board.wontBreak(brokenGrant{key, asked.Grant})
		s.scan.mu.Unlock()
	}
	// Read the key now, so that every page shows the break without delay.
	_ = s.scan.lookAt(ctx, key)
	return s.broke(asked, r, err)
}

// broke returns the response to a break request, given the result of the break. It also reports
// the break to the operator who started the server.
func (s *Server) broke(asked breakRequest, r leasehold.Record, err error) (int, outcome) {
	var changed *leasehold.ChangedError
	switch {
	case err == nil:
		s.cfg.Broke(r, asked.Reason)
		return http.StatusOK, outcome{Outcome: "broken", Message: "The grant is broken: the key is free. Its holder learns of it at its next renewal; until then only fenced writes are safe."}
	case errors.Is(err, leasehold.ErrHolderUntold):
		s.cfg.Broke(r, asked.Reason)
		return http.StatusOK, outcome{Outcome: "broken", Message: "The grant is broken: the key is free. Its holder could not be notified, and may work on for up to twenty minutes: only fenced writes are safe. " + s.cfg.Explain(err)}
	case errors.Is(err, leasehold.ErrUnknownOutcome):
		s.cfg.Broke(r, asked.Reason)
		return http.StatusGatewayTimeout, outcome{Outcome: "unknown", Message: "It is not known whether the grant is broken: " + s.cfg.Explain(err)}
	case errors.As(err, &changed):
		now, _ := json.Marshal(s.shownNow(changed.Now))
		return http.StatusConflict, outcome{Outcome: "changed", Now: now, Message: "Nothing was broken: the key was released, renewed or granted again since you looked. Look again."}
	case errors.Is(err, leasehold.ErrNotFound):
		return http.StatusConflict, outcome{Outcome: "changed", Message: "Nothing was broken: the key's record is gone."}
	}
	return http.StatusBadGateway, outcome{Outcome: "failed", Message: s.cfg.Explain(err)}
}
