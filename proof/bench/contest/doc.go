//go:build linux

// Package contest plays lock libraries against each other.
//
//	scenario.go    what is played, and which figures come of it
//	contender.go   a library and how it is set: by default, or tuned
//	fleet.go       the clients of a contender, in processes of its own
//	contention.go  cycle.go  hold.go  takeover.go  held.go   the scenarios
//	contest.go     rounds: every scenario, every contender, in turn
//	result.go      what was measured
//
// Every contender, ours too, runs in processes of its own behind the line protocol
// of proof/interop/README.md, and is measured from this side of it. One more way to set ours
// is one more entry of Contenders, and for an option of Config that none has used yet, a
// field of peers.Settings.
package contest
