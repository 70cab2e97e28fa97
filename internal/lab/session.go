package lab

import (
	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/acquire"
	"github.com/leasehold-go/leasehold/internal/bridge"
)

// Session returns the session to which the client adds new grants.
func (w *World) Session(c *leasehold.Client) acquire.Session {
	w.T.Helper()
	s, err := bridge.Holds(c).Session(w.T.Context())
	if err != nil {
		w.T.Fatal(err)
	}
	return s
}
