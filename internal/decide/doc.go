// Package decide holds the client's decisions as pure functions over plain
// values: how long a holder may believe, what a reply means, what a waiter
// does next. Clocks and requests stand outside, so that every decision can be
// tabled, fuzzed and tried by a model.
package decide
