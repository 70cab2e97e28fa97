//go:build !unix

// Package atgate is empty on this system, where a process cannot execute another program in
// its own place.
package atgate
