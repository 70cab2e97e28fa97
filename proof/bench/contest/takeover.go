//go:build linux

package contest

import (
	"context"
	"fmt"
	"time"
)

// takeover returns the scenario in which the holder's process is killed while another
// client waits for the key.
func takeover() Scenario {
	return Scenario{
		Name: "takeover", clients: 2, kind: takingOver, together: true, takes: 40 * time.Second,
		Tables: []Table{{
			Name: "takeover", Title: "Takeover from a holder that was killed",
			Note: "Another client waits already. The holder's process is killed a quarter of a second after its grant, before it has renewed anything. The rest of the lease has to pass: the last column is the time beyond it. All contenders play at once, each with a table of its own.",
			Columns: []Column{
				{"lease", "lease, s", 0}, {"takeover", "from the kill to the grant, s", 2}, {"beyond", "beyond the lease, ms", 0},
			},
			limit: func(roundTrip float64) Figures { return Figures{"beyond": roundTrip} },
		}},
		play: func(ctx context.Context, s *stage) (map[string]Figures, error) {
			const most = 90 * time.Second
			f, err := s.startApart(ctx, 2, 1)
			if err != nil {
				return nil, err
			}
			holder, waiter := f.clients[0], f.clients[1]
			held, err := holder.acquire(ctx, "dies", most)
			if err != nil {
				return nil, err
			}
			taken := make(chan grant, 1)
			failed := make(chan error, 1)
			go func() {
				g, err := waiter.acquire(ctx, "dies", most)
				if err != nil {
					failed <- err
					return
				}
				taken <- g
			}()
			if err := sleepUntil(ctx, held.at.Add(250*time.Millisecond)); err != nil {
				return nil, err
			}
			killed := time.Now()
			if err := holder.driver.Kill(); err != nil {
				return nil, err
			}
			select {
			case err := <-failed:
				return nil, fmt.Errorf("the dead holder's key was never granted: %w", err)
			case g := <-taken:
				lease := s.contender.settings(s.scenario).Lease
				return map[string]Figures{"takeover": {
					"lease": lease.Seconds(), "takeover": g.at.Sub(killed).Seconds(), "beyond": ms(g.at.Sub(held.at) - lease),
				}}, nil
			}
		},
	}
}
