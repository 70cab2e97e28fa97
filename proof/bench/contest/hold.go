//go:build linux

package contest

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/leasehold-go/leasehold/proof/interop/peers"
)

// longHold returns the scenario in which a client holds a key for several seconds, first while one
// client waits, and then while 16 wait. The length of the hold differs between rounds: with a fixed
// length, a waiter might always poll just before or just after the release.
func longHold() Scenario {
	const least, most = 4 * time.Second, 5 * time.Second
	held := func(round int) time.Duration {
		return least + time.Duration(round)*382*time.Millisecond%(most-least) // multiples of 0.382 (from the golden ratio) spread evenly over a second
	}
	crowds := []int{1, 16}
	s := Scenario{Name: "long-hold", clients: 16, kind: waiting, together: true, takes: 2*most + 7*time.Second}
	for _, waiters := range crowds {
		s.Tables = append(s.Tables, Table{
			Name: fmt.Sprint("long-hold-", waiters), Title: fmt.Sprintf("A long hold and %d that wait", waiters),
			Note: fmt.Sprintf("The key is held for %v to %v, in each round for another time. Requests and units are those of a second of waiting, of all together; the hand-over is from the release to the first grant. All contenders play at once, each with a table of its own.", least, most),
			Columns: []Column{
				{"handover", "hand-over, ms", 0}, {"requests", "requests a second", 1}, {"writes", "write units", 1},
				{"reads", "read units", 1}, {"dollars", "$ a day", 2},
			},
			limit: func(roundTrip float64) Figures { return Figures{"handover": 2 * roundTrip} },
		})
	}
	s.play = func(ctx context.Context, s *stage) (map[string]Figures, error) {
		f, err := s.start(ctx, 1+crowds[len(crowds)-1])
		if err != nil {
			return nil, err
		}
		tables := map[string]Figures{}
		for _, waiters := range crowds {
			name := fmt.Sprint("long-hold-", waiters)
			if tables[name], err = s.waitOut(ctx, name, f.clients[0], f.clients[1:1+waiters], held(s.round)); err != nil {
				return nil, err
			}
		}
		return tables, nil
	}
	return s
}

// waitOut makes the client "holder" hold a key for the given time while other clients wait for it.
func (s *stage) waitOut(ctx context.Context, key string, holder *client, waiters []*client, held time.Duration) (Figures, error) {
	const most = 15 * time.Second // longest wait of a client: the slowest library polls at least once in this time
	g, err := holder.acquire(ctx, key, most)
	if err != nil {
		return nil, err
	}
	before := s.meter.Used()
	grants := make(chan time.Time, len(waiters))
	waited := make(chan error, 1)
	go func() {
		waited <- each(waiters, func(_ int, c *client) error {
			g, err := c.acquire(ctx, key, held+most)
			if err != nil {
				return err
			}
			grants <- g.at
			return c.release(ctx, g)
		})
	}()
	if err := sleepUntil(ctx, g.at.Add(held)); err != nil {
		return nil, err
	}
	used := s.meter.Used().Minus(before)
	releasing := time.Now()
	if err := holder.release(ctx, g); err != nil {
		return nil, err
	}
	figures := Figures{}
	figures.cost(used, 1)
	for figure := range figures {
		figures[figure] /= held.Seconds()
	}
	figures["dollars"] *= (24 * time.Hour).Seconds() / 1e6
	select {
	case first := <-grants:
		figures["handover"] = ms(first.Sub(releasing))
	case err := <-waited: // all waits have ended without a grant
		return nil, err
	}
	// Only the first grant is measured. The other waits must end too before waitOut returns,
	// because the next hold uses the same clients.
	if err := <-waited; err != nil && !errors.Is(err, peers.ErrHeld) {
		return nil, err
	}
	return figures, nil
}
