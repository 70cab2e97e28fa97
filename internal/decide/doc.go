// Package decide contains the client's decisions as pure functions of plain values. For example, it
// decides how long a holder may trust its lock, what an answer of DynamoDB means, and what a waiter
// does next. It reads no clock and sends no request. So table tests, fuzz tests and a model checker
// can test every decision.
//
// In all functions, u is a random number, uniform in [0,1). The parameter left is the time for
// which the holder still trusts the lock. The parameters now and wall are the monotonic time and
// the wall-clock time of the client that decides.
package decide
