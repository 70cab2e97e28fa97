//go:build linux

package contest

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// heldLocks returns the scenario in which one process holds many locks and renews them.
func heldLocks(locks int) Scenario {
	// The measurement lasts for one renewal period, which is the same for all contenders with
	// default settings. For more than 1000 locks it lasts for two periods, because these locks are
	// acquired, and so renewed, at very different times.
	window := defaultRenew
	if locks > 1000 {
		window = 2 * defaultRenew
	}
	name := fmt.Sprint("held-", locks)
	return Scenario{
		Name: name, clients: locks, kind: holding, takes: window + 3*time.Second + time.Duration(locks)*time.Millisecond,
		Tables: []Table{{
			Name: name, Title: fmt.Sprintf("%d locks held by one process", locks),
			Note: fmt.Sprintf("For %v; renewals are due each 5 s. Renewed is how many of the renewals that were due were sent: below a quarter, a lease of four periods ends before its renewal, and locks are lost.", window),
			Columns: []Column{
				{"acquired", "acquired in, s", 1}, {"requests", "requests a second", 1}, {"writes", "write units a second", 1},
				{"dollars", "$ a day", 2}, {"renewed", "% renewed", 0}, {"lost", "lost", 0}, {"cpu", "ms of processor a second", 0}, {"memory", "MB", 0},
			},
		}},
		play: func(ctx context.Context, s *stage) (map[string]Figures, error) {
			clients := 1
			if s.contender.split > 0 {
				clients = (locks + s.contender.split - 1) / s.contender.split
			}
			f, err := s.startApart(ctx, clients, clients)
			if err != nil {
				return nil, err
			}
			began := time.Now()
			grants, err := acquireMany(ctx, f, locks)
			if err != nil {
				return nil, err
			}
			figures := Figures{"acquired": time.Since(began).Seconds()}
			driver := f.drivers[0]
			used, cpu := s.meter.Used(), processorTime(driver.PID())
			if err := sleepUntil(ctx, time.Now().Add(window)); err != nil {
				return nil, err
			}
			figures.cost(s.meter.Used().Minus(used), 1)
			for _, figure := range []string{"requests", "writes", "reads", "dollars"} {
				figures[figure] /= window.Seconds()
			}
			figures["dollars"] *= (24 * time.Hour).Seconds() / 1e6
			figures["cpu"] = ms(processorTime(driver.PID())-cpu) / window.Seconds()
			figures["memory"] = float64(residentBytes(driver.PID())) / (1 << 20)
			settings := s.contender.settings(s.scenario)
			if !settings.Shared { // with Settings.Shared, all locks of a client share one lease, so one renewal is enough
				figures["renewed"] = 100 * figures["requests"] * settings.Heartbeat.Seconds() / float64(locks)
			}
			lost, err := countLost(ctx, f, grants)
			figures["lost"] = float64(lost)
			return map[string]Figures{name: figures}, err
		},
	}
}

// inFlight is the number of concurrent requests to the drivers while the scenario acquires
// or counts locks.
const inFlight = 64

// acquireMany acquires the given number of keys, evenly spread over the clients of the
// fleet.
func acquireMany(ctx context.Context, f *fleet, locks int) ([]grant, error) {
	grants := make([]grant, locks)
	return grants, share(locks, func(i int) (err error) {
		grants[i], err = f.clients[i%len(f.clients)].acquire(ctx, fmt.Sprint("held/", i), time.Minute)
		return err
	})
}

// countLost asks the library whether each lock is still held, and returns the number of
// lost locks.
func countLost(ctx context.Context, f *fleet, grants []grant) (lost int, err error) {
	var mu sync.Mutex
	err = share(len(grants), func(i int) error {
		holds, err := f.clients[i%len(f.clients)].holds(ctx, grants[i])
		if err == nil && !holds {
			mu.Lock()
			defer mu.Unlock()
			lost++
		}
		return err
	})
	return lost, err
}

// share calls fn for each number from 0 to n-1, on inFlight goroutines.
func share(n int, fn func(i int) error) error {
	return each(make([]struct{}, inFlight), func(worker int, _ struct{}) error {
		for i := worker; i < n; i += inFlight {
			if err := fn(i); err != nil {
				return err
			}
		}
		return nil
	})
}
