package localdynamo

import (
	"bytes"
	"errors"
	"maps"
	"testing"

	"go.uber.org/goleak"
	"pgregory.net/rapid"
)

func contents(t *rapid.T, m *memory) map[string]string {
	all := map[string]string{}
	var last []byte
	ok(t, m.View(func(tx Tx) error {
		for key, value := range tx.Range(nil, nil) {
			if last != nil && bytes.Compare(last, key) >= 0 {
				t.Fatalf("%q comes after %q", key, last)
			}
			last = bytes.Clone(key)
			all[string(key)] = string(value)
			if got := tx.Get(key); !bytes.Equal(got, value) {
				t.Fatalf("Get(%q) = %q, Range says %q", key, got, value)
			}
		}
		return nil
	}))
	return all
}

func TestMemoryStoreUpdateIsAtomic(t *testing.T) {
	boom := errors.New("boom")
	rapid.Check(t, func(t *rapid.T) {
		m, model := newMemory(), map[string]string{}
		key := rapid.StringOfN(rapid.RuneFrom([]rune("ab")), 1, 3, -1)
		for range rapid.IntRange(1, 10).Draw(t, "transactions") {
			next := maps.Clone(model)
			fails := rapid.Bool().Draw(t, "fails")
			err := m.Update(func(tx Tx) error {
				for range rapid.IntRange(0, 6).Draw(t, "changes") {
					k := key.Draw(t, "key")
					if rapid.Bool().Draw(t, "put") {
						v := rapid.String().Draw(t, "value")
						next[k] = v
						if err := tx.Put([]byte(k), []byte(v)); err != nil {
							return err
						}
						continue
					}
					delete(next, k)
					if err := tx.Delete([]byte(k)); err != nil {
						return err
					}
				}
				if fails {
					return boom
				}
				return nil
			})
			switch {
			case fails && !errors.Is(err, boom), !fails && err != nil:
				t.Fatal(err)
			case !fails:
				model = next
			}
			same(t, "contents", contents(t, m), model)
		}
	})
}

func TestMemoryStoreViewRejectsWrites(t *testing.T) {
	m := newMemory()
	if err := m.View(func(tx Tx) error { return tx.Put([]byte("k"), nil) }); !errors.Is(err, errReadOnly) {
		t.Errorf("Put: %v", err)
	}
	if err := m.View(func(tx Tx) error { return tx.Delete([]byte("k")) }); !errors.Is(err, errReadOnly) {
		t.Errorf("Delete: %v", err)
	}
}

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }
