// Package breaking frees a key that somebody else holds, and tells the holder.
//
//	                applied, or the record shows it
//	held ─► break ───────────────────────────────► broken ─► its session is told, if any
//	        ▲ │ │
//	        └─┘ └── the record shows another grant, or none ──────────────► changed
//	 no answer, or
//	 renewed since
//
// A break is of one grant, as its record was read. If that has been renewed since, the next
// attempt is of what the record shows now, by a sequence of its own.
//
// A holder under a session rarely renews its record. Its row is told, so that the holder
// looks at the record after the next renewal of that (package hold, sessionbroken.go).
//
// What each failure does:
//
//	the break has no answer     repeated until the caller leaves: then the outcome is unknown
//	it is refused               an error: nothing was freed
//	a reply was lost, and the   the outcome is unknown: it may have freed the grant before
//	record shows another grant  that
//	the outcome is unknown      the session is told all the same: it looks at the record, and
//	                            loses nothing if the grant stands
//	the session cannot be told  the grant is broken, and the holder learns of it when it renews
//	                            its record; its commits fail at once
//
// A request outlives its caller (attempts.Outlive), and the telling does.
package breaking
