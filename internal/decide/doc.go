// Package decide contains the client's decisions as pure functions over plain
// values: how long a holder may trust its lock, what an answer means, what a
// waiter does next. It reads no clock and sends no request, so every decision can
// be tested by tables, by fuzzing and by a model.
package decide
