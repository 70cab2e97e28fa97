// Package stats calculates statistics of measurements. Its functions have no side effects.
package stats
