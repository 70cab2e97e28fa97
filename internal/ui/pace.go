package ui

import "time"

// pace limits how many read units per second the scanner consumes.
type pace struct {
	rate  float64 // maximum number of read units per second; zero stops all reads
	next  time.Time
	spent []spending
}

type spending struct {
	at    time.Time
	units float64
}

// meterFor is the period over which the displayed number of read units per second is averaged.
const meterFor = 10 * time.Second

// spend records the read units that a request has consumed, and delays the next request
// accordingly.
func (p *pace) spend(units float64, now time.Time) {
	p.forget(now)
	p.spent = append(p.spent, spending{now, units})
	if p.next.Before(now) {
		p.next = now
	}
	if p.rate > 0 {
		p.next = p.next.Add(time.Duration(units / p.rate * float64(time.Second)))
	}
}

// set changes the rate. Read units that were consumed at the old rate do not delay later
// requests.
func (p *pace) set(rate float64, now time.Time) {
	p.rate, p.next = rate, now
}

// forget removes the elements of p.spent that are older than meterFor.
func (p *pace) forget(now time.Time) {
	for len(p.spent) > 0 && now.Sub(p.spent[0].at) > meterFor {
		p.spent = p.spent[1:]
	}
}

// perSecond returns the average number of read units per second in the last ten seconds
// (meterFor). If the server has run for less than that, perSecond averages over its run time.
func (p *pace) perSecond(now, since time.Time) float64 {
	p.forget(now)
	var sum float64
	for _, s := range p.spent {
		sum += s.units
	}
	return sum / max(min(meterFor, now.Sub(since)), time.Second).Seconds()
}
