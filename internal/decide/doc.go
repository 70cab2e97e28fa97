// Package decide contains the client's decisions as pure functions of plain values. For
// example, it decides how long a holder may trust its lock, what an answer of DynamoDB
// means, and what a waiter does next. It reads no clock and sends no request. So table
// tests, fuzz tests and a model checker can test every decision.
package decide
