//go:build linux

// Package processes tests locks with real processes that contend for them. It kills and
// suspends the processes, and breaks the network, the server or the disk that they use. The
// processes write a journal. From the journal, the package decides whether the lock kept its
// promises. A worker believes that it holds a key as long as its lock reports that it is held.
//
//	crew     worker processes; a new process replaces one that has ended
//	worker   one process: acquires, believes, makes fenced writes, releases
//	command  CMD of a leasehold run
//	journal  the log to which all processes append, with times by the machine's boot clock
//	Verify   checks beliefs and writes; a pure function of the journal
package processes
