// Package process runs CMD under a lock: it starts CMD, stops it in time, and interprets its
// end. It knows nothing of flags, stores and requests. The lock provides the end of trust
// and reports its loss.
//
//	Run ── gate ──► CMD, in a process group of its own, and its descendants
//	    └─ orders ► the watchdog (internal/cli/watchdog), which stops the group in time
//
// run.go follows CMD to its end. watchdoghandle.go drives the watchdog, which stops CMD in
// time. background.go handles processes that outlive CMD.
//
// These are the effects of failures:
//
//   - The lock is lost, or is not renewed in time: the watchdog stops CMD, and kills it a
//     grace later, both before trust ends.
//   - This process is killed: the watchdog kills CMD. If the watchdog did not know CMD yet,
//     CMD is still at the gate (internal/cli/atgate), and ends there.
//   - This process is stopped: the watchdog goes on.
//   - The watchdog dies, or is stopped: this process reports that and starts another. If it
//     cannot, the watchdog runs within this process.
//   - Both die or are stopped at once: CMD is not stopped in time. On Linux the kernel kills
//     CMD, but none of its children, when this process dies.
//   - The parent of this process ends: nothing happens by default. With --die-with-parent
//     the watchdog stops CMD, and kills it a grace later. While this process is stopped,
//     only the end of trust ends CMD.
//   - CMD is stopped, by Ctrl-Z or because it reads the terminal: this process is stopped
//     too, or the terminal is given to CMD. If no shell could continue this process, CMD is
//     continued.
//   - CMD ends before processes that it has started: the lock stays held (BackgroundWait).
//
// The gate and the watchdog are processes of this program. Both run while its packages are
// initialized, before any slow initialization, and are therefore packages of their own.
package process
