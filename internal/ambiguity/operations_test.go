package ambiguity

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/election"
	"github.com/leasehold-go/leasehold/internal/lab"
	"github.com/leasehold-go/leasehold/internal/protocol"
	"github.com/leasehold-go/leasehold/semaphore"
)

func boundedClockConfig() leasehold.Config {
	cfg := lab.Config()
	cfg.MaxSkew = time.Second
	return cfg
}

var operations = []*operation{
	{
		name:     "grant",
		acquires: true,
		about:    "`Acquire` of a key that is free.",
		fits:     lab.Call.Grants,
		prepare:  func(x *trial) func() error { return x.acquire },
		overtake: stolen("job"), shows: keys("job"),
	},
	{
		name:     "takeover",
		acquires: true,
		about:    "`Acquire` of a key whose holder is dead, and was watched for its lease. Another's write: the holder is alive after all, and renews.",
		fits:     lab.Call.Grants,
		prepare: func(x *trial) func() error {
			x.Acquire(x.other, "job", leasehold.WithoutRenewal())
			_, _ = x.c.TryAcquire(x.T.Context(), "job")
			lab.Elapse(lease + time.Millisecond)
			// Of the requests below, only the takeover contains the version of the holder's record.
			// So only the takeover receives fates. The earlier attempt, which assumes that the key
			// is free, receives none.
			x.only = []byte(lab.Text(x.Item("job"), "recordVersionNumber"))
			return x.acquire
		},
		overtake: renewed("job"), shows: keys("job"),
	},
	{
		name:     "takeover by the clock",
		acquires: true,
		about:    "`Acquire` with `Config.MaxSkew` of a key whose holder is dead, had it too, and was watched by nobody. Another's write: the holder is alive after all, and renews.",
		cfg:      boundedClockConfig,
		fits:     lab.Call.Grants,
		prepare: func(x *trial) func() error {
			x.Acquire(x.other, "job", leasehold.WithoutRenewal())
			lab.Elapse(lease + time.Second)
			// As above: only the takeover contains this version, so only the takeover receives
			// fates.
			x.only = []byte(lab.Text(x.Item("job"), "recordVersionNumber"))
			return x.acquire
		},
		overtake: renewed("job"), shows: keys("job"),
	},
	{
		name:  "hand-over",
		about: "`Release`, while another goroutine of the client waits for the key, for 15 s at most.",
		fits:  lab.Call.HandsOver,
		prepare: func(x *trial) func() error {
			lock := x.believes(x.Acquire(x.c, "job"))
			next := make(chan error, 1)
			go func() {
				ctx, cancel := context.WithTimeout(context.Background(), 15*time.Second)
				defer cancel()
				lock, err := x.c.Acquire(ctx, "job")
				x.believes(lock)
				next <- err
			}()
			return func() error {
				ctx, cancel := x.ctx()
				defer cancel()
				err := lock.Release(ctx)
				x.mend()
				x.note = "who waits: " + spelt(<-next)
				return err
			}
		},
		overtake: stolen("job"), shows: keys("job"),
	},
	{
		name:     "wait in the queue",
		acquires: true,
		about:    "`Acquire` of a key that another client holds and releases after 3 s. The requests join the queue.",
		cfg:      lab.Config,
		fits: func(c lab.Call) bool {
			return c.Writes("UpdateItem") && strings.Contains(string(c.Body), "list_append")
		},
		prepare: func(x *trial) func() error {
			lock := x.Acquire(x.other, "job")
			return func() error {
				released := make(chan struct{})
				go func() {
					defer close(released)
					time.Sleep(3 * time.Second)
					_ = errors.Join(lock.Renew(context.Background()), lock.Release(context.Background()))
				}()
				err := x.acquire()
				<-released
				return err
			}
		},
		overtake: stolen("job"), shows: keys("job"),
	},
	{
		name:  "hand-over to the head of a queue",
		about: "`Release` while another client waits in the queue of the key, for 15 s at most.",
		cfg:   lab.Config,
		fits:  lab.Call.HandsOver,
		prepare: func(x *trial) func() error {
			lock := x.believes(x.Acquire(x.c, "job"))
			next := make(chan error, 1)
			go func() {
				ctx, cancel := context.WithTimeout(context.Background(), 15*time.Second)
				defer cancel()
				theirs, err := x.other.Acquire(ctx, "job")
				if err == nil {
					time.Sleep(time.Second)
					err = errors.Join(theirs.Err(), theirs.Release(context.Background()))
				}
				next <- err
			}()
			lab.Elapse(time.Second)
			lab.OK(x.T, lock.Renew(x.T.Context())) // the reply to this renewal shows the queue to the holder
			return func() error {
				ctx, cancel := x.ctx()
				defer cancel()
				err := lock.Release(ctx)
				x.mend()
				x.note = "who waits: " + spelt(<-next)
				return err
			}
		},
		overtake: stolen("job"), shows: keys("job"), frees: true,
	},
	{
		name:  "renewal",
		about: "`Renew` with new data.",
		fits:  lab.Call.Renews,
		prepare: holding(func(ctx context.Context, lock *leasehold.Lock) error {
			return lock.Renew(ctx, leasehold.WithData([]byte("new")))
		}),
		overtake: stolen("job"),
		shows:    keyAndData,
	},
	release("release", "`Release`; the record is kept.", keys("job")),
	release("release that deletes", "`Release` with `DeleteOnRelease`.", keys("job"), leasehold.DeleteOnRelease(true)),
	release("release with data", "`Release` with `WithData`.", keyAndData, leasehold.WithData([]byte("new"))),
	{
		name:     "grant for work that is done once",
		acquires: true,
		about:    "`Acquire` with `Once` of a key that is free. Another's write: another has done it.",
		fits:     lab.Call.Grants,
		prepare: func(x *trial) func() error {
			return x.granted(func(ctx context.Context) (*leasehold.Lock, error) {
				return x.c.Acquire(ctx, "job", leasehold.Once("it"))
			})
		},
		overtake: doneByAnother, shows: keyAndMark,
	},
	{
		name:  "release with the mark of work",
		frees: true,
		about: "`Release` with `MarkDone`.",
		fits:  lab.Call.Releases,
		prepare: func(x *trial) func() error {
			lock := x.believes(x.Acquire(x.c, "job", leasehold.Once("it")))
			return x.within(func(ctx context.Context) error { return lock.Release(ctx, leasehold.MarkDone()) })
		},
		overtake: stolen("job"), shows: keyAndMark,
	},
	{
		name:  "forgetting what was done",
		about: "`ForgetDone` of another client's work. Another's write: the work is done again.",
		fits: func(c lab.Call) bool {
			return c.Op == "UpdateItem" && strings.Contains(string(c.Body), "REMOVE") && strings.Contains(string(c.Body), "lastDone")
		},
		prepare: func(x *trial) func() error {
			doneByAnother(x, nil)
			r := lab.Must(x.c.Get(x.T.Context(), "job"))(x.T)
			return x.within(func(ctx context.Context) error { return x.c.ForgetDone(ctx, r) })
		},
		overtake: doneByAnother, writes: true,
		shows: func(x *trial) string {
			if x.Item("job")["lastDone"] == nil {
				return "written once"
			}
			return "not written"
		},
	},
	{
		name:  "break",
		about: "`Break` of the lock of another process, which does nothing meanwhile.",
		fits:  lab.Call.Releases,
		prepare: func(x *trial) func() error {
			x.Acquire(x.other, "job", leasehold.WithoutRenewal())
			r := lab.Must(x.c.Get(x.T.Context(), "job"))(x.T)
			return x.within(func(ctx context.Context) error { return x.c.Break(ctx, r, leasehold.BreakOptions{}) })
		},
		overtake: stolen("job"), shows: keys("job"), breaks: true,
	},
	{
		name:  "request to step down",
		about: "`Election.StepDown`, which another process that leads hears at its next renewal, within 4 s, and resigns. Another's write: its term is broken, and the key taken.",
		fits:  func(c lab.Call) bool { return c.Op == "UpdateItem" && c.Sets("stepDown") },
		prepare: func(x *trial) func() error {
			theirs, ours := x.election(x.other), x.election(x.c)
			x.term = lab.Must(theirs.Campaign(x.T.Context(), ""))(x.T)
			_ = theirs.OnStepDown(x.term, func() { go func() { _ = x.term.Release(context.Background()) }() })
			return x.within(ours.StepDown)
		},
		overtake: stolen("job"), shows: keys("job"),
	},
	{
		name:     "resume",
		acquires: true,
		about:    "`Resume` of the grant that `Detach` returned.",
		fits:     lab.Call.Renews,
		prepare: func(x *trial) func() error {
			g := x.Detach(x.Acquire(x.c, "job"))
			return x.granted(func(ctx context.Context) (*leasehold.Lock, error) { return x.c.Resume(ctx, g) })
		},
		overtake: stolen("job"), shows: keys("job"),
	},
	{
		name:  "commit",
		about: "`Commit` of one write.",
		fits:  lab.Call.Commits,
		prepare: holding(func(ctx context.Context, lock *leasehold.Lock) error {
			return lock.Commit(ctx, lab.Writes(lab.Note("a", "1")))
		}),
		overtake: stolen("job"), shows: written("job"), writes: true,
	},
	{
		name:  "commit whose own condition fails",
		about: "`Commit` of one write on a condition of its own. Another's write: one that makes the condition fail.",
		fits:  lab.Call.Commits,
		prepare: func(x *trial) func() error {
			x.Open("a")
			return holding(func(ctx context.Context, lock *leasehold.Lock) error {
				return lock.Commit(ctx, lab.Writes(lab.NoteIf("a", "1")))
			})(x)
		},
		overtake: shut, shows: written("job"), writes: true,
	},
	{
		name:  "commit and release",
		about: "`CommitAndRelease` of one write.",
		fits:  func(c lab.Call) bool { return c.Commits() || c.Releases() },
		prepare: holding(func(ctx context.Context, lock *leasehold.Lock) error {
			return lock.CommitAndRelease(ctx, lab.Writes(lab.Note("a", "1")))
		}),
		overtake: stolen("job"), shows: written("job"), writes: true,
	},
	{
		name:     "grant of several keys",
		acquires: true,
		about:    "`AcquireAll` of two free keys, `x` and then `y`. Another's write: `y` is taken.",
		fits:     lab.Call.Grants,
		prepare: func(x *trial) func() error {
			return x.within(func(ctx context.Context) error {
				g, err := x.c.AcquireAll(ctx, leasehold.Keys("x", "y"))
				if err == nil {
					x.locks = append(x.locks, g.Locks()...)
				}
				return err
			})
		},
		overtake: stolen("y"), shows: keys("x", "y"), ask: askForAll,
	},
	{
		name:  "commit under several locks",
		about: "`Group.Commit` of one write under two locks. Another's write: one of the keys is taken.",
		fits:  lab.Call.Commits,
		prepare: func(x *trial) func() error {
			g := x.group()
			return x.within(func(ctx context.Context) error { return g.Commit(ctx, lab.Writes(lab.Note("a", "1"))) })
		},
		overtake: stolen("y"), shows: written("x", "y"), writes: true,
	},
	{
		name:  "release of several keys",
		frees: true,
		about: "`Group.Release` of two locks, `x` and `y`: a release of each, side by side. The fates are those of `x`'s. Another's write: `x` is taken.",
		fits:  func(c lab.Call) bool { return c.Releases() && slices.Contains(c.Keys(), "x") },
		prepare: func(x *trial) func() error {
			g := x.group()
			return x.within(func(ctx context.Context) error { return g.Release(ctx) })
		},
		overtake: stolen("x"), shows: keys("x", "y"), ask: askForAll,
	},
	{
		name:     "beginning of a session",
		acquires: true,
		about:    "The first `Acquire` under a shared lease: the row of its session is created. Another's write: there is a row under that id.",
		cfg:      lab.SharedConfig,
		fits:     func(c lab.Call) bool { return aboutSession(c) && !c.RenewsSession() },
		prepare:  func(x *trial) func() error { return x.acquire },
		overtake: taken, shows: keys("job"),
	},
	{
		name:     "grant under a session",
		acquires: true,
		about:    "A later `Acquire` under a shared lease.",
		cfg:      lab.SharedConfig,
		fits:     func(c lab.Call) bool { return c.Grants() && !aboutSession(c) },
		prepare: func(x *trial) func() error {
			x.Acquire(x.c, "first")
			return x.acquire
		},
		overtake: stolen("job"), shows: keys("job"),
	},
	{
		name:  "release under a session",
		frees: true,
		about: "`Release` under a shared lease, whose session lives on.",
		cfg:   lab.SharedConfig,
		fits:  lab.Call.Releases,
		prepare: func(x *trial) func() error {
			x.Acquire(x.c, "first")
			return holding(func(ctx context.Context, lock *leasehold.Lock) error { return lock.Release(ctx) })(x)
		},
		overtake: stolen("job"), shows: keys("job"),
	},
	{
		name:  "renewal of a session",
		about: "A client's own renewals of its session, watched for 22 s; the caller sees `Lock.Err`. Silence lasts for as long. Another's write: it is marked dead.",
		cfg:   lab.SharedConfig,
		fits:  lab.Call.RenewsSession,
		prepare: func(x *trial) func() error {
			lock := x.believes(x.Acquire(x.c, "job"))
			return func() error {
				lab.Elapse(lease + 2*time.Second)
				return lock.Err()
			}
		},
		overtake: func(x *trial, r *lab.Request) { x.MarkDead(session(r)) }, shows: keys("job"),
	},
	{
		name:     "marking a session dead",
		acquires: true,
		about:    "`Acquire`, for 70 s at most, of a key whose holder has died with its session. Another's write: the session is renewed after all.",
		cfg:      lab.SharedConfig,
		patient:  70 * time.Second,
		fits:     func(c lab.Call) bool { return aboutSession(c) && c.Sets("dead") },
		prepare: func(x *trial) func() error {
			cfg := lab.SharedConfig()
			cfg.Owner = "other"
			dead, wire := x.Client(cfg)
			x.Acquire(dead, "job")
			wire.SetFault(lab.Cut)
			x.T.Cleanup(func() { _ = dead.Close(context.Background()) })
			lab.Elapse(lease)
			return x.acquire
		},
		overtake: func(x *trial, r *lab.Request) {
			x.Update(session(r), map[string]types.AttributeValue{"recordVersionNumber": lab.Str(protocol.NewVersion())})
		},
		shows: keys("job"),
	},
	{
		name:     "permit",
		acquires: true,
		about:    "`Acquire` of a semaphore of one permit, which is free.",
		fits:     lab.Call.Grants,
		prepare: func(x *trial) func() error {
			sem := x.semaphore(x.c)
			return x.granted(func(ctx context.Context) (*leasehold.Lock, error) { return sem.Acquire(ctx) })
		},
		overtake: stolen("sem/0"), shows: keys("sem/0"), ask: askForPermit,
	},
}

func (x *trial) election(c *leasehold.Client) *election.Election {
	return lab.Must(election.New(c, "job"))(x.T)
}

// acquire acquires the key "job". If the client took the key over from a dead holder, the trial's
// note says whether that holder was another client or this client itself.
func (x *trial) acquire() error {
	ctx, cancel := x.ctx()
	defer cancel()
	lock, err := x.c.Acquire(ctx, "job")
	if x.believes(lock) != nil {
		if dead, over := lock.TookOver(); over {
			x.note = "taken over from another"
			if strings.HasPrefix(dead.Owner, "test/") {
				x.note = "taken over from itself"
			}
		}
	}
	return err
}

// The method "within" returns a function that makes the given call. The context of the call ends
// when the operation's caller stops waiting.
func (x *trial) within(call func(ctx context.Context) error) func() error {
	return func() error {
		ctx, cancel := x.ctx()
		defer cancel()
		return call(ctx)
	}
}

// granted is like within, for a call that acquires a lock. It also adds the lock to x.locks, the
// locks that the caller may trust.
func (x *trial) granted(call func(ctx context.Context) (*leasehold.Lock, error)) func() error {
	return x.within(func(ctx context.Context) error {
		lock, err := call(ctx)
		x.believes(lock)
		return err
	})
}

// holding returns a value for the field operation.prepare. This value is a function. It acquires a
// lock, and then returns a function that runs the operation "call" with this lock.
func holding(call func(ctx context.Context, lock *leasehold.Lock) error) func(*trial) func() error {
	return func(x *trial) func() error {
		lock := x.believes(x.Acquire(x.c, "job"))
		return x.within(func(ctx context.Context) error { return call(ctx, lock) })
	}
}

func (x *trial) group() *leasehold.Group {
	g := x.AcquireAll(x.c, leasehold.Keys("x", "y"))
	x.locks = append(x.locks, g.Locks()...)
	return g
}

func (x *trial) semaphore(c *leasehold.Client) *semaphore.Semaphore {
	return lab.Must(semaphore.New(c, "sem", 1))(x.T)
}

func release(name, about string, shows func(*trial) string, opts ...leasehold.ReleaseOption) *operation {
	return &operation{
		name:     name,
		about:    about,
		frees:    true,
		fits:     lab.Call.Releases,
		prepare:  holding(func(ctx context.Context, lock *leasehold.Lock) error { return lock.Release(ctx, opts...) }),
		overtake: stolen("job"), shows: shows,
	}
}
