//go:build !unix

// Package atgate is empty on this operating system, which has no execve(2): a process
// cannot replace itself by another program.
package atgate
