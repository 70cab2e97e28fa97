package leasehold

import "github.com/leasehold-go/leasehold/internal/attempts"

// A gathering takes the turns of its local lines all at once, and while it
// waits it has that of the one key for which it waits: the others are free for
// other goroutines of its client, as they are for other processes.

// takeTurns takes the turns that it has not. False: another goroutine has one of
// them; its line was waited in, and only its turn is taken now.
func (g *gathering) takeTurns() (bool, error) {
	var missing []Key
	for _, s := range g.parts {
		if !g.turns[s] {
			missing = append(missing, s.want.key)
		}
	}
	busy, all := g.c.lines.TakeAll(missing...)
	for _, s := range g.parts {
		if all {
			g.turns[s] = true
		} else if busy == s.want.key {
			return false, g.waitFor(s)
		}
	}
	return true, nil
}

// waitFor takes the turn of s, and has no other while it waits.
func (g *gathering) waitFor(s *seeker) error {
	for _, other := range g.parts {
		if other != s {
			g.passTurn(other)
		}
	}
	return g.takeTurn(s)
}

// takeTurn waits for the turn of s, and lets other processes have theirs first.
func (g *gathering) takeTurn(s *seeker) error {
	g.at.Store(s)
	if g.turns[s] {
		return nil
	}
	given, err := g.c.awaitTurn(g.life, s.want)
	if err != nil {
		return err
	}
	g.turns[s] = true
	attempts.Wait(g.life, given.Delay)
	return nil
}

func (g *gathering) passTurns() {
	for _, s := range g.parts {
		g.passTurn(s)
	}
}

func (g *gathering) passTurn(s *seeker) {
	if g.turns[s] {
		delete(g.turns, s)
		g.c.lines.Pass(s.want.key, nil)
	}
}

// waitsFor returns the part that is waited for, and who holds its key: another
// goroutine, or somebody elsewhere; nil: that is not known.
func (g *gathering) waitsFor() (*seeker, *Record) {
	at := g.at.Load()
	if r := g.c.lines.Holder(at.want.key); r != nil {
		return at, r
	}
	return at, at.holder.Load()
}
