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
//	seeker.go       what is to be held, and the wait for it, which a signal ends
//	outer.go        what is not waited for: the command itself runs under it; what CMD is told of that
//	turn_linux.go   waiters of one machine look at a local store in turn
//	waiting.go      who is said to hold it
//	waited.go       a wait in which nothing was answered, or too short to see a dead holder's lease pass
//	hold.go         what is asked for (a lock, a permit, several locks, leadership), and what is held
//	run.go          CMD, what its end means, the release after it, and that renewals fail
//
// What each failure does: a hold that is lost, or is not renewed in time, stops CMD before
// trust in it ends (package process), and the error says so; a release that fails is repeated, for
// some time, and then the key becomes free when its lease expires; work that is done once and
// whose mark could not be stored is an error; a wait that a signal ends leaves nothing behind
// but the signal, which is CMD's if the key was granted at the same moment.
//
// It knows nothing of flags: what is held comes as Wanted, and who is told as User.
package holding
