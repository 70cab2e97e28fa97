//go:build !unix

// Package atgate is empty here: no process can become another.
package atgate
