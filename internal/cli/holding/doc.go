// Package holding is the life of what a command holds, from the wait to the release:
//
//	Seeker ── Acquire ──► Hold ──┬─ Run ──► CMD has ended, and the hold is released
//	   ▲     (waits, and says    └─ Detach ► a grant, which outlives the command
//	   │      who holds it)           │
//	   └──── the next term ◄──────────┘ of an election: the hold was lost
//
// A hold is one lock, one permit of a semaphore, the locks of several keys, or
// leadership: Wanted says which. Its files are in the order of that life:
//
//	wanted.go       what is to be held, and how long it may be waited for
//	outer.go        what is not waited for: the command itself runs under it
//	seeker.go       the wait, which a signal ends
//	acquire.go      what is asked for: a lock, a permit, several locks, leadership
//	turn_linux.go   waiters of one machine look at a local store in turn
//	waiting.go      who is said to hold it; allheld.go: of several keys or permits
//	shortwait.go    a wait that is too short to see a dead holder's lease pass
//	hold.go         what is held, and until when it may be trusted
//	environment.go  what CMD is told of it
//	run.go          CMD, and the release after it
//	renewals.go     that renewals fail, and why
//
// What each failure does: a hold that is lost, or is not renewed in time, stops CMD before
// trust in it ends (package process), and the error says so; if a release fails, the key
// becomes free when its lease expires; a wait that a signal ends leaves nothing behind
// but the signal, which is CMD's if the key was granted at the same moment.
//
// It knows nothing of flags: what is held comes as Wanted, and who is told as User.
package holding
