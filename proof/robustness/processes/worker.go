//go:build linux

package processes

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/leasehold-go/leasehold"
)

// workerVariable is the name of an environment variable. If the variable is set when this program
// starts, the program acts as a worker. The variable then contains the worker's task in JSON.
const workerVariable = "LEASEHOLD_PROCESSES_WORKER"

// Flaw is a deliberate defect of a worker.
type Flaw string

// Values of Flaw. Verify must detect the violations that each flaw causes.
const (
	Sound           Flaw = ""                                // the worker has no flaw
	DeafToLoss      Flaw = "ignores a lost lock"             // the worker continues to work after it has learned that its lock is lost
	TrustsFromReply Flaw = "counts its lease from the reply" // the worker measures its lease from the reply, instead of from the request, and without a margin
	Unfenced        Flaw = "writes without a fence"          // the worker writes the counter without Commit
	NoComparison    Flaw = "writes without a token check"    // the worker's writes are not conditional on the token, and it continues to work after a loss
)

func (f Flaw) String() string {
	if f == Sound {
		return "no flaw"
	}
	return string(f)
}

// task describes what a worker does.
type task struct {
	Who     string
	Journal string
	Place   place
	Keys    []string
	Lease   time.Duration
	Seed    uint64
	Flaw    Flaw
	Idle    bool          // the worker holds locks, but writes nothing
	Hold    time.Duration // how long the worker holds each grant; 0 for a random time
	Frozen  bool          // the worker holds locks without renewing them
	Shared  bool          // the worker's locks share one lease
}

// BeWorker runs a worker with the task in workerVariable, and exits. If the variable is not
// set, BeWorker returns.
func BeWorker() {
	text := os.Getenv(workerVariable)
	if text == "" {
		return
	}
	var t task
	err := json.Unmarshal([]byte(text), &t)
	if err == nil {
		err = work(t)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// worker is the state of a worker process, which contends for keys.
type worker struct {
	task
	resumed context.Context // done once the worker has been suspended and continued, or has received SIGTERM
	journal *journal
	tables  *tables
	locks   *leasehold.Client
	rand    *rand.Rand
	grants  int
	writes  int
	region  string // Region to which requests went when noteRegion last checked
}

// work runs a worker, which contends for keys until it receives SIGTERM.
func work(t task) error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	j, err := openJournal(t.Journal, t.Who)
	if err != nil {
		return err
	}
	defer j.close()
	tables, err := t.Place.open()
	if err != nil {
		return err
	}
	defer tables.close()
	locks, err := leasehold.New(tables.locks(), leasehold.Config{
		Table: lockTable, Owner: t.Who, Lease: t.Lease, SharedLease: t.Shared, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		return err
	}
	resumed, ignore := signal.NotifyContext(ctx, syscall.SIGCONT)
	defer ignore()
	w := &worker{task: t, resumed: resumed, journal: j, tables: tables, locks: locks, rand: rand.New(rand.NewPCG(t.Seed, 1))}
	for ctx.Err() == nil {
		w.noteRegion()
		w.round(ctx)
	}
	// No lock is held now, but the table may still contain a grant whose reply was lost. Close
	// need not try longer than one lease to remove this grant: by then, the grant has expired.
	last, cancel := context.WithTimeout(context.Background(), t.Lease)
	defer cancel()
	if err := locks.Close(last); err != nil {
		w.journal.write(Event{Kind: Denied, Text: "close: " + err.Error()})
	}
	return nil
}

// noteRegion writes an event to the journal if the Region to which requests go has changed since
// the last call of noteRegion.
func (w *worker) noteRegion() {
	if w.tables.regions == nil {
		return
	}
	if at := w.tables.regions.Region(); at != w.region {
		w.region = at
		w.journal.write(Event{Kind: Moved, Text: at})
	}
}

// round tries to acquire a random key and, if the key is granted, works under the lock.
func (w *worker) round(ctx context.Context) {
	key := w.Keys[w.rand.IntN(len(w.Keys))]
	w.grants++
	w.journal.write(Event{Kind: Asked, Key: key, Lease: w.Lease})
	wait, cancel := context.WithTimeout(ctx, 10*w.Lease)
	defer cancel()
	var opts []leasehold.AcquireOption
	if w.rand.IntN(8) == 0 {
		opts = append(opts, leasehold.NoWait())
	}
	if w.Frozen {
		opts = append(opts, leasehold.WithoutRenewal())
	}
	lock, err := w.locks.Acquire(wait, key, opts...)
	if err != nil {
		w.journal.write(Event{Kind: Denied, Key: key, Text: err.Error()})
		pass(ctx, w.upTo(50*time.Millisecond))
		return
	}
	h := &held{worker: w, lock: lock, key: key, number: w.grants, granted: now()}
	h.bound, h.unbind = lock.Bind(context.Background())
	defer h.unbind()
	if h.believes(Granted) {
		h.work(ctx)
		h.letGo()
	}
	pass(ctx, w.upTo(40*time.Millisecond)) // gives other processes a chance to acquire the key
}

func (w *worker) upTo(d time.Duration) time.Duration { return time.Duration(w.rand.Int64N(int64(d))) }

// pass sleeps for d, or until ctx is cancelled.
func pass(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}

// held is a worker's grant of a key, from the acquire to the release.
type held struct {
	*worker
	lock    *leasehold.Lock
	key     string
	number  int
	granted time.Duration
	bound   context.Context
	unbind  context.CancelFunc
	looks   int
	unsure  bool // the last commit got no reply; DynamoDB may still apply it while the grant is current
}

// believes uses Context, Bind and Err in turn to check whether the lock is held. It records an
// event of the given kind, or of kind Lost if the lock is lost. Each check must report a loss, even
// just after a suspension of the process.
func (h *held) believes(kind Kind) bool {
	at := now() // read before the check: if the lock is held at the check, it was also held at this time
	var err error
	switch h.looks++; h.looks % 3 {
	case 0:
		err = h.lock.Err()
	case 1:
		err = h.lock.Context().Err()
	case 2:
		err = h.bound.Err()
	}
	// If the process is suspended between the next two statements, the variable "until" is earlier
	// than the end of trust. It is never later.
	before := now()
	until := before + time.Until(h.lock.TrustedUntil())
	switch {
	case h.Flaw == TrustsFromReply:
		until = h.granted + h.Lease
		if err = nil; at >= until {
			err = leasehold.ErrLost
		}
	case (h.Flaw == DeafToLoss || h.Flaw == NoComparison) && err != nil:
		err, until = nil, at
	}
	e := Event{At: at, Kind: kind, Key: h.key, Grant: h.number, Token: h.lock.Token(), Lease: h.Lease, Until: until}
	if err != nil {
		e.Kind, e.Until, e.Text = Lost, 0, context.Cause(h.lock.Context()).Error()
	}
	if dead, took := h.lock.TookOver(); took && kind == Granted {
		e.Dead = dead.Owner
	}
	h.journal.write(e)
	return err == nil
}

// work makes fenced writes until the planned hold time has passed, or until the worker
// learns that the lock is lost.
func (h *held) work(ctx context.Context) {
	enough := now() + h.upTo(300*time.Millisecond)
	if h.rand.IntN(4) == 0 { // one grant in four is held for an additional lease, so that it is renewed several times
		enough += h.Lease
	}
	if h.Hold != 0 {
		enough = now() + h.Hold
	}
	for now() < enough && ctx.Err() == nil && (!h.unsure || h.Flaw != Sound) && h.believes(Believes) {
		switch {
		case h.Idle:
		case h.rand.IntN(2) == 0:
			h.count()
		default:
			h.write()
		}
		h.noteRegion()
		pass(h.bound, h.upTo(30*time.Millisecond))
	}
}

// letGo records that the worker no longer believes that it holds the key, and then releases
// the lock.
func (h *held) letGo() {
	if !h.believes(Over) {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), h.Lease)
	defer cancel()
	if err := h.lock.Release(ctx); err != nil {
		h.journal.write(Event{Kind: Denied, Key: h.key, Text: "release: " + err.Error()})
		return
	}
	h.journal.write(Event{Kind: Released, Key: h.key, Grant: h.number})
}

// send records that a write is about to be sent, calls the function do to send the write, and
// records the result.
func (h *held) send(plain bool, token int64, do func(id string) error) {
	h.writes++
	id := fmt.Sprintf("%s/%d", h.Who, h.writes)
	e := Event{Kind: Sent, Key: h.key, Grant: h.number, Token: token, Write: id, Plain: plain}
	h.journal.write(e)
	err := do(id)
	e.Kind = answer(err, !plain && h.Flaw != Unfenced)
	e.At = now()
	if err != nil {
		e.Text = err.Error()
	}
	h.journal.write(e)
	h.unsure = e.Kind == Unknown && !plain
}

// hasRead is the text of the event that a worker with the flaw Unfenced records between its
// read and its write.
const hasRead = "has read, and is about to write"

// answer returns the kind of event to record for a write that returned err. For a commit,
// "promised" is true: Leasehold promises that a failed commit has written nothing, unless its error
// is ErrUnknownOutcome. For all other writes, only errStale proves that nothing was written.
func answer(err error, promised bool) Kind {
	switch {
	case err == nil:
		return Landed
	case promised && !errors.Is(err, leasehold.ErrUnknownOutcome), errors.Is(err, errStale):
		return Refused
	default:
		return Unknown
	}
}

// count reads the counter under the lock, and commits the next number together with a
// receipt. The writes have no condition besides the lock's guard, so only the lock prevents
// two workers from writing the same number.
func (h *held) count() {
	h.send(false, h.lock.Token(), func(id string) error {
		ctx, cancel := context.WithTimeout(context.Background(), h.Lease)
		defer cancel()
		n, err := h.tables.readCount(ctx, h.lock, h.key)
		if err != nil {
			return fmt.Errorf("not sent, for the count could not be read: %v", err) //nolint:errorlint // the read failed, so no write was sent
		}
		if h.Flaw == Unfenced {
			// The flaw Unfenced causes a violation only if the worker is suspended after it has
			// read the counter and before it writes. So the worker waits here until the test has
			// suspended and continued it.
			h.journal.write(Event{Kind: Broke, Text: hasRead})
			<-h.resumed.Done()
			return h.tables.putCount(context.Background(), h.key, id, n+1, h.lock.Token())
		}
		return h.lock.Commit(ctx, h.tables.countWrites(h.key, id, n+1, h.lock.Token()))
	})
}

// write adds one to a counter that rejects a token below the greatest it has seen.
func (h *held) write() {
	token := h.lock.Token()
	h.send(true, token, func(string) error {
		ctx, cancel := context.WithTimeout(context.Background(), h.Lease)
		defer cancel()
		return h.tables.add(ctx, h.key, h.Who, token, h.Flaw == NoComparison)
	})
}
