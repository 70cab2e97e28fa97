//go:build linux

package peers

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"
)

// Patience is how long a test waits for an event that must happen, even on a busy machine. It is
// shorter than the time limit of go test. So only the waiting test fails, not all tests of the
// package.
const Patience = 3 * time.Minute

var errImpatient = fmt.Errorf("not within %v", Patience)

// Patiently returns a context that expires after Patience. It is cancelled when the test ends.
func Patiently(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), Patience)
	t.Cleanup(cancel)
	return ctx
}

// Run starts a peer's driver for a test and kills it when the test ends. The test is skipped if
// this package has no way to install the peer (ErrNotInstallable). The test fails if any other
// error prevents the installation or the start.
func Run(t testing.TB, p Peer, endpoint string, s Settings) *Driver {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	d, err := Start(ctx, p, endpoint, s)
	if errors.Is(err, ErrNotInstallable) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Kill(); err != nil {
			t.Error(err)
		}
	})
	return d
}

// Await is like [Call.Reply], but waits for at most Patience.
func (c *Call) Await(t testing.TB) (Reply, error) {
	t.Helper()
	ctx, cancel := context.WithTimeoutCause(t.Context(), Patience, errImpatient)
	defer cancel()
	return c.Reply(ctx)
}

// Ask sends a request and waits for its reply, for at most Patience.
func (d *Driver) Ask(t testing.TB, r Request) (Reply, error) {
	t.Helper()
	return d.Send(r).Await(t)
}

// Must sends a request and returns its reply. If the reply is an error, the test fails.
func (d *Driver) Must(t testing.TB, r Request) Reply {
	t.Helper()
	reply, err := d.Ask(t, r)
	if err != nil {
		t.Fatal(err)
	}
	return reply
}

// Acquire acquires a free key, and returns the number that identifies the lock in later
// requests. If the key is held, the test fails.
func (d *Driver) Acquire(t testing.TB, key string) (lock int64) {
	t.Helper()
	return d.Must(t, Request{Do: "acquire", Key: key}).ID
}

// Refused tries to acquire a key without waiting. The test fails unless the key is held.
func (d *Driver) Refused(t testing.TB, key string) {
	t.Helper()
	if _, err := d.Ask(t, Request{Do: "acquire", Key: key}); !errors.Is(err, ErrHeld) {
		t.Errorf("%s acquired %s without waiting: error %v, want ErrHeld", d.Peer.Name, key, err)
	}
}

// Release releases a lock.
func (d *Driver) Release(t testing.TB, lock int64) Reply {
	t.Helper()
	return d.Must(t, Request{Do: "release", Lock: lock})
}

// Held asks the library whether the lock is held, and returns the library's answer.
func (d *Driver) Held(t testing.TB, lock int64) bool {
	t.Helper()
	return d.Must(t, Request{Do: "held", Lock: lock}).Held
}
