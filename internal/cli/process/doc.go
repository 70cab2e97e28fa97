// Package process runs CMD under a lock. It starts CMD, stops CMD before trust in the lock
// ends, and determines leasehold's exit code. Trust ends at the time Lock.TrustedUntil: after that,
// another client may hold the lock. The package reads no flags, opens no store and sends no
// requests. Its caller implements Lock.
//
//	Run ── gate ──► CMD, in a process group of its own, and its descendants
//	    └─ orders ► the watchdog (internal/cli/watchdog), which stops the group in time
//
// run.go follows CMD to its end. watchdoghandle.go starts and controls the watchdog, a
// process that stops CMD in time. background.go handles processes that outlive CMD.
//
// In this list, to suspend a process means to halt it by SIGSTOP or Ctrl-Z. To stop a process
// means to ask it to exit:
//
//   - The lock is not renewed in time: the watchdog stops CMD one grace period before trust ends,
//     and kills CMD when trust ends.
//   - The lock is lost: the watchdog stops CMD immediately. It kills CMD one grace period later, or
//     when trust ends if that is sooner.
//   - This process is killed: the watchdog kills CMD. If the watchdog did not know CMD yet, the
//     child that should become CMD still waits at the gate (internal/cli/atgate) and exits there.
//   - This process is suspended: the watchdog still stops CMD before trust ends.
//   - The watchdog dies or is suspended: this process prints a message and starts a new watchdog
//     process. If it cannot start one, it runs the watchdog in a goroutine.
//   - This process and the watchdog die or are suspended at the same time: CMD is not stopped in
//     time. But if this process dies on Linux, the kernel kills CMD. It does not kill CMD's
//     children.
//   - The parent of this process ends: by default nothing happens. With --die-with-parent, the
//     watchdog stops CMD, and kills it one grace period later. If this process is suspended, it
//     does not notice the end of its parent. But it does not renew the lock either, so the
//     watchdog stops CMD before trust ends.
//   - CMD is suspended because it uses the terminal in the background: if possible, this process
//     gives the terminal to CMD and continues CMD. If this process does not have the terminal, it
//     suspends its group, so that its parent, such as a shell or another leasehold, gives it.
//   - CMD is suspended by Ctrl-Z: this process suspends itself too. If no shell could continue
//     this process, it continues CMD instead.
//   - CMD ends before processes that it has started: by default the lock stays held until these
//     processes have ended (BackgroundWait).
//
// The child at the gate and the watchdog run this executable again. Both do their work in
// init functions, before the slow initialization of other packages. So each of the two must be
// in a package of its own.
package process
