//go:build linux

package contest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/leasehold-go/leasehold/proof/interop/peers"

	"github.com/leasehold-go/leasehold/proof/bench/stats"
)

// section is one critical section of a client: its wait for the key and, after a grant, the time
// for which it holds the key.
type section struct {
	client    int
	lasts     time.Duration // how long the client holds the key
	due       time.Time     // time at which the client should request the key
	granted   time.Time     // time of the grant; zero if there was no grant before the end of the measurement
	releasing time.Time     // time just before the client sent its release; zero if there was no grant
}

// contend returns the scenario in which clients contend for one key. In a closed loop, each client
// acquires the key again as soon as it has released it. In an open loop, critical sections are due
// at a fixed average rate, however long waits are.
func contend(clients int) Scenario {
	name := fmt.Sprint("contention-", clients)
	closedFor, openFor, starts := 4*time.Second, 3*time.Second, 2*time.Second
	// In the closed loop, more than 16 clients contend for 24 s: each client then runs about
	// fifteen critical sections. With fewer sections, chance and the start-up would dominate Jain's
	// index of fairness.
	if clients > 16 {
		closedFor, openFor, starts = 24*time.Second, 4*time.Second, 7*time.Second
	}
	// If all sections have the same length, the polls of a library could always coincide with the
	// ends of sections. So one more closed loop, with 16 clients, has sections of random length.
	random := clients == 16
	s := Scenario{
		Name: name, clients: clients, kind: contending, takes: closedFor + openFor + starts,
		Tables: []Table{
			{
				Name: name + "-closed", Title: fmt.Sprintf("%d clients, closed loop", clients), Columns: contention, limit: sectionLimit,
				Note: fmt.Sprintf("Each of %d clients holds one key for %v and comes back at once, for %v, which is the longest that a wait can be here.", clients, hold, closedFor),
			},
			{
				Name: name + "-open", Title: fmt.Sprintf("%d clients, open loop", clients), Columns: open,
				Note: fmt.Sprintf("%d sections of %v are due each second, at random, independent of earlier ones, spread over %d clients, for %v. A wait counts from when its section was due.", openRate, hold, clients, openFor),
			},
		},
		play: func(ctx context.Context, s *stage) (map[string]Figures, error) {
			f, err := s.start(ctx, clients)
			if err != nil {
				return nil, err
			}
			closed, err := s.contention(closedFor, "closed", func(key string, end time.Time, note func(section)) error {
				return each(f.clients, func(i int, c *client) error { return comeBack(ctx, i, c, equal, key, end, note) })
			})
			if err != nil {
				return nil, err
			}
			figures := map[string]Figures{name + "-closed": closed.closedLoop(clients)}
			if random {
				uneven, err := s.contention(closedFor, "random", func(key string, end time.Time, note func(section)) error {
					return each(f.clients, func(i int, c *client) error {
						return comeBack(ctx, i, c, exponential(s.round, i), key, end, note)
					})
				})
				if err != nil {
					return nil, err
				}
				figures[name+"-random"] = uneven.closedLoop(clients)
			}
			opened, err := s.contention(openFor, "open", func(key string, end time.Time, note func(section)) error {
				due := arrivals(time.Now(), end, clients, s.round)
				return each(f.clients, func(i int, c *client) error {
					return comeWhenDue(ctx, i, c, key, due[i], end, note)
				})
			})
			if err != nil {
				return nil, err
			}
			figures[name+"-open"] = opened.openLoop()
			return figures, nil
		},
	}
	if random {
		s.takes += closedFor
		s.Tables = slices.Insert(s.Tables, 1, Table{
			Name: name + "-random", Title: fmt.Sprintf("%d clients, closed loop, sections of random length", clients), Columns: contention, limit: sectionLimit,
			Note: fmt.Sprintf("As before, but sections last %v on average: their lengths are distributed exponentially.", hold),
		})
	}
	return s
}

// equal returns the length of a critical section in the scenarios in which all critical
// sections have the same length.
func equal() time.Duration { return hold }

// exponential returns a function that draws the lengths of one client's critical sections from an
// exponential distribution whose mean is the constant "hold". The lengths depend only on round and
// client, so all contenders get the same lengths.
func exponential(round, client int) func() time.Duration {
	random := rand.New(rand.NewPCG(uint64(round), uint64(client)))
	return func() time.Duration { return time.Duration(random.ExpFloat64() * float64(hold)) }
}

// localLine returns the scenario in which many callers of a single client, in one process,
// contend for one key.
func localLine(callers int) Scenario {
	const window = 2 * time.Second
	return Scenario{
		Name: "local-line", clients: callers, kind: sharing, takes: window + 2*time.Second,
		Tables: []Table{{
			Name: "local-line", Title: fmt.Sprintf("%d callers of one client, closed loop", callers), Columns: contention,
			Note: "As with clients that contend, but all callers are of one process and share its client.",
			limit: func(roundTrip float64) Figures {
				return Figures{"section": ms(hold) + roundTrip, "handover50": roundTrip, "requests": 1, "writes": 1, "dollars": writePrice}
			},
		}},
		play: func(ctx context.Context, s *stage) (map[string]Figures, error) {
			f, err := s.start(ctx, 1)
			if err != nil {
				return nil, err
			}
			played, err := s.contention(window, "local", func(key string, end time.Time, note func(section)) error {
				return each(make([]struct{}, callers), func(i int, _ struct{}) error {
					return comeBack(ctx, i, f.clients[0], equal, key, end, note)
				})
			})
			if err != nil {
				return nil, err
			}
			return map[string]Figures{"local-line": played.closedLoop(callers)}, nil
		},
	}
}

// sectionLimit returns the best possible figures for clients in separate processes. A
// hand-over takes at least two round trips: one for the release, and one for the next
// client's acquire.
func sectionLimit(roundTrip float64) Figures {
	return Figures{"section": ms(hold) + 2*roundTrip, "handover50": 2 * roundTrip, "jain": 1, "requests": 2, "writes": 2, "dollars": 2 * writePrice}
}

// comeBack runs client i in a closed loop: the client acquires the key again immediately after each
// release. The loop stops at the time "end".
func comeBack(ctx context.Context, i int, c *client, lasts func() time.Duration, key string, end time.Time, note func(section)) error {
	for {
		due := time.Now()
		left := end.Sub(due)
		if left <= 0 {
			return nil
		}
		granted, err := pass(ctx, section{client: i, lasts: lasts(), due: due}, c, key, end, note)
		if !granted || err != nil {
			return err
		}
	}
}

// arrivals returns the times at which each client's critical sections are due. The times are
// random, as if the clients were independent (a Poisson process). On average, openRate
// critical sections are due per second. All contenders of a round get the same times.
func arrivals(began, end time.Time, clients, round int) (due [][]time.Time) {
	due = make([][]time.Time, clients)
	random := rand.New(rand.NewPCG(uint64(round), uint64(clients)))
	for at, n := began, 0; ; n++ {
		at = at.Add(time.Duration(random.ExpFloat64() * float64(time.Second) / openRate))
		if !at.Before(end) {
			return due
		}
		due[n%clients] = append(due[n%clients], at)
	}
}

// comeWhenDue runs client i in an open loop. The client requests the key when a critical section is
// due, or when its previous section has ended, whichever is later. The section is recorded as not
// granted if no grant comes before "end".
func comeWhenDue(ctx context.Context, i int, c *client, key string, due []time.Time, end time.Time, note func(section)) error {
	granted := true
	for _, at := range due {
		one := section{client: i, lasts: hold, due: at}
		if !granted || !time.Now().Before(end) {
			note(one)
			continue
		}
		err := sleepUntil(ctx, at)
		if err != nil {
			return err
		}
		if granted, err = pass(ctx, one, c, key, end, note); err != nil {
			return err
		}
	}
	return nil
}

// pass runs one critical section: the client waits for the key, holds it for s.lasts, and
// releases it.
func pass(ctx context.Context, s section, c *client, key string, end time.Time, note func(section)) (granted bool, err error) {
	g, err := c.acquire(ctx, key, time.Until(end))
	// If the time limit of the wait passes before DynamoDB has sent any reply, each library
	// returns a different error. So any failure after the time limit is treated as "not granted
	// in time".
	over := errors.Is(err, peers.ErrFailed) && !time.Now().Before(end)
	if errors.Is(err, peers.ErrHeld) || over {
		note(s)
		return false, nil
	}
	if err != nil {
		return false, err
	}
	if err := sleepUntil(ctx, g.at.Add(s.lasts)); err != nil {
		return false, err
	}
	s.granted, s.releasing = g.at, time.Now()
	err = c.release(ctx, g)
	note(s)
	return true, err
}

// played contains the measurements of one run of a contention scenario.
type played struct {
	began, end time.Time
	sections   []section
	used       usage // requests and capacity units that were used during the measurement
	busy       float64
}

// contention runs a contention scenario for the given duration, and returns the measurements. It
// calls the function "come", which must run the clients until the time "end". After each critical
// section, "come" must pass the section to the function "note".
func (s *stage) contention(window time.Duration, key string, come func(key string, end time.Time, note func(section)) error) (played, error) {
	var mu sync.Mutex // guards p.sections
	p := played{began: time.Now()}
	p.end = p.began.Add(window)
	before, machine := s.meter.Used(), processors()
	metered := make(chan struct{})
	atEnd := time.AfterFunc(window, func() {
		defer close(metered)
		p.used, p.busy = s.meter.Used().Minus(before), machine.busy()
	})
	defer atEnd.Stop()
	err := come(key, p.end, func(one section) {
		mu.Lock()
		defer mu.Unlock()
		p.sections = append(p.sections, one)
	})
	if err != nil {
		return played{}, err
	}
	<-metered // the function come may return before the window has passed: it returns when no critical section is left
	return p, p.alone()
}

// The method "alone" returns an error if two clients held the key at the same time. It also turns
// each section with a grant after the end of the measurement into a section without a grant.
func (p *played) alone() error {
	granted := p.granted()
	for i := 1; i < len(granted); i++ {
		if before := granted[i-1]; granted[i].granted.Before(before.releasing) {
			return fmt.Errorf("clients %d and %d had the key at once, for %v", before.client, granted[i].client, before.releasing.Sub(granted[i].granted))
		}
	}
	for i, one := range p.sections { // a grant after the end of the measurement does not count
		if one.granted.After(p.end) {
			p.sections[i].granted = time.Time{}
		}
	}
	return nil
}

// granted returns the critical sections in which the key was granted, in the order of the
// grants.
func (p *played) granted() []section {
	granted := slices.DeleteFunc(slices.Clone(p.sections), func(s section) bool { return s.granted.IsZero() })
	slices.SortFunc(granted, func(a, b section) int { return a.granted.Compare(b.granted) })
	return granted
}

// waits returns two numbers for each critical section i of p. Element lasted[i] is the time in ms
// from when section i was due until its grant, or until the end of the measurement if there was no
// grant. Element overtaken[i] counts the later sections that were granted earlier.
func (p *played) waits() (lasted []float64, overtaken []int) {
	var waits []stats.Wait
	for _, one := range p.sections {
		until := one.granted
		if until.IsZero() {
			until = p.end
		}
		lasted = append(lasted, ms(until.Sub(one.due)))
		waits = append(waits, stats.Wait{Asked: one.due, Granted: one.granted})
	}
	return lasted, stats.Overtaken(waits)
}

// The method "both" returns the figures that occur in both kinds of tables: for closed loops and
// for open loops.
func (p *played) both() Figures {
	lasted, overtaken := p.waits()
	f := Figures{"busy": 100 * p.busy, "longest": slices.Max(lasted) / 1000, "overtaken": float64(slices.Max(overtaken))}
	f.cost(p.used, len(p.granted()))
	return f
}

func (p *played) closedLoop(clients int) Figures {
	f := p.both()
	granted := p.granted()
	shares, handOvers := make([]float64, clients), []float64{}
	for i, one := range granted {
		shares[one.client]++
		if i > 0 {
			handOvers = append(handOvers, ms(one.granted.Sub(granted[i-1].releasing)))
		}
	}
	f["jain"] = stats.Jain(shares)
	if len(granted) > 0 {
		f["section"] = ms(p.end.Sub(p.began)) / float64(len(granted))
	}
	if len(handOvers) > 0 {
		f["handover50"], f["handover99"] = stats.Quantile(handOvers, 0.5), stats.Quantile(handOvers, 0.99)
	}
	return f
}

func (p *played) openLoop() Figures {
	f := p.both()
	lasted, _ := p.waits()
	f["served"] = 100 * float64(len(p.granted())) / float64(len(p.sections))
	f["wait50"], f["wait99"] = stats.Quantile(lasted, 0.5), stats.Quantile(lasted, 0.99)
	return f
}

// sleepUntil sleeps until the given time, or until ctx is cancelled.
func sleepUntil(ctx context.Context, until time.Time) error {
	timer := time.NewTimer(time.Until(until))
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
