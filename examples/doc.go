// Package examples is a folder of programs. Each runs in a clone, without AWS, and runs with
// AWS as it is:
//
//	go run ./cmd/leasehold local -- go run ./examples/hello
//
// Each program's first lines have its command.
//
//	hello        a function under a lock
//	cron         a report once a day, whichever host comes first
//	customers    a worker for each customer; Commit writes only while the lock is held
//	election     one of several processes leads
//	processes    three processes want one lock, and its holder is killed
//	dynamolock   from dynamolock to leasehold, host by host
//
// Package leasehold has an example of each call, which also runs as a test.
package examples
