package records

import "github.com/leasehold-go/leasehold/internal/protocol"

// lock makes the writes of a plain lock's record. Each layout spells the record in its own
// way, but each write does the same in all layouts:
//
//	write     sets                          if the record
//	Grant     the grant and its lease       is not there, or is free, takeable or a dead holder's
//	HandOver  the grant and its lease       is held by the hold, at one of its versions
//	Renew     a version and the lease       is held by the hold, at one of its versions
//	Release   what frees it, or deletes it  is held by the hold, at one of its versions
//	Delete    nothing: deletes it           is held by the hold, at one of its versions
//	Guard     nothing: only checks          shows the hold's grant, at whatever version
//	Break     what frees it, or deletes it  is still what was read
type lock struct{ spelling }

// spelling is how a family of layouts writes a plain lock's record. Methods that set
// something add to an update; methods that return a string return a condition.
type spelling interface {
	protocol.Reading
	mustKey(k protocol.Key) protocol.Item

	// keeps reports whether a release keeps the record, so that the token and the last
	// holder can be read. Otherwise the release deletes the record.
	keeps() bool

	setGrant(w *protocol.Write, g protocol.Grant)
	setRenewal(w *protocol.Write, h protocol.Hold, r protocol.Renewal)
	setRelease(w *protocol.Write, r protocol.Release) // called only if keeps returns true

	// grantable returns conditions: a record is free to be granted if any of them holds.
	// Empty conditions do not count.
	grantable(w *protocol.Write, g protocol.Grant) []string

	// held returns the condition that the record shows the hold at one of its versions.
	// stands returns the condition that the hold's grant has not ended, whether it was
	// renewed or not.
	held(w *protocol.Write, h protocol.Hold) string
	stands(w *protocol.Write, h protocol.Hold) string

	// isRecord returns the condition that the record has not changed since r.
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
	w.Where(l.stands(w, h))
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
