package leasehold

import "github.com/leasehold-go/leasehold/internal/attempts"

// A gathering takes the turns of its local lines all at once, and while it
// waits it has that of the one key for which it waits: the others are free for
// other goroutines of its client, as they are for other processes.

// takeTurns takes the turns that it has not. False: another goroutine has one of
// them; its line was waited in, and only its turn is taken now.
func (g *gathering) takeTurns() (bool, error) {
	var missing []Key
	for _, part := range g.parts {
		if !g.turns[part] {
			missing = append(missing, part.want.key)
		}
	}
	busy, all := g.c.lines.TakeAll(missing...)
	for _, part := range g.parts {
		if all {
			g.turns[part] = true
		} else if busy == part.want.key {
			return false, g.waitFor(part)
		}
	}
	return true, nil
}

// waitFor takes the turn of s, and has no other while it waits.
func (g *gathering) waitFor(part *waiter) error {
	for _, other := range g.parts {
		if other != part {
			g.passTurn(other)
		}
	}
	return g.takeTurn(part)
}

// takeTurn waits for the turn of s, and lets other processes have theirs first.
func (g *gathering) takeTurn(part *waiter) error {
	g.at.Store(part)
	if g.turns[part] {
		return nil
	}
	given, err := g.c.awaitTurn(g.life, part.want)
	if err != nil {
		return err
	}
	g.turns[part] = true
	attempts.Wait(g.life, given.Delay)
	return nil
}

func (g *gathering) passTurns() {
	for _, part := range g.parts {
		g.passTurn(part)
	}
}

func (g *gathering) passTurn(part *waiter) {
	if g.turns[part] {
		delete(g.turns, part)
		g.c.lines.Pass(part.want.key, nil)
	}
}

// waitsFor returns the part that is waited for, and who holds its key: another
// goroutine, or somebody elsewhere; nil: that is not known.
func (g *gathering) waitsFor() (*waiter, *Record) {
	at := g.at.Load()
	if r := g.c.lines.Holder(at.want.key); r != nil {
		return at, r
	}
	return at, at.holder.Load()
}
