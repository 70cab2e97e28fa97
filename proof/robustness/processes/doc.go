//go:build linux

// Package processes has real processes contend for locks while it kills them, pauses them,
// and breaks the network, the server or the disk below them. It decides from the journal
// that they write whether the lock kept its promises.
//
//	crew     worker processes, restarted whenever they are killed
//	worker   one process: acquires, believes, writes under the fence, releases
//	command  CMD of a leasehold run
//	journal  the one log that all append to, by the one clock of the machine
//	Verify   checks beliefs and writes: a function of the journal
package processes
