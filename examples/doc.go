// Package examples contains example programs. Each runs from a clone of the repository,
// unchanged, with AWS or without it. For example, without AWS:
//
//	go run ./cmd/leasehold local -- go run ./examples/hello
//
// The first lines of each program contain the command that runs it.
//
//	hello        runs a function under a lock
//	cron         writes a report once a day, on the host that starts first
//	customers    at most one worker for each customer; Commit writes only while the lock is held
//	election     one of several processes leads
//	processes    three processes contend for one lock, and its holder is killed
//	dynamolock   moves from dynamolock to leasehold, host by host
//
// Package leasehold has an example of each call. These examples also run as tests.
package examples
