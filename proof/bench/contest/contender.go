//go:build linux

package contest

import (
	"slices"
	"time"

	"github.com/leasehold-go/leasehold/proof/interop/peers"
)

// Contender is a lock library with the settings under which the benchmark runs it.
type Contender struct {
	Name string // name of the contender in the tables of results
	How  string // description of the settings, and the reason for them

	peer     peers.Peer
	settings func(Scenario) peers.Settings
	// perProcess is the number of clients in one process. It is the largest number at which
	// the clients do not slow each other down.
	perProcess int
	// reuses means that a client acquires the same key again with the same lock object of
	// the library. If reuses is false, the client makes a new object for each acquire.
	reuses bool
	// split limits the number of locks per client: more locks need more clients. Zero means no limit.
	split int
	// quiet means that each waiting client polls at most once a second. The benchmark may
	// run several quiet contenders at the same time.
	quiet bool
	// absent returns the reason why the contender does not take part in a scenario, or ""
	// if it takes part.
	absent func(Scenario) string
}

// Values of perProcess: "many" is for goroutines and Java threads, which run in parallel, and "few"
// is for Python, whose threads take turns in one interpreter.
const (
	many = 64
	few  = 8
)

const (
	defaultLease  = 20 * time.Second
	defaultRenew  = 5 * time.Second
	shortestLease = 2 * time.Second
)

// Contenders returns all contenders, leasehold first, in the order of the rows in the
// tables.
func Contenders() []Contender {
	return []Contender{
		ours("ours", "Config as it is", func(Scenario) peers.Settings {
			return peers.Settings{Lease: defaultLease, Heartbeat: defaultRenew}
		}, nil),
		ours("ours, tuned", "takeover: a lease of 2 s; many locks: SharedLease, and 128 connections", func(s Scenario) peers.Settings {
			switch s.kind {
			case takingOver:
				return peers.Settings{Lease: shortestLease, Heartbeat: shortestLease / 4}
			case holding:
				return peers.Settings{Lease: defaultLease, Heartbeat: defaultRenew, Shared: true, Connections: 128}
			}
			return peers.Settings{Lease: defaultLease, Heartbeat: defaultRenew}
		}, asByDefault(cycling, contending, sharing, waiting)),
		{
			Name: "Java", How: "its options as they are: a lease of 20 s, a question each second", peer: peers.AWSLabsServer, perProcess: many, quiet: true,
			settings: func(Scenario) peers.Settings { return peers.Settings{Lease: defaultLease, Heartbeat: defaultRenew} },
		},
		{
			Name: "Java, tuned", How: "refreshPeriod of 5 ms for each client that contends; takeover: a lease of 2 s, 50 ms; many locks: a client, and so a thread that renews, for each 625", peer: peers.AWSLabsServer, perProcess: many, split: 625,
			settings: func(s Scenario) peers.Settings { return tuned(s, 5*time.Millisecond) },
			absent:   asByDefault(cycling),
		},
		{
			Name: "python-dynamodb-lock", How: "as it is: a lease of 30 s, a question every 5 s", peer: peers.PythonDynamoDBLock, perProcess: few, quiet: true,
			settings: func(Scenario) peers.Settings { return peers.Settings{Lease: 30 * time.Second, Heartbeat: defaultRenew} },
			absent:   tenThousand,
		},
		{
			Name: "python-dynamodb-lock, tuned", How: "retry_period of 10 ms for each client that contends; the rest as Java, tuned", peer: peers.PythonDynamoDBLock, perProcess: few, split: 625,
			settings: func(s Scenario) peers.Settings { return tuned(s, 10*time.Millisecond) },
			absent:   either(asByDefault(cycling), tenThousand),
		},
		{
			Name: "dynamo-dlm", How: "as in its README: a new object for each section, leases of 10 s that are not renewed", peer: peers.DynamoDLM, perProcess: few,
			settings: func(Scenario) peers.Settings { return peers.Settings{Lease: 10 * time.Second} },
			absent:   either(noRenewal, noClient, spins),
		},
		{
			Name: "dynamo-dlm, tuned", How: "one object for all sections of a client, since a new one makes a new client of DynamoDB; takeover: a lease of 2 s, which no section may outlast", peer: peers.DynamoDLM, perProcess: few, reuses: true,
			settings: withoutRenewal(10*time.Second, 0),
			absent:   either(noRenewal, noClient, spins),
		},
		{
			Name: "dyndb-mutex", How: "as in its README: a new object for each section, leases of 30 s that are not renewed", peer: peers.DyndbMutex, perProcess: few,
			settings: func(Scenario) peers.Settings { return peers.Settings{Lease: 30 * time.Second} },
			absent:   either(noRenewal, noClient, doesNotWait),
		},
		{
			Name: "dyndb-mutex, tuned", How: "one object for all sections of a client; its user asks again every 10 ms for each client that contends; takeover: a lease of 2 s, which no section may outlast, 50 ms", peer: peers.DyndbMutex, perProcess: few, reuses: true,
			settings: withoutRenewal(30*time.Second, 10*time.Millisecond),
			absent:   either(noRenewal, noClient),
		},
		{
			Name: "dynamolock", How: "as it is: a lease of 20 s, a question each second", peer: peers.Dynamolock, perProcess: 1, quiet: true,
			settings: func(Scenario) peers.Settings { return peers.Settings{Lease: defaultLease, Heartbeat: defaultRenew} },
		},
		{
			Name: "dynamolock, tuned", How: "as Java, tuned", peer: peers.Dynamolock, perProcess: 1,
			settings: func(s Scenario) peers.Settings { return tuned(s, 5*time.Millisecond) },
			absent:   asByDefault(cycling),
		},
	}
}

func ours(name, how string, settings func(Scenario) peers.Settings, absent func(Scenario) string) Contender {
	return Contender{Name: name, How: how, peer: peers.Ours("native"), perProcess: many, settings: settings, absent: absent}
}

// tuned returns settings that suit a scenario. Each waiter pauses between its polls for "share"
// times the number of clients. All waiters together then poll once per "share" on average. Without
// these pauses, the polls alone would keep two processors busy.
func tuned(s Scenario, share time.Duration) peers.Settings {
	set := peers.Settings{Lease: defaultLease, Heartbeat: defaultRenew}
	switch s.kind {
	case contending, sharing, waiting:
		set.Poll = share * time.Duration(s.clients)
	case takingOver:
		set = peers.Settings{Lease: shortestLease, Heartbeat: shortestLease / 4, Poll: 50 * time.Millisecond}
	}
	return set
}

// withoutRenewal returns a variant of tuned for a library that does not renew leases. So the lease
// must exceed the longest time for which a client holds the key. The argument share is 0 if the
// library's pauses cannot be configured.
func withoutRenewal(lease, share time.Duration) func(Scenario) peers.Settings {
	return func(s Scenario) peers.Settings {
		set := tuned(s, share)
		set.Heartbeat = 0
		if share == 0 {
			set.Poll = 0
		}
		if s.kind != takingOver {
			set.Lease = lease
		}
		return set
	}
}

// The following functions return values for Contender.absent.

func either(reasons ...func(Scenario) string) func(Scenario) string {
	return func(s Scenario) string {
		for _, reason := range reasons {
			if why := reason(s); why != "" {
				return why
			}
		}
		return ""
	}
}

func asByDefault(kinds ...kind) func(Scenario) string {
	return func(s Scenario) string {
		if slices.Contains(kinds, s.kind) {
			return "there is nothing to tune: it is as by default"
		}
		return ""
	}
}

func noRenewal(s Scenario) string {
	if s.kind == holding {
		return "it does not renew what it holds"
	}
	return ""
}

func noClient(s Scenario) string {
	if s.kind == sharing {
		return "it has no clients that callers could share: they contend as processes do"
	}
	return ""
}

func doesNotWait(s Scenario) string {
	if s.kind != cycling {
		return "it does not wait: how often its user asks again is no default of its own"
	}
	return ""
}

func spins(s Scenario) string {
	if s.kind == contending && s.clients > 16 || s.kind == waiting {
		return "its waiters write again and again without a pause: so many use up both processors, and what is measured is the machine"
	}
	return ""
}

func tenThousand(s Scenario) string {
	if s.kind == holding && s.clients > 1000 {
		return "to acquire them takes minutes: Python sends a few hundred requests a second"
	}
	return ""
}
