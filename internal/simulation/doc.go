// Package simulation runs clients in worlds that misbehave, and checks that the
// promises hold. It contains only tests.
//
//	go test -run '^TestSimulation' ./internal/simulation                         200 seeds of the first world, fewer of others
//	LEASEHOLD_SEEDS=100000 go test -run '^TestSimulation$' ./internal/simulation   more seeds
//	LEASEHOLD_SEED=4711 go test -run '^TestSimulation$' ./internal/simulation      one seed again, with its whole history if it fails
//
// With LEASEHOLD_SHRINK=1 a seed that fails is run again and again without some of its
// faults, until it fails for as few as it can. They are printed with their history, and
// LEASEHOLD_PLAN names them to have those faults alone.
//
// All worlds in rounds, in this directory, where go test shows the totals:
//
//	LEASEHOLD_FIRST=1 LEASEHOLD_FAULTED=200000 go test -timeout 0 -run '^TestSimulationAtScale$'   from seed 1, until so many operations have met a fault
//	LEASEHOLD_FOR=8h go test -timeout 0 -run '^TestSimulationAtScale$'                             new seeds, for so long or until Ctrl-C
//
// An operation is a call of a client, or what a client does by itself, a renewal with
// its repetitions; it is faulted if one of its requests met a fault.
//
// # A run
//
// Two or three clients, each as if in a process of its own, use the real SDK and the
// embedded engine in a bubble of virtual time:
//
//	 0 s   goroutines of each process go through their workload
//	10 s   faults stop; the goroutines come to an end
//	16 s   what was delayed has arrived; a new client acquires every key (liveness)
//	36 s   late copies have arrived; beliefs are compared with each other
//
// A checker records everything that is sent, applied and believed, and reports what breaks
// an invariant of docs/guarantees.md, by the number of the invariant.
//
// # The parts
//
//	seeds      how many, and which; TestSimulation and the others run them
//	scale      all worlds, until enough operations have met a fault
//	tally      the operations, and how many met a fault
//	faults     their names, and the ones that happen
//	shrink     the fewest faults that make a seed fail
//	request    one request of a process, decoded
//	world      how a run differs from the usual one (type world), the run, its report
//	process    one client: its machine, and the life of its goroutines
//	clocks     the clocks of a process: their rates, their jumps, and suspends
//	chance     random numbers, which all depend on the seed
//	network    lost, delayed, repeated and refused requests
//	workloads  locks, once, groups, detach, hands (of an operator), odd, wallclock,
//	           boundedclocks, semaphores, elections, philosophers, load, everything
//	checker    what was sent, applied and believed; checkgrants, checksessions,
//	           checkcommits
//	liveness   free keys are granted in time once faults have stopped
//	replay     what happened, as text, so that two runs of a seed can be compared
//	writes     the writes of each key and their effects, for the models of proof/spec;
//	           written passes them on, and also those of variants that models refuse
//	broken     variants that are broken on purpose, by tamper or by workload
//
// # Why a seed can be replayed
//
// No random number depends on an order that Go's scheduler could change, and each seed has
// a thread to itself. The fate of a request depends on the seed, the goroutine that
// sent it, its operation and keys, and how many such requests came before. Two processes
// never reach the table at one instant, and no two requests are given up at one. The call
// of a worker never begins at the instant at which its last call returned.
// TestSameSeedGivesSameHistory checks all this, with goroutines that yield at random where
// they read the clock, take a random number, send and receive.
//
// One event may wake several goroutines of a client, for example when the turns of a
// group's keys are passed. The first of them to run would get what there is. So each
// continues at an instant that depends on the seed and on its worker: it sleeps where the
// client asks for a random number, which every call does before it looks for its turns
// (process.oneAfterTheOther). The only place where a client asks for one under a mutex is
// its queue of renewals: there no goroutine sleeps.
//
// # Adding a fault
//
// A fault of every network is a case in process.faultOf and in process.meets (network). A
// fault of some networks is a field of troubles, decided by fate.odd, so that the seeds of
// other worlds do not change. If a fault gives up a promise, its world says so, and the
// checker still checks all others. Each fault has a name (faults), and happens only if
// process.happens allows it, so that shrink can leave it out.
//
// # Adding a workload
//
// Write a section: what a goroutine does from acquiring something to its end. Tell the
// checker what is believed (believes), and what was released for good (releasedForGood).
// Call the client with operation or asks, which count the call. Write a function that
// returns the world of a seed and a test that runs it, forSeeds(t, worldSeeds,
// likewise(yourWorld)), and add it to worlds. Then break what the workload is about, and
// list that variant here.
//
// # What it is known to find
//
// Each variant is run until a seed shows the violation; a variant that is not
// found, or not listed here, fails its test.
//
//	broken                                                     found as
//	a guard on the owner alone                                 4
//	a new token for every request                              8
//	a new token for every request, in suspends                 8
//	a guard on the owner alone, where locks break              4
//	a guard of one lock of several, where they do              4
//	a commit that is forgotten where its release fails         8
//	holders without break notices                              16
//	commits that look at no session, while closing             4
//	a damaged row that is read as an instant                   7, 11
//	a grant that is resumed whatever it shows                  any
//	a guard on the owner alone, among everything               4
//	commits without a guard, in pauses                         4
//	clocks that differ by more than is declared                1, 5
//	clocks that are wrong by more than MaxSkew                 1, 7, 11
//	ends that are believed of every version                    1, 7, 11
//	a hand-over to the head that says an end                   1, 7, 11
//	a lease that is over before its watcher has seen it pass   1, 7
//	commits that are fenced by the owner alone                 4, in an election
//	a function that is not waited for                          15
//	a lost term that ends Lead                                 15
//	an observer that reads no more after the first leader      15
//	leaders that ignore requests to step down                  15
//	leaders that obey requests to other grants                 15
//	two for one                                                13
//	a permit that is forgotten                                 12
//	keys one by one, in any order                              12
//	keys one by one, kept when one is refused                  13
//	a grant that does not ask what was done                    17
//	a mark of work that failed                                 17
//	a release that stores no mark                              17
//	a wait that ends by refused credentials                    18
//	a wait that ends by a denial                               18
package simulation
