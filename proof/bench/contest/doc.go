//go:build linux

// Package contest compares lock libraries.
//
//	scenario.go    the list of scenarios, and the columns of the tables
//	contender.go   a library and its settings: the defaults, or tuned
//	fleet.go       the clients of a contender, in processes of their own
//	contention.go  cycle.go  hold.go  takeover.go  held.go   the course of each scenario
//	contest.go     rounds: a round runs every scenario with every contender
//	result.go      the measurements
//
// Every contender, including leasehold, runs in processes of its own. The contest sends
// requests to these processes by the line protocol of proof/interop/README.md, and measures
// when the replies arrive. To add other settings of leasehold, add an entry to Contenders.
// If they need an option of Config that peers.Settings lacks, also add a field there.
package contest
