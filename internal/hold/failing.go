package hold

import (
	"log/slog"
	"maps"
	"sync"
	"time"
)

// logEvery is the least time between two log lines about failing renewals.
const logEvery = 10 * time.Second

// failing sums up a client's failed renewals: an outage is a few lines in the log,
// however many locks are held. Lines are written outside its mutex.
type failing struct {
	mu        sync.Mutex
	locks     map[*row]error // locks whose last renewal failed, with its error
	attempts  int            // number that failed since the last line
	logged    time.Time      // when the last line was
	inEpisode bool           // a line has said that renewals fail, none that they succeed again
}

// add counts a renewal that failed. The first one is logged at once, later ones are
// summed up.
func (f *failing) add(r *row, err error) {
	f.mu.Lock()
	if f.locks == nil {
		f.locks = map[*row]error{}
	}
	if !r.lease.IsOver() { // or forget has been called already
		f.locks[r] = err
	}
	f.attempts++
	if len(f.locks) == 0 || !f.logged.IsZero() && time.Since(f.logged) < logEvery {
		f.mu.Unlock()
		return
	}
	locks, attempts := maps.Clone(f.locks), f.attempts
	f.attempts, f.logged, f.inEpisode = 0, time.Now(), true
	f.mu.Unlock()

	worst, remaining := r, time.Duration(0)
	now := r.c.Now()
	first := true
	for r := range locks {
		if left := now.Remaining(r.lease.TrustedUntil()); first || left < remaining {
			worst, remaining, first = r, left, false
		}
	}
	r.c.Log.LogAttrs(worst.ctx, slog.LevelWarn, "leasehold: renewals fail: the lock named has the least trust left",
		slog.String("table", r.c.Table), slog.String("key", worst.key.String()), slog.Int64("token", worst.token),
		slog.Duration("remaining", remaining), slog.Int("locks", len(locks)), slog.Int("attempts", attempts), slog.Any("err", locks[worst]))
}

// renewed notes that a lock has been renewed, and logs when no renewal fails.
func (f *failing) renewed(r *row) {
	f.mu.Lock()
	_, failed := f.locks[r]
	delete(f.locks, r)
	over := failed && len(f.locks) == 0 && f.inEpisode
	attempts := f.attempts
	if over {
		f.inEpisode, f.attempts = false, 0
	}
	f.mu.Unlock()
	if over {
		r.c.Log.LogAttrs(r.ctx, slog.LevelInfo, "leasehold: renewals succeed again",
			slog.String("table", r.c.Table), slog.Int("attempts", attempts))
	}
}

// forget drops a lock that has ended.
func (f *failing) forget(r *row) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.locks, r)
	if len(f.locks) == 0 {
		f.inEpisode = false
	}
}
