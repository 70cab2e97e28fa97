//go:build linux

// Package report writes the results of a contest as tables and as pictures. It also writes
// the tables to a page of the documentation, between two markers.
package report
