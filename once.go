package leasehold

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/leasehold-go/leasehold/internal/attempts"
	"github.com/leasehold-go/leasehold/internal/hold"
	"github.com/leasehold-go/leasehold/internal/protocol"
	"github.com/leasehold-go/leasehold/internal/visible"
)

// Once acquires the key unless label names what was done last under it. Then the error is
// a *DoneError: at once, whoever holds the key, or behind another goroutine of this client
// when that one releases. A label is a commit, a date or the hash of a file, of at most 256
// bytes.
//
// It is done when the lock is released with MarkDone, by a Do whose function returned
// nil, or by CommitAndRelease. The record keeps the label then, until another is done,
// and no TTL deletes it, whatever Config.Retention. If the function fails, or its process
// dies, the next call does it: whoever waits, or comes. What CommitAndRelease writes is
// written exactly once, until another label is done. All else is done once or more: again,
// if a holder died after its work and before its release, lost the lock between the two, or
// had no answer to the release for as long as it was tried. Release and Do return nil only
// if the record says that it is done. If handles share a grant (Reentrant), the last of
// those that were acquired for the work says whether it is done; Do of the others returns
// nil. That one must be the last handle of all, or its Do is an error.
//
// Nothing more is sent for it. Layout Native has it, for plain locks of one key; elsewhere
// the error is an *UnsupportedError: there give each label a key of its own. A waiter is
// handed the key by no other goroutine. A lock that was detached is resumed without it.
func Once(label string) AcquireOption { return acquireFunc(func(r *request) { r.label = &label }) }

// Every acquires the key unless the work of this period, or of a later one, was done under
// it: as Once, with the period as the label. The period is the one in which the call was
// made, by this machine's clock: one that is wrong moves the edge of the period, and one
// that is behind repeats nothing. Periods are counted from 1970 in UTC: 24 hours are a day
// in UTC. At least 1 s.
func Every(period time.Duration) AcquireOption {
	return acquireFunc(func(r *request) { r.period = &period })
}

type markDone struct{}

func (markDone) toRelease(t *hold.Terms) { t.Done = true }

// MarkDone has the release store that the work is done for which the lock was acquired
// with Once or Every. Do and CommitAndRelease do so by themselves. The release returns nil
// only if that is stored: it is an error too if the key had been freed before without it,
// by Close or another release.
func MarkDone() ReleaseOption { return markDone{} }

// Done says what was done last under a key, of that which was to be done once.
type Done struct {
	Once   string    // its label; empty: it was the work of a period
	Period time.Time // when that began
	Owner  string    // whose grant it was
	At     time.Time // by that client's clock
	Token  int64     // of the grant
}

// MarshalJSON writes what the command prints.
func (d Done) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		Once   string `json:"once,omitempty"`
		Period string `json:"period,omitempty"`
		By     string `json:"by"`
		At     string `json:"at,omitempty"`
		Token  int64  `json:"token,omitempty"`
	}{d.Once, formatTime(d.Period), d.Owner, formatTime(d.At), d.Token})
}

// Is reports whether what label names was done last.
func (d *Done) Is(label string) bool { return d != nil && d.Once == label && label != "" }

// String says it in one line, for people.
func (d *Done) String() string {
	what := visible.Name(d.Once)
	if d.Once == "" {
		what = "the work of " + visible.Period(d.Period)
	}
	s := what + " was done by " + holderName(Record{Owner: d.Owner, Grant: "of ours"})
	if !d.At.IsZero() {
		s += " at " + clockText(d.At)
	}
	if d.Token != 0 {
		s += fmt.Sprintf(" (token %d)", d.Token)
	}
	return s
}

// completeOnce is what the caller wants to be done once, if it can be.
func (c *Client) completeOnce(r *request) error {
	var problem string
	switch _, marks := c.proto.(protocol.Marking); {
	case r.label == nil && r.period == nil:
		return nil
	case !marks:
		return c.cfg.unsupported("Once or Every: give each label or period a key of its own")
	case r.Mode != protocol.ModePlain:
		return c.cfg.unsupported("Once or Every for a read/write lock")
	case r.label != nil && r.period != nil:
		problem = "Once and Every: use one of them"
	case r.policy == deleteRecord:
		problem = "DeleteOnRelease deletes the record, and with it what says that the work is done: leave it out, or Once and Every"
	case r.label != nil:
		problem = protocol.LabelProblem(*r.label)
		r.Once = protocol.Once{Label: *r.label}
	default:
		if problem = protocol.PeriodProblem(*r.period); problem == "" {
			r.Once = protocol.PeriodOf(c.wall(), *r.period)
		}
	}
	if problem != "" {
		return c.errorf("acquire", r.key(), "%s", problem)
	}
	return nil
}

// ForgetDone removes the mark that r shows, as Get or List returned it: what was done by
// mistake, or has to be done again, the next call does. If the record has another mark by
// now, that stays, and the error matches ErrChanged. ErrUnknownOutcome if ctx ended without
// an answer: call it again. Who holds the key goes on holding it. With a ctx that has
// ended before, nothing is sent.
func (c *Client) ForgetDone(ctx context.Context, r Record) error {
	marking, ok := c.proto.(protocol.Marking)
	if !ok {
		return c.cfg.unsupported("Once or Every")
	}
	key, err := c.checkKey("forget", r.Key)
	switch {
	case err != nil:
		return err
	case r.Done == nil:
		return c.errorf("forget", key, "the record does not say that anything was done: pass one that Get or List returned")
	case ctx.Err() != nil:
		return c.errorf("forget", key, "%w", context.Cause(ctx))
	case !c.holds.Enter():
		return c.afterClose("forget", key)
	}
	defer c.holds.Leave()
	ctx, stop := c.holds.UntilClosing(ctx)
	defer stop()
	f := forgetting{c: c, proto: marking, key: protocol.Key(key), mark: protocol.Done(*r.Done)}
	if _, unknown := attempts.Outlive(ctx, c.holds.Detach, &f.tried, func() { err = f.run(ctx) }); unknown != nil {
		return c.holds.UnknownOutcome("forget", f.key, unknown)
	}
	return err
}

// forgetting removes one mark. It writes no version, and needs none: that the record does
// not have the mark is all it is for, whichever attempt did it.
type forgetting struct {
	c     *Client
	proto protocol.Marking
	key   protocol.Key
	mark  protocol.Done
	tried attempts.Sequence[attempts.Version]
}

func (f *forgetting) run(ctx context.Context) error {
	r := f.tried.Run(context.WithoutCancel(ctx), ctx, f.c.requests, attempts.Operation[attempts.Version]{
		Key: f.key,
		Next: func() (attempts.Version, *protocol.Write) {
			return attempts.Version(protocol.NewVersion()), f.proto.Unmark(f.key, f.mark)
		},
		Shows: func(item protocol.Item, sent []attempts.Version) (attempts.Version, bool) {
			shown, err := f.proto.Decode(item)
			return sent[len(sent)-1], item == nil || err == nil && shown.Done == nil
		},
	})
	switch r.Outcome {
	case attempts.Applied:
		return nil
	case attempts.Rejected:
		return f.c.errorf("forget", Key(f.key), "%w: it does not say any more that this was done: look again", ErrChanged)
	case attempts.Unanswered:
		return f.c.holds.UnknownOutcome("forget", f.key, attempts.Joined(context.Cause(ctx), r.Err))
	}
	return opError("forget", f.c.cfg.Table, Key(f.key), attempts.Joined(context.Cause(ctx), r.Err))
}
