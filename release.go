package leasehold

import (
	"cmp"
	"context"

	"github.com/leasehold-go/leasehold/internal/hold"
)

// Release frees the key. The lock's context ends before the write is sent. Nil means
// that the key was freed, ErrLost that the lock had been lost before. Other errors are
// not final: after ErrUnknownOutcome, when a write had no reply, the key may be free;
// after any other it is not. Call Release again, or let the lease run out. A ctx that
// has ended shortens Release to Config.ReleaseGrace, but does not prevent it.
//
// If other handles share the grant (Reentrant), it ends this handle alone, and sends
// nothing. Data and attributes that it was to store are an error then, unless the
// record has them.
//
// With Config.SharedLease the lease goes on being renewed. There the client repeats a
// release that failed until the key is free.
func (l *Lock) Release(ctx context.Context, opts ...ReleaseOption) error {
	return l.group().Release(ctx, opts...)
}

// Release frees all keys, up to 100 in one transaction. If that is refused or has no
// answer, it frees them one by one, in parallel. It joins the errors, in the order of
// Locks, each as from Lock.Release, and may be called again like that. Options apply
// to every lock.
func (g *Group) Release(ctx context.Context, opts ...ReleaseOption) error {
	terms, err := g.terms(opts)
	if err != nil {
		return err
	}
	return g.g.Release(ctx, terms)
}

// terms are those of the release of each lock. With an error, of a bad option, they are as
// without options.
func (g *Group) terms(opts []ReleaseOption) ([]hold.Terms, error) {
	terms := make([]hold.Terms, len(g.locks))
	var bad error
	for i, l := range g.locks {
		t, err := l.c.newTerms(l.h.Lock(), opts)
		if err != nil {
			bad, t = cmp.Or(bad, err), hold.Terms{Delete: l.h.Lock().Want().Delete}
		}
		terms[i] = t
	}
	return terms, bad
}
