// Package wording is how the command puts values into words: durations, times, sizes,
// counts, names of keys, sentences that fit a terminal. Each is a pure function of its
// arguments; what others wrote goes through internal/visible first. It knows no stream,
// no flag and no message.
package wording
