package simulation

import (
	"fmt"
	"hash/fnv"
	"os"
	"slices"
	"strings"
	"time"
)

// fault is a kind of failure that a request, a process or the table meets in a
// run.
type fault string

// Faults that a request meets.
const (
	none          fault = ""
	inCrash       fault = "request of a process that has died"
	inPartition   fault = "request lost in a partition"
	inSuspend     fault = "request lost in a suspend"
	inOutage      fault = "server error in an outage"
	hotKey        fault = "throttled, one key"
	denied        fault = "access denied"
	deniedAfter   fault = "access denied, after the request was applied"
	requestLost   fault = "request lost"
	resetBefore   fault = "connection reset, request lost"
	replyLost     fault = "reply lost"
	resetAfter    fault = "connection reset, reply lost"
	requestLate   fault = "request late"
	replyLate     fault = "reply late"
	repeated      fault = "request repeated"
	repeatedMuch  fault = "request repeated minutes later"
	throttledOnce fault = "throttled"
	conflict      fault = "conflict with a transaction"
	serverError   fault = "server error"
	unavailable   fault = "server error, after the request was applied"
	expired       fault = "expired credentials"
	noCredentials fault = "no credentials to be had"
	hotTable      fault = "throttled, the table"
	inPause       fault = "request held up in a pause"
	expiredAWhile fault = "expired credentials, for a while"
	unknownAWhile fault = "unknown credentials, for a while"
	deniedAWhile  fault = "access denied, for a while"
)

// Faults that a process or the table meets.
const (
	crash     fault = "crash"
	partition fault = "partition begins"
	bootJumps fault = "suspend that nobody has noticed"
	wallSet   fault = "wall clock set"
	suspend   fault = "suspend"
	pause     fault = "pause"
	outage    fault = "outage begins"
	broke     fault = "lock broken by an operator"
	deleted   fault = "record deleted by hand"
	collected fault = "record deleted by TTL"
	spoiled   fault = "row damaged by hand"
	misled    fault = "wrong advice on a queue"
)

// injected is a fault that happened in a run. It has the same id in every run of its
// seed in which it happens, even if the other faults of the runs differ.
type injected struct {
	id    string
	fault fault
	to    string
	at    time.Duration
}

func (i injected) String() string { return fmt.Sprintf("%s  %v  %s: %s", i.id, i.at, i.fault, i.to) }

// happens reports whether the fault f should happen, and records it if so. If the run has
// a plan, only faults whose id is in the plan happen.
func (s *run) happens(f fault, to string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.happensTo(f, to)
}

// happensTo does what happens does. The caller must hold s.mu.
func (s *run) happensTo(f fault, to string) bool {
	h := fnv.New32a()
	_, _ = fmt.Fprintln(h, f, to)
	id := fmt.Sprintf("%08x", h.Sum32())
	if s.plan.only != nil && !slices.Contains(s.plan.only, id) || s.plan.kinds != nil && !slices.Contains(s.plan.kinds, f) {
		return false
	}
	s.faults = append(s.faults, injected{id, f, to, time.Since(s.began)})
	s.tally.Faults[f]++
	return true
}

// planned returns the ids of the faults that the environment variable
// LEASEHOLD_PLAN lists. It returns nil, which means all faults, if the variable
// is not set.
func planned() []string {
	if ids, ok := os.LookupEnv("LEASEHOLD_PLAN"); ok {
		return strings.FieldsFunc(ids, func(r rune) bool { return r == ',' })
	}
	return nil
}
