//go:build linux

package contest

import (
	"context"
	"time"

	"github.com/leasehold-go/leasehold/proof/bench/stats"
)

// cycle returns the scenario in which one client acquires and releases a key that no other
// client wants.
func cycle() Scenario {
	const window = 1500 * time.Millisecond
	return Scenario{
		Name: "cycle", clients: 1, kind: cycling, takes: window + 1500*time.Millisecond,
		Tables: []Table{{
			Name: "cycle", Title: "One client, nobody else", Note: "Acquire and release, again and again. The pipe is what the driver's line protocol adds to each of the two.",
			Columns: append([]Column{{"cycle50", "p50, ms", 1}, {"cycle99", "p99, ms", 1}, {"pipe", "pipe, ms", 2}}, perSection...),
			limit: func(roundTrip float64) Figures {
				return Figures{"cycle50": 2 * roundTrip, "requests": 2, "writes": 2, "reads": 0, "dollars": 2 * writePrice}
			},
		}},
		play: func(ctx context.Context, s *stage) (map[string]Figures, error) {
			f, err := s.start(ctx, 1)
			if err != nil {
				return nil, err
			}
			pipe, err := f.pipe(ctx)
			if err != nil {
				return nil, err
			}
			var took []float64
			before, end := s.meter.Used(), time.Now().Add(window)
			for time.Now().Before(end) {
				began := time.Now()
				g, err := f.clients[0].acquire(ctx, "alone", time.Minute)
				if err != nil {
					return nil, err
				}
				if err := f.clients[0].release(ctx, g); err != nil {
					return nil, err
				}
				took = append(took, ms(time.Since(began)))
			}
			figures := Figures{"cycle50": stats.Quantile(took, 0.5), "cycle99": stats.Quantile(took, 0.99), "pipe": ms(pipe)}
			figures.cost(s.meter.Used().Minus(before), len(took))
			return map[string]Figures{"cycle": figures}, nil
		},
	}
}
