package behaviour_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/lab"
)

func TestGetReturnsRecordOfHeldAndReleasedLock(t *testing.T) {
	oneClient(t, func(t *testing.T, w *lab.World, c *leasehold.Client, _ *lab.Wire) {
		lab.WantErr(t, "none", lab.ErrorOf(c.Get(t.Context(), "job")), leasehold.ErrNotFound)
		lock := w.Acquire(c, "job")
		if r, err := c.Get(t.Context(), "job"); err != nil || r.Token != lock.Token() || r.Released {
			t.Errorf("held: %+v, %v", r, err)
		}
		w.Release(lock)
		if r, err := c.Get(t.Context(), "job"); err != nil || !r.Released {
			t.Errorf("released: %+v, %v", r, err)
		}
		w.Put(map[string]types.AttributeValue{"key": lab.Str("bad")})
		lab.WantAs[*leasehold.RecordError](t, "damaged record", lab.ErrorOf(c.Get(t.Context(), "bad")))
	})
}

func TestListReportsDamagedRecordAndContinues(t *testing.T) {
	oneClient(t, func(t *testing.T, w *lab.World, c *leasehold.Client, _ *lab.Wire) {
		for _, key := range []string{"a/1", "a/2", "b/1"} {
			w.Release(w.Acquire(c, key))
		}
		w.Put(map[string]types.AttributeValue{"key": lab.Str("a/bad")})
		var good, bad int
		for r, err := range c.List(t.Context(), leasehold.ListOptions{Prefix: "a/"}) {
			var damaged *leasehold.RecordError
			switch {
			case errors.As(err, &damaged) && damaged.Key.Partition == "a/bad":
				bad++
			case err == nil && r.Key.Partition[:2] == "a/":
				good++
			default:
				t.Errorf("%+v, %v", r, err)
			}
		}
		lab.Want(t, "records", good, 2)
		lab.Want(t, "damaged records", bad, 1)
		n := 0
		for r, err := range c.List(t.Context(), leasehold.ListOptions{Partition: "b/1"}) {
			lab.WantErr(t, "listed", err, nil)
			lab.Want(t, "key", r.Key.Partition, "b/1")
			n++
		}
		lab.Want(t, "records in the partition", n, 1)
		w.Delete("a/bad")
		keys := func(opts leasehold.ListOptions) (keys []leasehold.Key) {
			for r, err := range c.List(t.Context(), opts) {
				lab.OK(t, err)
				keys = append(keys, r.Key)
			}
			return keys
		}
		all := keys(leasehold.ListOptions{})
		if rest := keys(leasehold.ListOptions{After: all[0]}); len(all) != 3 || len(rest) != 2 || rest[0] != all[1] {
			t.Errorf("all %v, behind the first %v", all, rest)
		}
	})
}

func TestListSkipsSessionRows(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, _ := w.Client(lab.SharedConfig())
		var want []string // keys that sort before the session's row, and keys that sort after it
		for letter := 'A'; letter <= 'z'; letter++ {
			want = append(want, string(letter))
			w.Acquire(c, string(letter))
		}
		var got []string
		for r, err := range c.List(t.Context(), leasehold.ListOptions{}) {
			if got = append(got, r.Key.Partition); err != nil {
				t.Errorf("listed %v: %v", r.Key, err)
			}
		}
		if slices.Sort(got); !slices.Equal(got, want) {
			t.Errorf("listed %q", got)
		}
		lab.WantAs[*leasehold.RecordError](t, "session read as a lock", lab.ErrorOf(c.Get(t.Context(), w.Sessions()[0])))
		_ = c.Close(t.Context())
	})
}
