package hold

import (
	"github.com/spf13/cobra"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/election"
	"github.com/leasehold-go/leasehold/internal/cli/probes"
	"github.com/leasehold-go/leasehold/internal/cli/serve"
)

// answerProbes returns the seat that elect campaigns for, and answers those who ask for it
// where --http says, until stop is called.
func (c *command) answerProbes(cmd *cobra.Command, f *electFlags) (seat *probes.Seat, stop func(), err error) {
	_, proto, err := c.Settings.Protocol()
	if err != nil {
		return nil, nil, err
	}
	// Renewals that land in time leave two thirds of a lease. CMD is stopped a grace before
	// trust ends.
	seat = probes.NewSeat(c.Now, max((f.Lease-proto.Skew())/3, f.grace))
	if f.http == "" {
		return seat, func() {}, nil
	}
	listener, err := serve.ForProbes(cmd.Context(), f.http)
	if err != nil {
		return nil, nil, err
	}
	server := serve.Probes(seat.Handler(), listener)
	go func() { _ = server.Serve(listener) }() // ends with Close: it goes on after what passes
	c.Say.Note("answering http://%s/leader and /live", listener.Addr())
	return seat, func() { _ = server.Close() }, nil
}

// leaderOf is the leader that a record shows.
func leaderOf(r leasehold.Record) election.Leader {
	return election.Leader{Owner: r.Owner, Value: string(r.Data), Token: r.Token}
}
