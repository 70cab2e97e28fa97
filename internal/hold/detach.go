package hold

import (
	"time"

	"github.com/leasehold-go/leasehold/internal/core"
	"github.com/leasehold-go/leasehold/internal/protocol"
)

// Detached is a grant that was given up without a release.
type Detached struct {
	Key          protocol.Key
	Owner        string
	Token        int64
	Grant        string   // its id
	Versions     []string // versions that the record may show
	Lease        time.Duration
	TrustedUntil time.Time
}

// Detach ends the handle of a plain lock under no session, without releasing the key.
// Nothing is sent, unless the key was handed over by another client and has not been
// renewed since: then Detach renews it first, so that whoever resumes the grant finds it
// with its own lease. If that renewal fails, the handle stays.
func (l *Handle) Detach() (Detached, error) {
	h := l.h
	if err := l.Err(); err != nil {
		return Detached{}, err
	}
	if h.lease.RestsOnHandOver() && !l.isShared() {
		if err := l.Renew(h.ctx, Renewal{}); err != nil { // within the trust in the hand-over
			return Detached{}, err
		}
	}
	until := l.TrustedUntil()
	if l.isShared() {
		return Detached{}, h.c.Errorf("detach", h.key, "other handles share the grant: release them first")
	}
	if !h.end(core.ErrDetached) {
		return Detached{}, h.Ended()
	}
	h.passTurn()
	return Detached{
		Key: h.key, Owner: h.owner, Token: h.token, Grant: h.grant,
		Versions: h.asHeld().Versions, Lease: h.lease.Duration(), TrustedUntil: until,
	}, nil
}
