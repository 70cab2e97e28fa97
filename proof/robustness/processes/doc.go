//go:build linux

// Package processes tests locks with real processes that contend for them. It kills and
// suspends the processes, and breaks the network, the server or the disk that they use. The
// processes write a journal. From the journal, the package decides whether the lock kept its
// promises. A worker believes that it holds a key as long as the methods of its lock report no
// loss.
//
//	crew     worker processes; when a process ends, a new process replaces it
//	worker   one process: acquires keys, checks its locks, makes fenced writes, releases the keys
//	command  program CMD that "leasehold run" starts
//	journal  the log to which all processes append, with times by the machine's boot clock
//	Verify   checks what the workers believed and wrote; a pure function of the journal
package processes
