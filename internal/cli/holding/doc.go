// Package holding acquires what a command should hold, holds it, and releases it:
//
//	Seeker ── Acquire ──► Hold ──┬─ Run ──► CMD has ended ────────────► the hold is released
//	   ▲     (waits, and says    └─ Detach ► a grant, which outlives    │
//	   │      who holds it)                  the command                │
//	   └──── the next term of an election: the hold was lost ◄──────────┘
//
// A hold is one lock, one permit of a semaphore, the locks of several keys, or leadership, as
// Wanted demands. The files follow this life:
//
//	seeker.go   the requested hold (a lock, a permit, several locks, leadership), and how it is
//	            acquired: a signal ends that
//	outer.go    refuses to wait for the command's own outer runs; the variables that describe these to CMD
//	waiting.go  reports the holder during a wait, and what a wait that was too short means
//	hold.go     the hold: CMD, its end, the release after it, and failing renewals
//
// These are the effects of failures. A hold that is lost, or is not renewed in time, stops CMD
// before trust in it ends (package process), and the error reports that. A release that fails is
// repeated for some time; after that the key becomes free when its lease expires. It is an error
// if the mark of completed work could not be stored. A wait that a signal ends leaves nothing
// behind; if the key was granted at the same moment, CMD receives the signal.
//
// The package knows nothing of flags: the requested hold is a Wanted, and the user a User.
package holding
