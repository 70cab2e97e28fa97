// Package process runs CMD under a lock. It starts CMD, stops CMD before trust in the lock
// ends, and determines leasehold's exit code. It reads no flags, opens no store and sends
// no requests. The caller's Lock reports when trust ends, and that a lock was lost.
//
//	Run ── gate ──► CMD, in a process group of its own, and its descendants
//	    └─ orders ► the watchdog (internal/cli/watchdog), which stops the group in time
//
// run.go follows CMD to its end. watchdoghandle.go starts and controls the watchdog, a
// process that stops CMD in time. background.go handles processes that outlive CMD.
//
// In this list, "suspended" means by SIGSTOP or Ctrl-Z, and "stopped" means told to exit:
//
//   - The lock is lost, or is not renewed in time: the watchdog stops CMD, and kills it one grace
//     period later. Both happen before trust ends.
//   - This process is killed: the watchdog kills CMD. If the watchdog did not know CMD yet, CMD is
//     still waiting at the gate (internal/cli/atgate) and exits there.
//   - This process is suspended: the watchdog continues.
//   - The watchdog dies or is suspended: this process reports that and starts a new one. If it
//     cannot, it runs the watchdog in a goroutine.
//   - This process and the watchdog die or are suspended at the same time: CMD is not stopped in
//     time. If this process has died, the Linux kernel kills CMD, but not CMD's children.
//   - The parent of this process ends: by default nothing happens. With --die-with-parent, the
//     watchdog stops CMD, and kills it one grace period later. While this process is suspended,
//     CMD is stopped only when trust ends.
//   - CMD is suspended, by Ctrl-Z or because it reads the terminal: this process suspends itself
//     too, or gives the terminal to CMD. If no shell could continue this process, it continues CMD
//     instead.
//   - CMD ends before processes that it has started: the lock stays held (BackgroundWait).
//
// The program at the gate and the watchdog are this executable, started again. Both run in
// init functions, before the slow initialization of other packages. So both are separate
// packages.
package process
