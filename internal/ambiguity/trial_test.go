package ambiguity

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/smithy-go"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/lab"
)

const (
	lease   = 20 * time.Second // the default lease
	patient = 8 * time.Second  // how long a caller waits by default
)

// operation is an operation of a client. In a trial, the first requests of the operation
// receive fates.
type operation struct {
	name  string
	about string                  // description of the call, printed before the operation's table
	cfg   func() leasehold.Config // returns the configuration of the client; nil for lab.Config
	fits  func(lab.Call) bool     // reports whether a request may receive a fate

	// prepare makes the calls that must precede the operation. It returns the
	// function that runs the operation.
	prepare func(x *trial) func() error
	// overtake writes as another client, so that the condition of request r fails.
	overtake func(x *trial, r *lab.Request)
	// shows describes in words what the table contains. For a key that can be held, the
	// description includes the holder.
	shows func(x *trial) string
	// ask makes another client acquire the keys on which the operation acts. If ask is
	// nil, another client acquires the key "job".
	ask func(ctx context.Context, x *trial) (*leasehold.Lock, func() error, error)

	acquires bool          // the client holds a lock after the operation if and only if the operation returned nil
	frees    bool          // if the operation returned nil, the client holds no lock afterwards
	writes   bool          // the result of shows begins with the number of writes; the trial checks that part, and not the holder
	breaks   bool          // two clients may trust their locks of the key after the operation; the check allows this
	patient  time.Duration // how long the caller waits; zero means the constant patient (8 s)
}

// trial is one run of an operation. The simulated network gives fates to the
// operation's first requests.
type trial struct {
	*lab.World
	op     *operation
	c      *leasehold.Client // client that runs the operation, and whose requests receive the fates
	wire   *lab.Wire
	other  *leasehold.Client // client of a second process, whose requests meet no faults
	thief  *leasehold.Client // client of a third process, whose requests meet no faults
	only   []byte            // only requests that contain these bytes receive a fate; empty for all requests
	others int               // number of direct writes in the name of thief; each write stores this number, so no two are equal

	mu         sync.Mutex
	armed      bool   // the operation is running, so its requests receive fates
	fates      []fate // fates of the operation's first requests
	next       int    // index of the next fate
	silent     bool   // the fate silence has begun: all further requests are lost
	unanswered bool   // some request of the operation was not answered

	locks []*leasehold.Lock // locks that the caller received from the client, and may trust
	note  string            // results of the operation that the caller saw besides the returned error
	// term is the lock of another process that leads an election until it is asked to step
	// down. It is nil if no other process leads.
	term *leasehold.Lock
}

// settles is how long a trial waits after the operation has returned. By then,
// all late requests have arrived.
const settles = arrivesLate + time.Second

// outcome is the result of a trial, in the words of tables.md. It contains what the caller sees,
// what the record shows, and what another client finds later.
type outcome struct{ sees, record, later string }

// ctx returns the context of the operation's caller. The context ends when the caller stops
// waiting.
func (x *trial) ctx() (context.Context, context.CancelFunc) {
	d := x.op.patient
	if d == 0 {
		d = patient
	}
	return context.WithTimeout(context.Background(), d)
}

// believes adds a lock to x.locks, the locks that the caller may trust. It ignores a nil lock.
func (x *trial) believes(lock *leasehold.Lock) *leasehold.Lock {
	if lock != nil {
		x.locks = append(x.locks, lock)
	}
	return lock
}

func (x *trial) holds() bool {
	for _, l := range x.locks {
		if l.Err() == nil {
			return true
		}
	}
	return false
}

// mend ends all faults of the simulated network.
func (x *trial) mend() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.armed = false
}

// The variable "always" is an Edit that makes every random number of a client 0.5, so that repeated
// trials with the same fates have the same outcome.
var always = lab.Chance(func() float64 { return 0.5 })

// client returns a client of a new process. The trial's faults do not affect its requests.
func (x *trial) client(cfg leasehold.Config) *leasehold.Client {
	cfg.Owner = "other"
	cfg.PollMax = time.Second
	c, _ := x.Client(cfg, always)
	return c
}

// play runs a trial of the operation. The first requests have the given fates. If an invariant did
// not hold, broken describes the violation; otherwise broken is empty.
func play(t *testing.T, op *operation, fates ...fate) (o outcome, broken string) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		x := &trial{World: w.Work(), op: op, fates: fates}
		cfg := lab.Config()
		if op.cfg != nil {
			cfg = op.cfg()
		}
		cfg.PollMax = time.Second
		x.c, x.wire = x.Client(cfg, always)
		x.wire.SetFault(x.network)
		x.other, x.thief = x.client(cfg), x.client(lab.Config())
		o, broken = x.run()
		for _, c := range []*leasehold.Client{x.c, x.other, x.thief} {
			_ = c.Close(context.Background())
		}
		lab.Elapse(arrivesLate)
	})
	return o, broken
}

func (x *trial) run() (o outcome, broken string) {
	do := x.op.prepare(x)
	synctest.Wait()
	x.mu.Lock()
	x.armed = true
	x.mu.Unlock()
	err := do()
	// The fate silence must also drop a request that is sent just when the call returns. So the
	// faults last a little longer than the call.
	time.Sleep(10 * time.Millisecond)
	x.mend()
	synctest.Wait()
	o.sees = x.spell(err)
	o.record = x.op.shows(x)
	held := x.holds()
	if held {
		o.sees += "; held"
	}
	lab.Elapse(settles)
	if x.op.writes {
		o.later, broken = x.laterWritten(err, o.record)
		return o, broken
	}
	settled := x.op.shows(x)
	if settled != o.record {
		o.record += ", then " + settled
	}
	o.later, broken = x.laterHeld(held)
	switch {
	case broken != "":
	case errors.Is(err, leasehold.ErrUnknownOutcome) && !x.unanswered:
		broken = "every request was answered, but the error is ErrUnknownOutcome"
	case x.op.acquires && held != (err == nil):
		broken = "the call returned both an error and a lock, or neither"
	case x.op.frees && err == nil && strings.Contains(o.record, "ours"):
		broken = "the key was not released"
	}
	return o, broken
}

// laterWritten describes in words what was finally written. The parameter "before" is the description
// that was made when the call returned. If nothing has changed since, the first result is "the same".
// If an invariant did not hold, broken describes the violation.
func (x *trial) laterWritten(err error, before string) (later, broken string) {
	after := x.op.shows(x)
	later = "the same"
	if after != before {
		later = after
	}
	unknown := errors.Is(err, leasehold.ErrUnknownOutcome)
	switch {
	case err == nil && !strings.HasPrefix(before, "written once"), err == nil && !strings.HasPrefix(after, "written once"):
		broken = "the call returned nil, but the item was not written exactly once"
	case err != nil && !unknown && !strings.HasPrefix(after, "not written"):
		broken = "the call failed, but the item was written"
	case !strings.HasPrefix(after, "written once") && !strings.HasPrefix(after, "not written"):
		broken = "the item was written more than once"
	case unknown && !x.unanswered:
		broken = "every request was answered, but the error is ErrUnknownOutcome"
	}
	return later, broken
}

// laterHeld makes another client acquire the keys on which the operation acted, and describes
// in words what that client finds. If an invariant did not hold, broken describes the violation.
func (x *trial) laterHeld(held bool) (later, broken string) {
	ask := x.op.ask
	if ask == nil {
		ask = askForJob
	}
	const tries = lease + 5*time.Second
	ctx, cancel := context.WithTimeout(context.Background(), tries)
	defer cancel()
	began := time.Now()
	lock, end, err := ask(ctx, x)
	took := time.Since(began)
	switch {
	case err != nil && (x.holds() || x.term != nil && x.term.Err() == nil):
		return "held on", ""
	case err != nil:
		return "held by nobody", fmt.Sprintf("no client holds the key, but %v later it is not free: %v", tries, err)
	case x.holds() && !x.op.breaks:
		return "two holders", "another client was granted the key while this client trusts its lock"
	}
	_, over := lock.TookOver()
	switch {
	case over:
		later = "taken over after a lease"
	case took < time.Second:
		later = "free"
	case took < lease/2:
		later = "freed soon"
	default:
		later = "freed after a lease"
	}
	if held {
		later = "lost, then " + later
	}
	lab.Elapse(2 * arrivesLate) // all late requests arrive in this time
	if err := end(); err != nil {
		return later, fmt.Sprintf("the next holder lost the key: %v", err)
	}
	return later, ""
}

// rival returns a new client that has read nothing yet.
func (x *trial) rival() *leasehold.Client {
	cfg := lab.Config()
	cfg.SharedLease = x.op.cfg != nil && x.op.cfg().SharedLease
	c := x.client(cfg)
	x.T.Cleanup(func() { _ = c.Close(context.Background()) })
	return c
}

// spell describes in words the error that the caller sees, and the trial's note.
func (x *trial) spell(err error) string {
	if x.note != "" {
		return spelt(err) + "; " + x.note
	}
	return spelt(err)
}

// spelt describes in words the errors that err matches.
func spelt(err error) string {
	if err == nil {
		return "nil"
	}
	return strings.Join(errorsOf(err), ", ")
}

// errorsOf returns the names of the errors that err matches.
func errorsOf(err error) []string {
	var names []string
	for _, known := range []struct {
		err  error
		name string
	}{
		{leasehold.ErrUnknownOutcome, "`ErrUnknownOutcome`"},
		{leasehold.ErrHeld, "`ErrHeld`"},
		{leasehold.ErrDone, "`ErrDone`"},
		{leasehold.ErrChanged, "`ErrChanged`"},
		{leasehold.ErrNotFound, "`ErrNotFound`"},
		{leasehold.ErrReleased, "`ErrReleased`"},
	} {
		if errors.Is(err, known.err) {
			names = append(names, known.name)
		}
	}
	if lost := (*leasehold.LostError)(nil); errors.As(err, &lost) {
		names = append(names, fmt.Sprintf("`ErrLost` (%s)", lost.Reason))
	}
	if errors.As(err, new(*leasehold.CommitError)) {
		names = append(names, "`*CommitError`")
	}
	var api smithy.APIError
	if errors.As(err, &api) {
		switch code := api.ErrorCode(); code {
		case "AccessDeniedException":
			names = append(names, "access denied")
		case "ConditionalCheckFailedException", "TransactionCanceledException":
		default:
			names = append(names, code)
		}
	}
	switch {
	// This case comes first: if the deadline has passed, it does not matter that the
	// connection of the last request was reset.
	case errors.Is(err, context.DeadlineExceeded):
		names = append(names, "deadline exceeded")
	case errors.Is(err, lab.ErrReset):
		names = append(names, "connection reset")
	}
	if names == nil {
		names = []string{err.Error()}
	}
	return names
}
