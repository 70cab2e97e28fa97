// Package stats calculates figures from measurements. All its functions are pure.
package stats
