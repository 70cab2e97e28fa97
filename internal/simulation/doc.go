// Package simulation runs lock clients in simulated worlds. A world is a table, a workload and
// the faults of the network, of clocks and of processes that may happen. A seed determines all
// random choices of a run. The package checks that every promise of the library holds. It
// contains only tests.
//
//	go test -run '^TestSimulation' ./internal/simulation                                                  200 seeds of the first world, fewer seeds of each other world
//	LEASEHOLD_SEEDS=100000 go test -run '^TestSimulationOfLocksFindsNoViolation$' ./internal/simulation   more seeds
//	LEASEHOLD_SEED=4711 go test -run '^TestSimulationOfLocksFindsNoViolation$' ./internal/simulation      one seed; prints its history if it fails
//
// With LEASEHOLD_SHRINK=1 the test runs a failing seed again with fewer and fewer faults, until
// every remaining fault is necessary for the failure. The test prints these faults and the history
// of the run. To run the seed with only these faults, list them in LEASEHOLD_PLAN.
//
// The following commands run all worlds, in rounds. Run them in this directory, without a package
// argument: go test with a package argument does not show the totals of a run that passes.
//
//	LEASEHOLD_FIRST=1 LEASEHOLD_FAULTED=100000 go test -timeout 0 -run '^TestSimulationAtScaleFindsNoViolation$'   from seed 1, until 100,000 operations have met a fault
//	LEASEHOLD_FOR=8h go test -timeout 0 -run '^TestSimulationAtScaleFindsNoViolation$'                             new seeds, for 8 hours or until Ctrl-C
//
// An operation is a call of a client, or something that a client does by itself, such as a
// renewal with its retries. An operation is faulted if one of its requests met a fault.
//
// # A run
//
// Two or three clients behave like separate processes. They use the real SDK and the
// embedded engine, in a bubble of virtual time:
//
//	 0 s   the goroutines of each process begin their workload
//	10 s   faults stop; the goroutines end
//	16 s   all delayed requests have arrived; a new client acquires every key (liveness)
//	36 s   the last copies of requests have arrived; the checker compares the beliefs of all clients with each other
//
// A checker records every request that is sent, every write that is applied, and what each
// client believes about its locks. It reports each violation of an invariant of
// docs/guarantees.md with the number of that invariant.
//
// # The files
//
// The names below omit the ending _test.go.
//
//	seeds      which seeds TestSimulationOfLocksFindsNoViolation and the other tests run, and
//	           how many; the history of a run as text, so that two runs of a seed can be
//	           compared (type history); finds the fewest faults that make a seed fail (shrink)
//	scale      runs all worlds until enough operations have met a fault
//	tally      counts all operations and the operations that met a fault; gives the histories
//	           of runs to the models of proof/spec, and also histories that the models must refuse
//	faults     names the faults, and chooses those of a run; decodes a request (type request)
//	world      the configuration of a run (type world); the run and its report
//	process    one client: its machine, and what its goroutines do
//	chance     random numbers, which all depend on the seed
//	network    lost, delayed, repeated and refused requests
//	workloads  locks, once, groups (also Detach and Resume), hands (what operators do), odd
//	           (unusual networks, suspends, Close, outages), wallclock, boundedclocks (also
//	           the clocks of a process: type clocks), philosophers (also semaphores),
//	           elections, refusals, everything
//	checker    records requests, writes and beliefs; checkgrants checks changes of records, and
//	           tamper checks commits; locks checks that free keys are granted in time once faults
//	           have stopped (checkLiveness)
//	writes     lists the writes to each key and their effects, for the models of proof/spec
//	broken     variants of the library or of a workload that are broken on purpose; tamper
//	           contains the functions that change requests for these variants
//
// # Why a seed can be replayed
//
// The order in which Go's scheduler runs goroutines does not affect any random number. The test
// binary runs one seed at a time, on one thread (type tests). What happens to a request depends
// only on the seed, the goroutine that sent the request, the operation and the keys of the request,
// and the number of equal requests before it. No two processes reach the table at the same instant,
// and no two cancelled requests return at the same instant. No call of a worker begins at the
// instant at which the worker's last call returned. TestSameSeedGivesSameHistory checks that a seed
// always has the same history. In that test, goroutines yield to Go's scheduler at random where
// they read the clock, draw a random number, send or receive, so that the scheduler runs them in
// another order each time.
//
// One event may wake several goroutines of a client. For example, a group releases several keys for
// which goroutines wait in local queues. Without a delay, the scheduler would decide which of these
// goroutines acquires a key first. So each goroutine first sleeps for a time that depends on the
// seed and on its worker (process.staggerWakeups). It sleeps when it draws a random number, which
// every call does before it checks its local queue. Package renewals draws random numbers without
// this sleep, because it holds a mutex then.
//
// # Adding a fault
//
// A fault that can happen in every world is a case in process.faultOf and in process.meets (file
// network). A fault that happens only in some worlds is a field of troubles. The random number
// fate.odd decides whether such a fault happens. This number is drawn in every world, so a new fault
// does not change the runs of other worlds. If a promise does not hold under a fault, the checker
// skips that promise in the worlds with the fault, and checks all others. Each fault has a name
// (file faults). A fault happens only if process.happens returns true, so that shrink can leave out
// the fault.
//
// # Adding a workload
//
// Write a section: a function that acquires a lock, works under it and releases it. The section
// tells the checker that the client begins to trust a lock (believes), and that a Release of
// the lock returned nil (releasedForGood). Before each call of the client, the section calls
// operation or asks, which count the calls. The methods acquires and frees do all this for one
// key. Write a function that returns the world of a seed, and add it to worlds. Write a test that
// runs the world: forSeeds(t, worldSeeds, likewise(yourWorld)). Then write a variant that breaks
// the property that the workload tests, and list the variant here.
//
// # Which defects it finds
//
// Each variant below is broken on purpose. Its test runs seeds until one shows a violation.
// The second column contains the numbers of the invariants (docs/guarantees.md) of which one
// must be violated. The test fails if no seed shows a violation, or if this list lacks the
// variant. In the names of variants, "whatever it shows" means: whatever version the grant's record
// shows.
//
//	broken                                                     found as
//	a guard on the owner alone                                 4
//	a new token for every request                              8
//	a new token for every request, in suspends                 8
//	a guard on the owner alone, where locks break              4
//	a guard of one lock of several, where locks break          4
//	a commit that fails because its release fails              8
//	holders without break notices                              16
//	commits that check no session, while closing               4
//	a damaged lease that is read as 1 ms                       7, 11
//	a grant that is resumed whatever it shows                  any
//	a guard on the owner alone, among everything               4
//	commits without a guard, in pauses                         4
//	clocks that differ by more than MaxSkew                    1, 5
//	clocks that are wrong by more than MaxSkew                 1, 7, 11
//	lease ends that count for every version                    1, 7, 11
//	a hand-over to the head that stores a lease end            1, 7, 11
//	a lease that is over before its watcher has seen it pass   1, 7
//	commits that are fenced by the owner alone                 4, in an election
//	a function that is not waited for                          15
//	a lost term that ends Lead                                 15
//	an observer that reads no more after the first leader      15
//	leaders that ignore requests to step down                  15
//	leaders that obey requests to other grants                 15
//	two permits for one call                                   13
//	a permit that is forgotten                                 12
//	keys one by one, in any order                              12
//	keys one by one, kept when one is refused                  13
//	a grant that ignores the done mark                         17
//	a mark of work that failed                                 17
//	a release that stores no mark                              17
//	a wait that ends by refused credentials                    18
//	a wait that ends by a denial                               18
package simulation
