// Package breaking frees a key that another client holds, and notifies the holder.
//
//	                applied, or the record shows it
//	held ─► break ───────────────────────────────► broken ─► its session is notified, if any
//	        ▲ │ │
//	        └─┘ └── the record shows another grant, or none ──────────────► changed
//	 no answer, or
//	 renewed since
//
// A break ends one grant: the write is conditional on the version that was read. If the grant
// has been renewed since, the next attempt is conditional on the version that the record shows
// now. That attempt begins a new sequence of attempts.
//
// A holder under a session rarely renews its record. The break puts a notice into the
// session's row, so that the holder reads the record after the row's next renewal (package
// hold, sessionbroken.go).
//
// What each failure does:
//
//	the break has no answer     repeated until the caller's context ends: then the outcome is unknown
//	the break is refused        an error: nothing was freed
//	a reply was lost, and the   the outcome is unknown: the attempt without a reply may have
//	record shows another grant  freed the key before the other grant
//	the outcome is unknown      the session is still notified: its holder checks the record, and
//	                            loses nothing if the grant is current
//	the notice fails            the grant is broken, and the holder learns of the break when it
//	                            renews the record; commits of the holder fail immediately
//
// When the caller's context ends, a request in flight is not cancelled (attempts.Outlive), and
// the session is still notified.
package breaking
