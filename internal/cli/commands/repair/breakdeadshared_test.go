package repair

import (
	"errors"
	"io"
	"log/slog"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/cli/failure"
	"github.com/leasehold-go/leasehold/internal/protocol"
)

// sharer is a client with a shared lease, and a network of its own.
type sharer struct {
	b       *breaking
	locks   *leasehold.Client
	network *throttling
	row     protocol.Item // the key of its session's row
}

// sharer is a client that has held "job/…" under a shared lease, and still holds held.
func (b *breaking) sharer(held ...string) *sharer {
	b.t.Helper()
	s := &sharer{b: b, network: &throttling{}}
	db := dynamodb.New(b.db.Options(), func(o *dynamodb.Options) { s.network.next, o.HTTPClient = o.HTTPClient, s.network })
	var err error
	if s.locks, err = leasehold.New(db, leasehold.Config{Table: "locks", SharedLease: true, Logger: slog.New(slog.DiscardHandler)}); err != nil {
		b.t.Fatal(err)
	}
	brief, err := s.locks.Acquire(b.t.Context(), "brief")
	if err != nil {
		b.t.Fatal(err)
	}
	id := brief.Record().Session
	s.row = protocol.Item{"key": &types.AttributeValueMemberS{Value: "leasehold/session/" + id}}
	if err := brief.Release(b.t.Context()); err != nil {
		b.t.Fatal(err)
	}
	for _, key := range held {
		if _, err = s.locks.Acquire(b.t.Context(), key); err != nil {
			b.t.Fatal(err)
		}
	}
	return s
}

// stored is the session's row.
func (s *sharer) stored() protocol.Item {
	s.b.t.Helper()
	out, err := s.b.db.GetItem(s.b.t.Context(), &dynamodb.GetItemInput{TableName: aws.String("locks"), Key: s.row})
	if err != nil {
		s.b.t.Fatal(err)
	}
	return out.Item
}

func (s *sharer) store(row protocol.Item) {
	s.b.t.Helper()
	if _, err := s.b.db.PutItem(s.b.t.Context(), &dynamodb.PutItemInput{TableName: aws.String("locks"), Item: row}); err != nil {
		s.b.t.Fatal(err)
	}
}

// ended reports whether the row is marked dead, and when TTL may delete it.
func (s *sharer) ended() (bool, time.Duration) {
	row := s.stored()
	expires, ok := row["expiresAt"].(*types.AttributeValueMemberN)
	if !ok {
		return row["dead"] != nil, 0
	}
	at, _ := strconv.ParseInt(expires.Value, 10, 64)
	return row["dead"] != nil, time.Until(time.Unix(at, 0))
}

// close closes the client. What becomes of its session is not the question any more.
func (s *sharer) close() {
	s.network.on.Store(false)
	_ = s.locks.Close(s.b.t.Context())
}

func TestBreakDeadEndsTheSharedLeaseOfADeadClientThatNobodyWaitsFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBreaking(t, strings.NewReader("y\n"))
		gone, living := b.sharer(), b.sharer()
		gone.network.on.Store(true)
		if err := b.run(t.Context(), byDefault()); err != nil {
			t.Fatal(err)
		}
		if at := b.first("End 1 dead shared lease? [y/N] "); at < 20*time.Second || at > 25*time.Second {
			t.Errorf("it asked after %v:\n%s", at, &b.stderr)
		}
		if dead, left := gone.ended(); !dead || left < 7*24*time.Hour-time.Minute || left > 7*24*time.Hour {
			t.Errorf("the dead client's row: marked %v, TTL deletes it in %v", dead, left)
		}
		if text := "ended the shared lease leasehold/session/"; strings.Count(b.stdout.String(), text) != 1 || strings.Count(b.stdout.String(), "\n") != 1 {
			t.Errorf("stdout:\n%s", &b.stdout)
		}
		if dead, _ := living.ended(); dead {
			t.Error("the shared lease of a living client was ended")
		}
		// All that were dead are ended, and the living one stays.
		if err := b.run(t.Context(), byDefault()); err == nil || !strings.Contains(err.Error(), "no dead holders") {
			t.Errorf("again: %v", err)
		}
		living.close()
		gone.close()
		b.close()
	})
}

func TestBreakDeadInJSONSaysTheRowOfASharedLeaseThatItEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBreaking(t, strings.NewReader(""))
		gone := b.sharer()
		gone.network.on.Store(true)
		b.command.JSON = true
		f := byDefault()
		f.yes = true
		if err := b.run(t.Context(), f); err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{`"outcome":"broken"`, `"key":"` + gone.row["key"].(*types.AttributeValueMemberS).Value + `"`} {
			if !strings.Contains(b.stdout.String(), want) {
				t.Errorf("no %s in %s", want, &b.stdout)
			}
		}
		if dead, _ := gone.ended(); !dead {
			t.Error("it was not ended")
		}
		gone.close()
		b.close()
	})
}

func TestLocksUnderADeadSharedLeaseAreBrokenBesideIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBreaking(t, strings.NewReader("y\n"))
		var keys []string
		for i := range breaksAtOnce + 3 {
			keys = append(keys, "job/"+strconv.Itoa(i))
		}
		gone := b.sharer(keys...)
		gone.network.on.Store(true)
		if err := b.run(t.Context(), byDefault()); err != nil {
			t.Errorf("%v:\n%s", err, &b.stderr)
		}
		if b.first("Break the grants of 19 dead holders and end 1 dead shared lease? [y/N] ") < 0 {
			t.Errorf("it did not ask:\n%s", &b.stderr)
		}
		for _, key := range keys {
			if r, err := b.table.Locks.Get(t.Context(), key); err != nil || !r.Released {
				t.Errorf("%s: released: %v, %v", key, r.Released, err)
			}
		}
		if dead, _ := gone.ended(); !dead {
			t.Error("the shared lease was not ended")
		}
		gone.close()
		b.close()
	})
}

func TestASharedLeaseIsLeftToTheCallThatNamesNoPrefix(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBreaking(t, strings.NewReader("y\n"))
		gone := b.sharer("job/1")
		gone.network.on.Store(true)
		b.prefix = "job/"
		if err := b.run(t.Context(), byDefault()); err != nil {
			t.Fatal(err)
		}
		if dead, _ := gone.ended(); dead {
			t.Error("the shared lease of other keys too was ended")
		}
		b.command.Stdin, b.prefix = strings.NewReader("y\n"), "leasehold/session/"
		if err := b.run(t.Context(), byDefault()); err != nil {
			t.Fatal(err)
		}
		if dead, _ := gone.ended(); !dead {
			t.Error("its own key named it, and it was not ended")
		}
		gone.close()
		b.close()
	})
}

// meanwhile says yes once something has happened.
type meanwhile struct {
	then func()
	text io.Reader
}

func (m *meanwhile) Read(p []byte) (int, error) {
	if m.then != nil {
		m.then()
		m.then = nil
	}
	return m.text.Read(p)
}

func TestASharedLeaseThatIsRenewedBetweenTheWatchAndTheWriteIsNotEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		answer := &meanwhile{text: strings.NewReader("y\n")}
		b := newBreaking(t, answer)
		back := b.sharer()
		back.network.on.Store(true)
		answer.then = func() { // it renews
			row := back.stored()
			row["recordVersionNumber"] = &types.AttributeValueMemberS{Value: protocol.NewVersion()}
			back.store(row)
		}
		var code *failure.ExitError
		if err := b.run(t.Context(), byDefault()); !errors.As(err, &code) || code.Code != failure.CodeNo {
			t.Errorf("it ended with %v", err)
		}
		if dead, _ := back.ended(); dead {
			t.Error("it was ended")
		}
		if strings.Contains(b.stdout.String(), "ended") || !strings.Contains(b.stderr.String(), "leasehold/session/") {
			t.Errorf("stdout:\n%s\nstderr:\n%s", &b.stdout, &b.stderr)
		}
		back.close()
		b.close()
	})
}

func TestADamagedRowOfASharedLeaseIsLeftAndTheOthersAreEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBreaking(t, strings.NewReader("y\n"))
		damaged, gone := b.sharer("job/1"), b.sharer("job/2")
		damaged.network.on.Store(true)
		gone.network.on.Store(true)
		row := damaged.stored()
		row["recordVersionNumber"] = &types.AttributeValueMemberN{Value: "1"}
		damaged.store(row)
		var code *failure.ExitError
		if err := b.run(t.Context(), byDefault()); !errors.As(err, &code) || code.Code != failure.CodeTrouble {
			t.Errorf("it ended with %v", err)
		}
		if now := damaged.stored(); !reflect.DeepEqual(now, row) {
			t.Errorf("the damaged row is %v, and was %v", now, row)
		}
		if !strings.Contains(b.stderr.String(), "recordVersionNumber") {
			t.Errorf("nothing says what is damaged:\n%s", &b.stderr)
		}
		if dead, _ := gone.ended(); !dead {
			t.Errorf("the other was not ended:\n%s", &b.stderr)
		}
		for key, released := range map[string]bool{"job/1": false, "job/2": true} {
			if r, err := b.table.Locks.Get(t.Context(), key); err != nil || r.Released != released {
				t.Errorf("%s: released: %v, %v", key, r.Released, err)
			}
		}
		gone.close()
		damaged.close()
		b.close()
	})
}
