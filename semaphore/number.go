package semaphore

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/decide"
	"github.com/leasehold-go/leasehold/internal/protocol"
)

// number is how many permits there are, as far as this process knows.
type number struct {
	n       int
	agreed  bool           // n was read from the row
	asOf    decide.Instant // when the request that read n began, or the write of n was answered
	changed chan struct{}  // closed when n changes
}

// number returns how many permits this process knows of.
func (s *Semaphore) number() number {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.known
}

// follow records the number that there is as of an instant. If that of a later one has
// been recorded, nothing changes.
func (s *Semaphore) follow(n int, asOf decide.Instant) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.known.agreed && asOf.Mono < s.known.asOf.Mono {
		return
	}
	changed := s.known.changed
	if n != s.known.n {
		close(changed)
		changed = make(chan struct{})
	}
	s.known = number{n: n, agreed: true, asOf: asOf, changed: changed}
}

// agree compares n with the stored number, or stores it. It does so once for each
// semaphore.
func (s *Semaphore) agree(ctx context.Context, manual bool) error {
	asked := s.number()
	if asked.agreed || s.row == nil {
		return nil
	}
	began := s.c.Now()
	p, created, err := s.stored(ctx, asked.n, manual)
	if err != nil {
		return err
	}
	if !s.number().agreed && p.N != asked.n && !created {
		return &leasehold.PermitsError{Table: s.table(), Key: s.key, Stored: p.N, Asked: asked.n}
	}
	s.follow(p.N, began)
	return nil
}

// stored reads how many permits there are, and stores n if nobody has.
func (s *Semaphore) stored(ctx context.Context, n int, manual bool) (p protocol.Permits, created bool, err error) {
	p, err = s.row.read(ctx, "acquire")
	if err == nil && p.Version == "" {
		p, created, err = s.row.create(ctx, n, manual)
	}
	return p, created, s.notOurs(err)
}

// age is how long ago n was what the row says.
func (s *Semaphore) age() time.Duration { return s.c.Now().Mono - s.number().asOf.Mono }

// reread reads the row, unless that was done within the last while.
func (s *Semaphore) reread(ctx context.Context, while time.Duration) {
	if s.row == nil || s.age() < while {
		return
	}
	began := s.c.Now()
	if p, err := s.row.read(ctx, "acquire"); err == nil && p.Version != "" {
		s.follow(p.N, began)
	}
}

// hasGrown reports whether there are more permits than the n that a call has met, none
// of which it may have. Such a call does not wait, so watch tells it nothing.
func (s *Semaphore) hasGrown(ctx context.Context, n int, while time.Duration) bool {
	s.reread(ctx, while)
	return s.number().n > n
}

// Resize stores a new n for all processes. Holders of permits above n keep them. Once
// it has returned nil, nobody is granted another permit above n. Other processes learn
// of it with their next grant; those that wait, within 20 times Config.PollMax; those
// that only try, with the first try after 10 times Config.PollMax. The error is
// leasehold.ErrUnknownOutcome if ctx ended without an answer. A layout that stores no
// number refuses it with a *leasehold.UnsupportedError.
func (s *Semaphore) Resize(ctx context.Context, n int) error {
	if err := s.checkNumber(n); err != nil {
		return err
	}
	if s.row == nil {
		return s.in.Unsupported("Resize")
	}
	asOf := s.c.Now()
	p, wrote, err := s.row.resize(ctx, n)
	if err != nil {
		return s.notOurs(err)
	}
	if wrote {
		asOf = s.c.Now() // a read that began before this may have seen the row as it was
	}
	s.follow(p.N, asOf)
	return nil
}

func (s *Semaphore) checkNumber(n int) error {
	if n < 1 || n > protocol.MostPermits {
		return fmt.Errorf("leasehold: semaphore %v in table %s: %d permits: from 1 to %d", s.key, s.table(), n, protocol.MostPermits)
	}
	return nil
}

// notOurs explains the error of a row that cannot be read.
func (s *Semaphore) notOurs(err error) error {
	if !errors.Is(err, leasehold.ErrRecord) {
		return err
	}
	return fmt.Errorf("leasehold: what is stored under %v in table %s is not a semaphore: choose another key if it is in use: %w",
		s.key, s.table(), err)
}
