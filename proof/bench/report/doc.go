//go:build linux

// Package report writes the results of a contest as tables and as SVG pictures. It also
// inserts the tables into docs/internals/performance.md, between two markers.
package report
