// Package holding acquires the locks that a command should hold, holds them while CMD runs,
// and releases them:
//
//	Seeker ── Acquire ──► Hold ──┬─ Run ──► CMD has ended ────────────► the hold is released
//	   ▲     (waits, and says    └─ Detach ► a grant, which outlives    │
//	   │      who holds it)                  the command                │
//	   └──── the next term of an election: the hold was lost ◄──────────┘
//
// A hold is one of these, as Wanted describes: one lock, one permit of a semaphore, the
// locks of several keys, or leadership. The files, in the order in which a hold uses them:
//
//	seeker.go   describes the requested hold (a lock, a permit, several locks, leadership) and
//	            acquires it; a signal ends the wait
//	outer.go    refuses to wait for a key that an outer run holds (a "leasehold run" or "leasehold
//	            elect" above this command); sets the environment variables of CMD that describe
//	            this run and the outer runs
//	waiting.go  reports the holder during a wait, and recognizes a wait that was too short to
//	            detect a dead holder
//	hold.go     runs CMD under the hold, reports failing renewals, and releases the hold after CMD
//
// Failures have these effects. If a hold is lost, CMD is stopped. If a hold is not renewed in
// time, CMD is stopped before Hold.TrustedUntil (package process). A failed release is retried for
// some time. After that, the key becomes free when its lease expires. With --once or --every, the
// command fails if it cannot store in the table that the work is done. If a signal ends the wait
// for a key, the command leaves nothing in the table. If the signal arrives at the moment when the
// key is granted, CMD starts and receives the signal.
//
// The package reads no flags. Its callers describe the requested hold in a Wanted, and pass the
// settings, the output and the environment in a User.
package holding
