// Package process is CMD under a lock: how it is started, what it inherits, what stops it,
// and what its end means. It knows nothing of flags, stores and requests: the lock is
// what says how long it may be trusted, and when it is lost.
//
//	Run ── gate ──► CMD, in a process group of its own, and what descends from it
//	    └─ orders ► the watchdog (internal/cli/watchdog), which alone signals the group in time
//
// run.go follows CMD to its end; stop.go is what stops it in time; background.go what
// becomes of processes that outlive it.
//
// What each failure does:
//
//   - The lock is lost, or is not renewed in time: the watchdog stops CMD, and kills it a
//     grace later, both before trust ends.
//   - This process is killed: the watchdog kills CMD. One that was killed before it had told
//     the watchdog of CMD leaves CMD at the gate (internal/cli/atgate), where it ends.
//   - This process is stopped: the watchdog goes on.
//   - The watchdog dies, or is stopped: this process starts another, and says so. If it
//     cannot, the watchdog goes on within this process.
//   - Both die or are stopped at once: nobody stops CMD in time. On Linux the kernel kills
//     CMD, but nothing below it, when this process dies.
//   - The parent of this process ends: nothing, or with --die-with-parent the watchdog stops
//     CMD, and kills it a grace later. While this process is stopped, only trust ends CMD.
//   - CMD is stopped, by Ctrl-Z or as it reads the terminal: so is this process, or the
//     terminal is given to CMD. Where nobody could continue this process, CMD goes on.
//   - CMD ends, and what it has started does not: the lock stays held (BackgroundWait).
//
// The gate and the watchdog are processes of this program. Both run while its packages
// are initialized, before any that takes its time, and so are packages of their own.
package process
