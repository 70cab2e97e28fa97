package metrics

import (
	"maps"
	"sync"
	"weak"

	"github.com/leasehold-go/leasehold"
)

// Clients is the set of clients whose Stats are exported as gauges. It has weak pointers, so an
// unused client can be freed. A client that holds or awaits a lock is not freed: its own goroutines
// keep it alive. The zero value is empty and safe for concurrent use.
type Clients struct {
	mu   sync.Mutex // guards the fields below; released before the clients' Stats are read
	seen map[weak.Pointer[leasehold.Client]]bool
	any  bool
}

// Names and descriptions of the gauges.
const (
	HeldName      = "leasehold.held"
	HeldHelp      = "Locks held."
	WaitingName   = "leasehold.waiting"
	WaitingHelp   = "Calls that wait to be granted a lock."
	RemainingName = "leasehold.min_remaining_seconds"
	RemainingHelp = "Shortest time until a held lock is no longer trusted; no value if none is held."
	RegionName    = "leasehold.region_clients"
	RegionHelp    = "Clients of package regions, by the Region that their requests go to."
)

// Add adds a client to the set.
func (s *Clients) Add(c *leasehold.Client) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.seen == nil {
		s.seen = map[weak.Pointer[leasehold.Client]]bool{}
	}
	s.seen[weak.Make(c)], s.any = true, true
}

// Stats returns the sum of the clients' Stats, with the least MinRemaining of all clients that hold
// a lock. It removes freed clients. Before the first client is added, ok is false: exporters then
// report no value, instead of zero held locks.
func (s *Clients) Stats() (sum leasehold.Stats, ok bool) {
	alive, ok := s.alive()
	for _, c := range alive {
		one := c.Stats()
		if one.Held > 0 && (sum.Held == 0 || one.MinRemaining < sum.MinRemaining) {
			sum.MinRemaining = one.MinRemaining
		}
		sum.Held += one.Held
		sum.Waiting += one.Waiting
	}
	return sum, ok
}

// Regions returns, by Region, how many clients send their requests to that Region. It
// counts only clients that use package regions.
func (s *Clients) Regions() map[string]int {
	alive, _ := s.alive()
	clients := map[string]int{}
	for _, c := range alive {
		if region := c.Stats().Region; region != "" {
			clients[region]++
		}
	}
	return clients
}

func (s *Clients) alive() (alive []*leasehold.Client, any bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	maps.DeleteFunc(s.seen, func(p weak.Pointer[leasehold.Client], _ bool) bool {
		c := p.Value()
		if c != nil {
			alive = append(alive, c)
		}
		return c == nil
	})
	return alive, s.any
}
