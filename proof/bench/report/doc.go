//go:build linux

// Package report shows what a contest has measured: tables for people, pictures, and
// the page of the documentation between its markers.
package report
