// Package wording formats values for users: durations, times, sizes, counts, names of keys,
// sentences that fit a terminal. Each function is a pure function of its arguments. Text
// from other users goes through internal/visible first. The package knows no stream, no
// flag and no message.
package wording
