package hold

import (
	"context"
	"slices"
	"time"

	"github.com/leasehold-go/leasehold/internal/acquire"
	"github.com/leasehold-go/leasehold/internal/attempts"
	"github.com/leasehold-go/leasehold/internal/core"
	"github.com/leasehold-go/leasehold/internal/decide"
	"github.com/leasehold-go/leasehold/internal/lease"
	"github.com/leasehold-go/leasehold/internal/protocol"
)

// Detached is a grant that its client no longer holds, although the key was not released.
// The root package's Grant has the same fields.
type Detached struct {
	Table        string
	Key          protocol.Key
	Owner        string
	Token        int64
	ID           string   // id of the grant
	Versions     []string // versions that the record may have
	Lease        time.Duration
	TrustedUntil time.Time
}

// Detach ends the only handle of a lock without a session, and does not release the key. If the
// grant has the short lease of a hand-over, Detach renews it first, so that the next process has a
// full lease. If that fails, the handle does not end.
func (l *Handle) Detach() (Detached, error) {
	h := l.h
	if err := l.Err(); err != nil {
		return Detached{}, err
	}
	if h.lease.RestsOnHandOver() && len(h.Handles()) <= 1 {
		if err := l.Renew(h.ctx, lease.Changes{}); err != nil { // Renew repeats the renewal until it is answered or the lock is no longer trusted
			return Detached{}, err
		}
	}
	until := l.TrustedUntil()
	if len(h.Handles()) > 1 {
		return Detached{}, h.c.Errorf("detach", h.key, "other handles share the grant: release them first")
	}
	if !h.end(core.ErrDetached) {
		return Detached{}, h.Ended()
	}
	h.passTurn()
	return Detached{
		Table: h.c.Table, Key: h.key, Owner: h.owner, Token: h.token, ID: h.grant,
		Versions: h.asHeld().Versions, Lease: h.lease.Duration(), TrustedUntil: until,
	}, nil
}

// Resume resumes a grant that this process or another has detached. It repeats a renewal, with the
// lease and the changes in "want", until DynamoDB answers. If ctx is done first, the caller may
// call Resume again: the client remembers the attempts of earlier calls.
func (c *Holds) Resume(ctx context.Context, d Detached, want *acquire.Want) (h *Lock, err error) {
	err = c.Call(ctx, "resume", want.Key, func(ctx context.Context) (err error) {
		h, err = c.resumeUntil(ctx, d, want)
		return err
	})
	return h, err
}

// resumeUntil resumes a detached grant by a renewal. If ctx is done before the renewal is answered,
// resumeUntil returns, and the renewal continues in the background. If the renewal succeeds later,
// the grant is detached again.
func (c *Holds) resumeUntil(ctx context.Context, d Detached, want *acquire.Want) (*Lock, error) {
	end, ok := c.beginResume(ctx, d.ID)
	if !ok { // ctx has ended while an earlier Resume of the grant still waited for its answer
		return nil, c.UnknownOutcome("resume", want.Key, attempts.Cause(ctx))
	}
	var h *Lock
	var err error
	var tried attempts.Sequence[releaseAttempt]
	done, unknown := attempts.Outlive(ctx, c.Detach, &tried, func() { h, err = c.resume(ctx, d, want, &tried) })
	if unknown != nil {
		c.Detach(func() {
			defer end()
			if <-done; h != nil {
				c.detachAgain(d, h)
			}
		})
		return nil, c.UnknownOutcome("resume", want.Key, unknown)
	}
	defer end()
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	h.unclaimed = c.IsClosing() // an unclaimed lock is detached again, and Close does not release it
	c.mu.Unlock()
	if h.unclaimed {
		c.detachAgain(d, h)
		return nil, c.AfterClose("resume", want.Key)
	}
	return h, nil
}

// detachAgain detaches a grant that was resumed after the caller had stopped waiting, or during
// Close. A later Resume can resume it. The key is not released, because the process that first
// detached the grant may work under it until the lease expires.
func (c *Holds) detachAgain(d Detached, h *Lock) {
	h.end(core.ErrDetached)
	h.passTurn()
	c.resumes.Add(d.ID, h.asHeld().Versions, c.Now().Mono, h.lease.Duration())
}

// beginResume waits until no other Resume of the grant is in progress, and blocks later ones until
// "end" is called. It returns false if ctx is done first. The package comment explains why only one
// Resume may run.
func (c *Holds) beginResume(ctx context.Context, id string) (end func(), ok bool) {
	own := make(chan struct{})
	for {
		other, busy := c.resuming.LoadOrStore(id, own)
		if !busy {
			return func() {
				c.resuming.Delete(id)
				close(own)
			}, true
		}
		select {
		case <-other.(chan struct{}):
		case <-ctx.Done():
			return nil, false
		}
	}
}

// resume sends the renewal of a detached grant until DynamoDB answers it.
func (c *Holds) resume(ctx context.Context, d Detached, want *acquire.Want, tried *attempts.Sequence[releaseAttempt]) (*Lock, error) {
	of := row{c: c, key: want.Key, owner: d.Owner, grant: d.ID, token: d.Token, proto: c.Proto, ctx: ctx}
	earlier := c.resumes.Of(d.ID, c.Now().Mono) // versions of attempts that earlier calls have sent and that had no answer
	versions := slices.Concat(d.Versions, earlier)
	defer func() { c.resumes.Add(d.ID, tried.Versions(), c.Now().Mono, want.Timing.Lease) }()
	res, _ := of.send(context.WithoutCancel(ctx), ctx, &versions, tried, attempts.Operation[releaseAttempt]{
		Next: func() (releaseAttempt, *protocol.Write) {
			a := c.newAttempt(want.Timing.Lease)
			return a, of.Renewal(a.Attempt, slices.Concat(versions, tried.Versions()), want.Changes)
		},
		Within: want.Within(nil),
		Shows:  of.showsGrant(want.Timing),
	}, false, decide.Never)
	switch res.Outcome {
	case attempts.Applied:
		shown, err := of.Decode(res.Item)
		if err != nil {
			tried.Add(res.Attempt) // another Resume may succeed once the damage to the record is repaired
			return nil, err
		}
		h := want.Hold(ctx, acquire.Grant{GrantAttempt: res.Attempt.GrantAttempt, Record: shown, Resumed: true}).(*Lock)
		c.keys.Local.GrantedOutOfTurn(want.Key, h)
		return h, nil
	case attempts.Rejected:
		return nil, c.notResumed(d, want, res.Item)
	}
	// Attempts of earlier calls may still be applied, whatever the outcome of this call.
	return nil, c.notDone(ctx, "resume", want.Key, res, len(earlier)+len(tried.Versions()))
}

// notResumed returns the error with which Resume fails after its renewal was rejected. The item in
// the reply shows why the grant is no longer current.
func (c *Holds) notResumed(d Detached, want *acquire.Want, item protocol.Item) error {
	lost := core.Loss{Key: want.Key, Token: d.Token, Reason: core.Broken, At: d.TrustedUntil}
	if now := c.Wall().Round(0); now.Before(lost.At) {
		lost.At = now
	}
	r, damage := c.Decode(want.Key, item)
	switch {
	case item == nil:
		damage = nil
	case damage == nil:
		lost.Seen(r, d.ID)
	}
	return attempts.Joined(c.Errors.Lost(lost), damage)
}
