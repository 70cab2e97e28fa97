// Package breaking frees a key that another client holds, and notifies the holder.
//
//	                applied, or the record shows it
//	held ─► break ───────────────────────────────► broken ─► its session is notified, if any
//	        ▲ │ │
//	        └─┘ └── the record shows another grant, or none ──────────────► changed
//	 no answer, or
//	 renewed since
//
// A break ends one grant. Its write is conditional on the version that was read. If a renewal
// has changed the version, a new sequence of attempts begins with the changed version.
//
// If the locks of a client share a lease, the client renews the row of its session instead of the
// locks' own records, and would notice the break late. So the break also puts a notice into this
// row. The reply to the next renewal of the row shows the notice, and the client then reads the
// record (package hold, sessionbroken.go).
//
// What each failure does:
//
//	the break has no answer     repeated until the caller's context is done: then the outcome is unknown
//	the break is refused        an error: nothing was freed
//	a reply was lost, and the   the outcome is unknown: the attempt without a reply may have
//	record shows another grant  freed the key before that grant began
//	the outcome is unknown      the session is still notified: its client reads the record, and keeps
//	                            the lock if the record still shows the grant
//	the notice fails            an error: the grant is broken, but its client learns of it only at
//	                            the next renewal of the lock's own record, within twenty minutes;
//	                            commits of the holder fail immediately
//
// When the caller's context is cancelled, a request in flight continues (attempts.Outlive), and
// the session is still notified.
package breaking
