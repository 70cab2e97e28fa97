package lab

import (
	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/bridge"
	"github.com/leasehold-go/leasehold/internal/seek"
)

// Seeking is how the client seeks keys: under which session, and by what it has
// observed of others.
func Seeking(c *leasehold.Client) *seek.Client {
	return bridge.Inside(c).(interface{ Seeking() *seek.Client }).Seeking()
}

// Session is the session that the client grants under.
func (w *World) Session(c *leasehold.Client) seek.Session {
	w.T.Helper()
	s, err := Seeking(c).Sessions.Session(w.T.Context())
	if err != nil {
		w.T.Fatal(err)
	}
	return s
}
