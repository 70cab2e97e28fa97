//go:build linux

// Package report writes the results of a contest: tables for people, pictures, and the page
// of the documentation between its markers.
package report
