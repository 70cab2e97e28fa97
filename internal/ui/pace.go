package ui

import "time"

// pace bounds the read units per second that are taken from the table.
type pace struct {
	rate  float64 // read units a second; 0: none
	next  time.Time
	spent []spending
}

type spending struct {
	at    time.Time
	units float64
}

// meterFor is the time over which the rate that is shown is counted.
const meterFor = 10 * time.Second

// spend enters what a request took.
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

// set changes the rate. What was spent by the old one is not waited for.
func (p *pace) set(rate float64, now time.Time) {
	p.rate, p.next = rate, now
}

// forget drops what was spent before the last seconds.
func (p *pace) forget(now time.Time) {
	for len(p.spent) > 0 && now.Sub(p.spent[0].at) > meterFor {
		p.spent = p.spent[1:]
	}
}

// perSecond is what was spent in the last seconds, for a second.
func (p *pace) perSecond(now, since time.Time) float64 {
	p.forget(now)
	var sum float64
	for _, s := range p.spent {
		sum += s.units
	}
	return sum / max(min(meterFor, now.Sub(since)), time.Second).Seconds()
}
