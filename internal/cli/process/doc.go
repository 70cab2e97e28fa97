// Package process runs CMD under a lock. It starts CMD, stops CMD before trust in the lock
// ends, and determines leasehold's exit code. Trust ends at Lock.TrustedUntil, before
// another client may acquire the lock. The package reads no flags, opens no store and sends
// no requests. Its caller implements Lock.
//
//	Run ── gate ──► CMD, in a process group of its own, and its descendants
//	    └─ orders ► the watchdog (internal/cli/watchdog), which stops the group in time
//
// run.go follows CMD to its end. watchdoghandle.go starts and controls the watchdog, a
// process that stops CMD in time. background.go handles processes that outlive CMD.
//
// In this list, a suspended process has received SIGSTOP or Ctrl-Z, and a stopped process
// has been asked to exit:
//
//   - The lock is lost, or is not renewed in time: the watchdog stops CMD before trust ends. It
//     kills CMD one grace period later, or when trust ends if that is sooner.
//   - This process is killed: the watchdog kills CMD. If the watchdog did not know CMD yet, the
//     child that should become CMD still waits at the gate (internal/cli/atgate) and exits there.
//   - This process is suspended: the watchdog continues.
//   - The watchdog dies or is suspended: this process reports that and starts a new one. If it
//     cannot, it runs the watchdog in a goroutine.
//   - This process and the watchdog die or are suspended at the same time: CMD is not stopped in
//     time. On Linux there is one exception: when this process dies, the kernel kills CMD. It does
//     not kill CMD's children.
//   - The parent of this process ends: by default nothing happens. With --die-with-parent, the
//     watchdog stops CMD, and kills it one grace period later. A suspended process does not notice
//     the end of its parent. CMD is then stopped before trust ends, because no renewal follows.
//   - CMD is suspended, by Ctrl-Z or because it reads the terminal: this process suspends itself
//     too, or gives the terminal to CMD. If no shell could continue this process, it continues CMD
//     instead.
//   - CMD ends before processes that it has started: the lock stays held (BackgroundWait).
//
// The child at the gate and the watchdog run this executable again. Both do their work in
// init functions, before the slow initialization of other packages. That is why each is in
// a package of its own.
package process
