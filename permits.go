package leasehold

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/leasehold-go/leasehold/internal/decide"
	"github.com/leasehold-go/leasehold/internal/observed"
	"github.com/leasehold-go/leasehold/internal/protocol"
	"github.com/leasehold-go/leasehold/internal/recipe"
	"github.com/leasehold-go/leasehold/layout"
)

// Table is the lock table's name.
func (in inner) Table() string { return in.c.cfg.Table }

// RereadPermits is about how often a waiter reads how many permits there are.
func (in inner) RereadPermits() time.Duration { return 10 * in.c.cfg.PollMax }

// CountsPermits reports whether the table says how many permits there are.
func (in inner) CountsPermits() bool { return in.c.permitRows() != nil }

// permitRows spells the rows of semaphores; nil: the layout has none.
func (c *Client) permitRows() protocol.PermitRows {
	if proto, ok := c.proto.(protocol.Counting); ok {
		return proto.PermitRows()
	}
	return nil
}

// isPermits reports whether an item is the row of a semaphore.
func (c *Client) isPermits(item protocol.Item) bool {
	rows := c.permitRows()
	if rows == nil {
		return false
	}
	_, err := rows.Decode(item)
	return err == nil
}

// PermitKeys are the keys of the first n permits under key.
func (in inner) PermitKeys(key string, n int) ([]protocol.Key, error) {
	c := in.c
	proto, ok := c.proto.(protocol.Counting)
	if !ok {
		return nil, c.unsupported("semaphores")
	}
	if key == "" || c.isSession(Key{Partition: key}) {
		return nil, fmt.Errorf("leasehold: semaphore %q in table %s: the key is empty, or a session's: choose another", key, c.cfg.Table)
	}
	keys := make([]protocol.Key, n)
	for i := range keys {
		keys[i] = proto.PermitKey(key, i)
		if _, err := c.checkKey("semaphore", Key(keys[i])); err != nil {
			return nil, err
		}
	}
	return keys, nil
}

// PermitOptions reads opts.
func (in inner) PermitOptions(opts any) (recipe.PermitOptions, error) {
	want := request{timing: in.c.timing}
	for _, o := range opts.([]AcquireOption) {
		o.toAcquire(&want)
	}
	var feature string
	switch {
	case want.ifExists:
		feature = "IfExists"
	case want.key.Sort != "":
		feature = "WithSortKey"
	default:
		return recipe.PermitOptions{NoWait: want.noWait, Reentrant: want.reentrant, Manual: want.manual}, nil
	}
	return recipe.PermitOptions{}, in.c.unsupported(feature + " together with a semaphore")
}

// SharePermit returns another handle on one of the permits that ctx holds.
func (in inner) SharePermit(ctx context.Context, keys []protocol.Key, opts any) (any, error) {
	for _, key := range keys {
		h := heldKeysOf(ctx).find(in.c, Key(key))
		if h == nil || h.want.mode != protocol.ModePlain {
			continue
		}
		wants, err := in.c.newRequests([]Key{Key(key)}, opts.([]AcquireOption))
		if err == nil {
			err = h.refuses(wants[0])
		}
		if err != nil {
			return nil, err
		}
		return h.share(ctx, wants[0])
	}
	return nil, nil
}

// ReadPermits reads how many permits there are until it is answered.
func (in inner) ReadPermits(ctx context.Context, key string) (protocol.Permits, error) {
	c, rows := in.c, in.c.permitRows()
	if !c.enter() {
		return protocol.Permits{}, ErrClosed
	}
	defer c.leave()
	ctx, stop := c.untilClosing(ctx)
	defer stop()
	at := Key(rows.Key(key))
	var t trouble
	for n := 0; ; n++ {
		ans := c.read(ctx, at)
		if ans.err == nil {
			return c.decodePermits(at, ans.item)
		}
		if err := c.permitsFailed(ctx, "acquire", at, &t, ans, n); err != nil {
			return protocol.Permits{}, err
		}
	}
}

// permitsFailed pauses before a request about permits is repeated; an error
// says why it is not.
func (c *Client) permitsFailed(ctx context.Context, op string, at Key, t *trouble, ans answer, n int) error {
	t.tell(ctx, c, at, ans.err)
	switch ans.Cause {
	case decide.Refused:
		return opError(op, c.cfg.Table, at, ans.err)
	case decide.Busy:
		c.emit(ctx, Event{Kind: EventThrottled, Key: at, Requests: 1, Err: ans.err})
	}
	pause(ctx.Done(), c.backoff(n, time.Second))
	switch cause := context.Cause(ctx); {
	case cause == nil:
		return nil
	case errors.Is(cause, ErrClosed):
		return ErrClosed
	default:
		return opError(op, c.cfg.Table, at, errors.Join(cause, ans.err))
	}
}

// decodePermits reads a row; nil: there is none.
func (c *Client) decodePermits(at Key, item protocol.Item) (protocol.Permits, error) {
	if item == nil {
		return protocol.Permits{}, nil
	}
	p, err := c.permitRows().Decode(item)
	if err != nil {
		return p, c.recordError(at, item, err)
	}
	return p, nil
}

// CreatePermits stores n unless a number is there already.
func (in inner) CreatePermits(ctx context.Context, key string, n int, manual bool) (protocol.Permits, bool, error) {
	c := in.c
	at := Key(c.permitRows().Key(key))
	s := &counting{c: c, op: "acquire", at: at}
	return s.finish(ctx, manual, func(ctx context.Context) (protocol.Permits, error) { return s.create(ctx, n) })
}

// ResizePermits stores n.
func (in inner) ResizePermits(ctx context.Context, key string, n int) (protocol.Permits, error) {
	c, rows := in.c, in.c.permitRows()
	if rows == nil {
		return protocol.Permits{}, c.unsupported("Resize")
	}
	s := &counting{c: c, op: "resize", at: Key(rows.Key(key))}
	p, _, err := s.finish(ctx, false, func(ctx context.Context) (protocol.Permits, error) { return s.resize(ctx, n) })
	return p, err
}

// counting writes how many permits there are. Every attempt has a version of its
// own, by which one that landed without an answer is recognised.
type counting struct {
	c     *Client
	op    string
	at    Key
	tried []string // versions sent, whatever the answers
	// unanswered: of one of them it is not known whether it has landed.
	unanswered bool
	trouble    trouble
}

// wrote reports whether a version is that of an attempt.
func (s *counting) wrote(version string) bool { return slices.Contains(s.tried, version) }

// finish runs write, and returns when ctx ends or the client is closed though
// it is not done: with manual, when the release grace has passed besides. ours:
// the row was created by an attempt of s.
func (s *counting) finish(ctx context.Context, manual bool, write func(context.Context) (protocol.Permits, error)) (p protocol.Permits, ours bool, err error) {
	if ctx.Err() != nil {
		return p, false, opError(s.op, s.c.cfg.Table, s.at, context.Cause(ctx))
	}
	if !s.c.enter() {
		return p, false, ErrClosed
	}
	defer s.c.leave()
	type result struct {
		p    protocol.Permits
		ours bool
		err  error
	}
	done := make(chan result, 1)
	over := make(chan struct{})
	ctx, stop := s.c.untilClosing(ctx)
	defer stop()
	s.c.detach(func() {
		p, err := write(ctx)
		done <- result{p, s.wrote(p.ID), err}
		close(over)
	})
	select {
	case r := <-done:
		return r.p, r.ours, r.err
	case <-ctx.Done():
	}
	if manual {
		s.c.awaitGrace(over)
	}
	cause := context.Cause(ctx)
	switch {
	case s.op == "resize":
		err = s.c.unknownOutcome(s.op, s.at, cause)
	case errors.Is(cause, ErrClosed):
		err = ErrClosed
	default:
		err = opError(s.op, s.c.cfg.Table, s.at, cause)
	}
	return p, false, err
}

// create stores n where there is nothing, or returns what is there.
func (s *counting) create(ctx context.Context, n int) (protocol.Permits, error) {
	for i := 0; ; i++ {
		p, ans, err := s.send(ctx, protocol.Permits{}, n)
		if ans.Effect == decide.Applied || err != nil {
			return p, err
		}
		if ans.Cause == decide.ConditionFailed && p.Version != "" {
			return p, nil
		}
		if err := s.failed(ctx, ans, i); err != nil {
			return protocol.Permits{}, err
		}
	}
}

// resize stores n in the place of whatever is there.
func (s *counting) resize(ctx context.Context, n int) (protocol.Permits, error) {
	var now protocol.Permits
	for i := 0; ; i++ {
		ans := s.c.read(ctx, s.at)
		if ans.err != nil {
			if err := s.failed(ctx, ans, i); err != nil {
				return protocol.Permits{}, err
			}
			continue
		}
		var err error
		if now, err = s.c.decodePermits(s.at, ans.item); err != nil {
			return now, err
		}
		break
	}
	for i := 0; ; i++ {
		if now.N == n {
			return now, nil
		}
		p, ans, err := s.send(ctx, now, n)
		switch {
		case ans.Effect == decide.Applied || err != nil:
			return p, err
		case ans.Cause == decide.ConditionFailed:
			now = p // ours, or somebody else's: then ours of before have landed and been replaced, or never will
		}
		if err := s.failed(ctx, ans, i); err != nil {
			return protocol.Permits{}, err
		}
	}
}

// send stores n once in the place of what is there now. It returns what is
// there then: on success n, after a failed condition what that has shown.
func (s *counting) send(ctx context.Context, now protocol.Permits, n int) (protocol.Permits, answer, error) {
	rows, version := s.c.permitRows(), protocol.NewVersion()
	s.tried = append(s.tried, version)
	next := protocol.Permits{N: n, Most: max(n, now.Most), ID: now.ID, Version: version}
	var w *protocol.Write
	if now.Version == "" {
		next.ID = version
		w = rows.Create(protocol.Key(s.at), s.c.owner, next)
	} else {
		w = rows.Replace(protocol.Key(s.at), s.c.owner, now.Version, next)
	}
	ans := s.c.write(ctx, w, attemptLimit)
	s.unanswered = s.unanswered || ans.Effect == decide.Unknown
	if ans.Effect == decide.Applied {
		return next, ans, nil
	}
	if ans.Cause != decide.ConditionFailed {
		return protocol.Permits{}, ans, nil
	}
	item, ok := s.c.shown(ctx, s.at, ans)
	if !ok {
		ans.Cause = decide.Unreachable
		return protocol.Permits{}, ans, nil
	}
	p, err := s.c.decodePermits(s.at, item)
	return p, ans, err
}

// failed is permitsFailed of a write.
func (s *counting) failed(ctx context.Context, ans answer, n int) error {
	err := s.c.permitsFailed(ctx, s.op, s.at, &s.trouble, ans, n)
	if op := (*OpError)(nil); s.unanswered && s.op == "resize" && errors.As(err, &op) {
		return s.c.unknownOutcome(s.op, s.at, op.Err)
	}
	return err
}

// HeldPermits reads those of keys that are held. A record that does not read is
// an error beside the others.
func (in inner) HeldPermits(ctx context.Context, keys []protocol.Key) (any, error) {
	c := in.c
	asked := make([]Key, len(keys))
	for i, key := range keys {
		asked[i] = Key(key)
	}
	read := func(keys []Key) (items map[Key]protocol.Item, err error) {
		err = c.retryRead(ctx, "list", keys[0], func(ctx context.Context) error {
			found, _, err := c.readAll(ctx, keys)
			items = found
			return err
		})
		return items, err
	}
	items, err := read(asked)
	if err != nil {
		return []Record(nil), err
	}
	var held []Record
	var damaged []error
	for _, key := range asked {
		if items[key] == nil {
			continue
		}
		r, err := c.decode(key, items[key])
		switch {
		case err != nil:
			damaged = append(damaged, err)
		case !r.Released && !c.isExpired(r):
			held = append(held, r)
		}
	}
	held, err = c.withoutDeadSessions(held, read)
	return held, errors.Join(append(damaged, err)...)
}

// isExpired reports whether a record says itself that its holder is dead.
func (c *Client) isExpired(r Record) bool {
	return c.caps.Expiry == layout.WallClock && c.deadAt(r, observed.Version{}, c.now(), time.Now()) <= c.now().Mono
}

// withoutDeadSessions leaves out the records that a session has freed.
func (c *Client) withoutDeadSessions(held []Record, read func([]Key) (map[Key]protocol.Item, error)) ([]Record, error) {
	proto, ok := c.proto.(protocol.Sharing)
	if !ok {
		return held, nil
	}
	var rows []Key
	for _, r := range held {
		if row := Key(proto.SessionKey(r.session)); r.session != "" && !slices.Contains(rows, row) {
			rows = append(rows, row)
		}
	}
	if len(rows) == 0 {
		return held, nil
	}
	items, err := read(rows)
	if err != nil {
		return held, err
	}
	return slices.DeleteFunc(held, func(r Record) bool {
		if r.session == "" {
			return false
		}
		row, err := proto.Session().Decode(items[Key(proto.SessionKey(r.session))])
		return err == nil && row.Released
	}), nil
}
