package records

import "github.com/leasehold-go/leasehold/internal/protocol"

// lock builds the writes of a plain lock's record. Each layout has its own attribute names
// and values, but each write does the same in all layouts. The argument Hold describes the
// holder's grant:
//
//	write     what it does to the record    condition
//	Grant     sets the grant and its lease  there is no record, or the record is free, or shows
//	                                        an earlier attempt of this client or a dead holder
//	HandOver  sets the grant and its lease  the record shows the grant and a version of the Hold
//	Renew     sets a version and the lease  the record shows the grant and a version of the Hold
//	Release   marks it as free, or deletes  the record shows the grant and a version of the Hold
//	Delete    deletes it                    the record shows the grant and a version of the Hold
//	Guard     changes nothing               the record shows the grant of the Hold, at any version
//	Break     marks it as free, or deletes  the record has not changed since it was read
type lock struct{ spelling }

// spelling encodes and decodes the record of a plain lock for several similar layouts.
// Methods whose names begin with set add to the update w. Methods that return strings
// return parts of the condition of w.
type spelling interface {
	protocol.Reading
	mustKey(k protocol.Key) protocol.Item

	// keeps reports whether a release keeps the record, so that clients can still read the
	// token and the last holder. If it returns false, a release deletes the record.
	keeps() bool

	setGrant(w *protocol.Write, g protocol.Grant)
	setRenewal(w *protocol.Write, h protocol.Hold, r protocol.Renewal)
	setRelease(w *protocol.Write, r protocol.Release) // called only if keeps returns true

	// grantable returns conditions on a record: DynamoDB may apply the grant g if one of them
	// is true. Empty strings in the result are not conditions.
	grantable(w *protocol.Write, g protocol.Grant) []string

	// held returns the condition that the record shows the grant of h at one of the versions
	// in h. isCurrent returns the condition that the grant of h has not ended, at any version.
	held(w *protocol.Write, h protocol.Hold) string
	isCurrent(w *protocol.Write, h protocol.Hold) string

	// isRecord returns the condition that the record has not changed since it was decoded as
	// r.
	isRecord(w *protocol.Write, r protocol.Record) string
}

func (l lock) Grant(g protocol.Grant) *protocol.Write {
	w := protocol.NewUpdate(l.mustKey(g.Key))
	l.setGrant(w, g)
	free := l.grantable(w, g)
	if l.keeps() {
		setTakenOver(w, g)
	}
	whereGrantable(w, g, l.Schema().Partition, free...)
	whereUndone(w, g.Once)
	return w
}

func (l lock) HandOver(h protocol.Hold, g protocol.Grant) *protocol.Write {
	w := protocol.NewUpdate(l.mustKey(g.Key))
	l.setGrant(w, g)
	w.Where(l.held(w, h) + " AND " + tokenInRange(w))
	return w
}

func (l lock) Renew(h protocol.Hold, r protocol.Renewal) *protocol.Write {
	w := protocol.NewUpdate(l.mustKey(h.Key))
	l.setRenewal(w, h, r)
	w.Where(l.held(w, h))
	return w
}

func (l lock) Release(h protocol.Hold, r protocol.Release) *protocol.Write {
	if !l.keeps() {
		return l.Delete(h)
	}
	w := protocol.NewUpdate(l.mustKey(h.Key))
	l.setRelease(w, r)
	setDone(w, r.Done)
	w.Where(l.held(w, h))
	return w
}

func (l lock) Delete(h protocol.Hold) *protocol.Write {
	w := protocol.NewDelete(l.mustKey(h.Key))
	w.Where(l.held(w, h))
	return w
}

func (l lock) Guard(h protocol.Hold) *protocol.Write {
	w := protocol.NewCheck(l.mustKey(h.Key))
	w.Where(l.isCurrent(w, h))
	return w
}

func (l lock) Break(r protocol.Record, b protocol.Break) *protocol.Write {
	w := protocol.NewDelete(l.mustKey(r.Key))
	if l.keeps() {
		w = protocol.NewUpdate(l.mustKey(r.Key))
		l.setRelease(w, protocol.Release{Version: b.Version, Expires: b.Expires})
		setBroken(w, r, b)
	}
	w.Where(l.isRecord(w, r))
	return w
}
