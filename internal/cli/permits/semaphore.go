package permits

import (
	"context"
	"errors"
	"fmt"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/cli/failure"
	"github.com/leasehold-go/leasehold/internal/cli/misuse"
	"github.com/leasehold-go/leasehold/internal/cli/say"
	"github.com/leasehold-go/leasehold/internal/cli/store"
	"github.com/leasehold-go/leasehold/internal/cli/wording"
	"github.com/leasehold-go/leasehold/internal/holders"
	"github.com/leasehold-go/leasehold/internal/protocol"
	"github.com/leasehold-go/leasehold/semaphore"
)

// Semaphore is a semaphore as it is shown, with who holds its permits.
type Semaphore struct {
	Table   string       `json:"table"`
	Key     string       `json:"key"`
	Kind    string       `json:"kind"`
	Permits int          `json:"permits"`
	Before  int          `json:"before,omitempty"` // 0: not changed
	Taken   int          `json:"taken"`
	Holders []say.Record `json:"holders"`
}

// Read reads who holds permits of the n under key, dead holders included.
func Read(ctx context.Context, t *store.Table, key string, n int) (Semaphore, error) {
	counted, err := semaphore.New(t.Locks, key, n)
	if err != nil {
		return Semaphore{}, err
	}
	held, err := counted.Holders(ctx)
	sem := Semaphore{Table: t.Table, Key: key, Kind: protocol.KindSemaphore, Permits: n, Taken: len(held), Holders: make([]say.Record, len(held))}
	for i, r := range held {
		sem.Holders[i] = say.Record{Table: t.Table, Record: r}
	}
	return sem, err
}

// Stored returns how many permits are stored for a key.
func Stored(ctx context.Context, t *store.Table, key string) (int, error) {
	rows := protocol.PermitRowsOf(t.Proto)
	if rows == nil {
		return 0, misuse.Errorf("layout %s stores no number of permits: give every process the same -p", t.Layout.Name())
	}
	at := leasehold.Key(rows.Key(key))
	r, err := holders.Get(ctx, t.Locks, at)
	n, is := In(t.Proto, err)
	switch {
	case is:
		return n, nil
	case err == nil:
		return 0, misuse.Errorf("%s is a lock, not a semaphore, and it is %s: name a key that leasehold run -p uses, or once it is free start over with leasehold forget %s",
			wording.Name(key), HeldNow(r), wording.ShellKey(at))
	case errors.Is(err, leasehold.ErrNotFound):
		return 0, failure.Like(leasehold.ErrNotFound, fmt.Sprintf("%s is not a semaphore in %s yet: the first leasehold run -p N makes it one", wording.Name(key), t.Called()))
	}
	return 0, err
}

// HolderOf returns the one wanted holder of a permit of a semaphore.
func HolderOf(ctx context.Context, t *store.Table, key string, n int, wanted func(leasehold.Record) bool) (leasehold.Record, error) {
	sem, err := Read(ctx, t, key, n)
	if err != nil {
		return leasehold.Record{}, err
	}
	var found []leasehold.Record
	for _, r := range sem.Holders {
		if wanted(r.Record) {
			found = append(found, r.Record)
		}
	}
	what := fmt.Sprintf("%s is a semaphore with %s", wording.Name(key), Count(n))
	switch {
	case len(found) == 1:
		return found[0], nil
	case sem.Taken == 0:
		return leasehold.Record{}, failure.Exit(failure.CodeNo, misuse.Errorf("%s, and nobody holds one: nothing to break", what))
	case len(found) == 0:
		return leasehold.Record{}, failure.Exit(failure.CodeNo, misuse.Errorf("%s, and none of its %s has that grant: %s", what, wording.Count(sem.Taken, "holder", "holders"), sem.named()))
	}
	return leasehold.Record{}, misuse.Errorf("%s, held by %d: name one by its --token or its own key: %s", what, sem.Taken, sem.named())
}

// named names the holders in one line.
func (sem Semaphore) named() string {
	var names []string
	for _, r := range sem.Holders {
		name := wording.Key(r.Record.Key) + " (" + wording.Owner(r.Record.Owner)
		if r.Record.Token != 0 {
			name += fmt.Sprintf(", token %d", r.Record.Token)
		}
		names = append(names, name+")")
	}
	text := wording.FirstNames(names)
	if len(names) > wording.MostNamed {
		text = fmt.Sprintf("%s: see leasehold get %s", text, wording.ShellWord(sem.Key))
	}
	return text
}
