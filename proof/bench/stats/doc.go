// Package stats has what is worked out from what was measured: pure functions.
package stats
