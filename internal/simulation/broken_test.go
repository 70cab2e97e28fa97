package simulation

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/election"
	"github.com/leasehold-go/leasehold/internal/lab"
)

// These tests check that the simulation finds violations. If the simulation could not find
// any violation, its success would prove nothing about the product.

// broken is a variant of the simulation in which the product breaks a promise on purpose.
type broken struct {
	name  string   // name of the variant, as in the list in the package comment
	finds []string // prefixes of violations; some seed must show a violation with one of these prefixes
	run   simulation
}

// rare lists the variants in which only one of dozens of seeds shows a violation. Tests with
// -short leave these variants out.
var rare = []string{
	"a commit that fails because its release fails",
	"a guard on the owner alone, among everything",
	"commits that are fenced by the owner alone",
	"commits that check no session, while closing",
	"commits without a guard, in pauses",
	"keys one by one, kept when one is refused",
}

// areFound runs seeds of each variant until one shows a violation that the variant must cause (see
// broken.finds). The test fails if none of the given number of seeds shows such a violation.
func areFound(t *testing.T, seeds uint64, variants ...broken) {
	t.Helper()
	lab.SkipUnderRace(t, "looks for a broken rule, not for a race")
	page := lab.Must(os.ReadFile("doc.go"))(t)
	for _, v := range variants {
		t.Run(v.name, func(t *testing.T) {
			if testing.Short() && slices.Contains(rare, v.name) {
				t.Skip("takes seconds: runs only without -short")
			}
			if !strings.Contains(string(page), "//	"+v.name+"  ") {
				t.Errorf("doc.go does not list %q", v.name)
			}
			found := ""
			for seed := uint64(1); seed <= seeds && found == ""; seed++ {
				v.run(t, seed, world{report: func(problem string) {
					for _, begins := range v.finds {
						if strings.HasPrefix(problem, begins) {
							found = fmt.Sprintf("seed %d: %s", seed, problem)
						}
					}
				}})
			}
			if found == "" {
				t.Errorf("no violation of %v in %d seeds", v.finds, seeds)
			}
			t.Log(found)
		})
	}
}

// tampered returns a simulation in which the function tamper edits each request before the
// request reaches the table.
func tampered(tamper func(*http.Request, []byte) []byte, run simulation) simulation {
	return func(t *testing.T, seed uint64, w world) {
		w.tamper = tamper
		run(t, seed, w)
	}
}

// misread returns a simulation in which the function change edits each reply before the
// reply reaches the client.
func misread(change func([]byte) []byte, run simulation) simulation {
	return func(t *testing.T, seed uint64, w world) {
		w.misread = change
		run(t, seed, w)
	}
}

// replacing returns a function that replaces every occurrence of a text in a request or a
// reply with another text.
func replacing(text, by string) func([]byte) []byte {
	return func(body []byte) []byte { return bytes.ReplaceAll(body, []byte(text), []byte(by)) }
}

func TestSimulationCatchesBrokenCommits(t *testing.T) {
	areFound(t, 500,
		broken{"a guard on the owner alone", []string{"invariant 4"}, tampered(guardOnOwnerAlone, simulate)},
		broken{"a new token for every request", []string{"invariant 8"}, tampered(newTokenEveryTime, simulate)},
	)
}

func TestSimulationCatchesBrokenClientsUnderUnusualFaults(t *testing.T) {
	areFound(t, 500,
		broken{"a new token for every request, in suspends", []string{"invariant 8"}, tampered(newTokenEveryTime, likewise(suspends))},
		broken{"a guard on the owner alone, where locks break", []string{"invariant 4"}, tampered(guardOnOwnerAlone, likewise(breaking))},
		broken{"a guard of one lock of several, where locks break", []string{"invariant 4"}, tampered(guardedByOne, likewise(breaking))},
		broken{"a commit that fails because its release fails", []string{"invariant 8"}, likewise(func(_ uint64) world {
			return world{work: func(c *process, r *worker) { c.twiceBy(r, commitThenRelease) }}
		})},
		broken{"holders without break notices", []string{"invariant 16:"}, misread(replacing(`"brokenGrants"`, `"unheard"`), likewise(breakingShared))},
		broken{"commits that check no session, while closing", []string{"invariant 4"}, tampered(guardedByNoSession, likewise(closing))},
		broken{"a damaged lease that is read as 1 ms", []string{"invariant 7:", "invariant 11:"}, misread(replacing(`{"S":"`+unreadable+`"}`, `{"S":"1"}`), likewise(damage))},
		broken{"a grant that is resumed whatever it shows", []string{"invariant"}, tampered(renewedWhateverItShows, likewise(detaching))},
	)
}

// commitThenRelease takes the place of CommitAndRelease. It first commits and then releases, and
// joins the two errors.
//
//nolint:revive // the parameters are in the order of the method expression that it replaces
func commitThenRelease(g *leasehold.Group, ctx context.Context, writes []types.TransactWriteItem, opts ...leasehold.ReleaseOption) error {
	return errors.Join(g.Commit(ctx, writes), g.Release(ctx, opts...))
}

func TestSimulationCatchesBrokenGuards(t *testing.T) {
	// The function "meeting" returns the simulation "run" with f as the only kind of fault.
	meeting := func(f fault, run simulation) simulation {
		return func(t *testing.T, seed uint64, w world) {
			w.kinds = []fault{f}
			run(t, seed, w)
		}
	}
	areFound(t, 500,
		broken{"a guard on the owner alone, among everything", []string{"invariant 4"}, tampered(guardOnOwnerAlone, simulateEverything)},
		broken{"commits without a guard, in pauses", []string{"invariant 4"}, meeting(pause, tampered(unguarded, simulateEverything))},
	)
}

func TestSimulationCatchesExcessiveClockSkewAndClockJumps(t *testing.T) {
	areFound(t, 500,
		broken{"clocks that differ by more than MaxSkew", []string{"invariant 1:", "invariant 5:"}, skewedBy(3 * time.Second)},
		broken{"a lease that is over before its watcher has seen it pass", []string{"invariant 1:", "invariant 7:"}, likewise(func(_ uint64) world {
			return world{work: leaping}
		})},
	)
}

// leaping moves the clocks of the process ahead in a third of the cases, and calls the method
// section in the others.
func leaping(c *process, r *worker) {
	if r.IntN(3) == 0 {
		c.clocks.leap(upTo(r, 10*time.Second))
	} else {
		c.section(r)
	}
}

func TestSimulationCatchesBrokenElections(t *testing.T) {
	elections := func(plan electionPlan) simulation {
		return func(t *testing.T, seed uint64, w world) {
			plan.world = w
			simulateElections(t, seed, plan)
		}
	}
	areFound(t, 500,
		broken{"commits that are fenced by the owner alone", []string{"invariant 4"}, tampered(guardOnOwnerAlone, elections(electionPlan{}))},
		broken{"a function that is not waited for", []string{"invariant of elections: 2 functions run at once"}, elections(electionPlan{lead: leadImpatiently})},
		broken{"a lost term that ends Lead", []string{"invariant of elections: Lead of process"}, elections(electionPlan{lead: leadOnce})},
		broken{"an observer that reads no more after the first leader", []string{"invariant of elections: process"}, elections(electionPlan{observe: observeOnce})},
		broken{"leaders that ignore requests to step down", []string{"invariant of elections: process"}, misread(replacing(`"stepDown"`, `"unheard"`), elections(electionPlan{}))},
		broken{"leaders that obey requests to other grants", []string{"invariant of elections: process"}, misread(askedOfAll, elections(electionPlan{}))},
	)
}

// leadImpatiently is a broken Lead. After the loss of a term, it campaigns again while the
// function of the lost term still runs.
func leadImpatiently(ctx context.Context, e *election.Election, value string, fn leads) error {
	for {
		term, err := e.Campaign(ctx, value)
		if err != nil {
			return err
		}
		done := make(chan error, 1)
		go func() { done <- term.Do(ctx, fn) }()
		select {
		case err := <-done:
			return err
		case <-term.Context().Done():
			if !errors.Is(term.Err(), leasehold.ErrLost) {
				return <-done
			}
		}
	}
}

// leadOnce is a broken Lead. After the loss of a term, it returns instead of campaigning again.
func leadOnce(ctx context.Context, e *election.Election, value string, fn leads) error {
	term, err := e.Campaign(ctx, value)
	if err != nil {
		return err
	}
	return term.Do(ctx, fn)
}

func observeOnce(ctx context.Context, e *election.Election) iter.Seq2[election.Leader, error] {
	return func(yield func(election.Leader, error) bool) {
		for l, err := range e.Observe(ctx) {
			if !yield(l, err) || err == nil && l != (election.Leader{}) {
				return
			}
		}
	}
}

func TestSimulationCatchesBrokenSemaphores(t *testing.T) {
	taking := func(take permitManners) simulation {
		return func(t *testing.T, seed uint64, w world) { simulateSemaphore(t, seed, w, take) }
	}
	areFound(t, 200,
		broken{"two permits for one call", []string{"invariant 13:"}, taking(twoForOne)},
		broken{"a permit that is forgotten", []string{"invariant 12:"}, taking(forgotten)},
	)
}

func twoForOne(ctx context.Context, c *leasehold.Client, keys []leasehold.Key, opts ...leasehold.AcquireOption) (*leasehold.Lock, error) {
	if _, err := c.AcquireAny(ctx, keys, opts...); err != nil {
		return nil, err
	}
	return c.AcquireAny(ctx, keys, opts...)
}

func forgotten(ctx context.Context, c *leasehold.Client, keys []leasehold.Key, _ ...leasehold.AcquireOption) (*leasehold.Lock, error) {
	if _, err := c.AcquireAny(ctx, keys, leasehold.NoWait()); err != nil {
		return nil, err
	}
	return nil, errors.New("forgotten")
}

func TestSimulationCatchesBrokenDiningPhilosophers(t *testing.T) {
	dining := func(take manners) simulation {
		return func(t *testing.T, seed uint64, w world) { dine(t, seed, w, take) }
	}
	areFound(t, 10,
		broken{"keys one by one, in any order", []string{"invariant 12:"}, dining(oneByOne(true))},
		broken{"keys one by one, kept when one is refused", []string{"invariant 13:"}, dining(oneByOne(false))},
	)
}

// oneByOne returns a function that acquires keys in the given order. While it waits for a key, it
// holds the earlier keys. If it cannot acquire a key, it releases the earlier keys, or keeps them
// if "releases" is false.
func oneByOne(releases bool) manners {
	return func(ctx context.Context, c *leasehold.Client, keys []leasehold.Key, opts ...leasehold.AcquireOption) ([]*leasehold.Lock, func(context.Context) error, error) {
		var locks []*leasehold.Lock
		release := func(ctx context.Context) (err error) {
			for _, lock := range locks {
				err = errors.Join(err, lock.Release(ctx))
			}
			return err
		}
		for _, key := range keys {
			lock, err := c.Acquire(ctx, key.Partition, opts...)
			if err != nil {
				if releases {
					_ = release(ctx)
				}
				return nil, nil, err
			}
			locks = append(locks, lock)
		}
		return locks, release, nil
	}
}

// askedOfAll changes a reply that contains the attribute stepDown, a request to step down. The
// request then applies to the record's current grant, even if it applied to an earlier grant.
func askedOfAll(body []byte) []byte {
	var reply map[string]map[string]json.RawMessage
	if json.Unmarshal(body, &reply) != nil {
		return body
	}
	for _, item := range reply {
		if grant := item["grantId"]; grant != nil && item["stepDown"] != nil {
			item["stepDown"] = fmt.Appendf(nil, `{"M":{"grantId":%s}}`, grant)
			if changed, err := json.Marshal(reply); err == nil {
				return changed
			}
		}
	}
	return body
}
