package behaviour_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/lab"
)

// everyAttribute returns one attribute of each type that DynamoDB has.
func everyAttribute() map[string]types.AttributeValue {
	return map[string]types.AttributeValue{
		"s": lab.Str("text"), "n": lab.Num("7"), "b": &types.AttributeValueMemberB{Value: []byte("bytes")},
		"bool": &types.AttributeValueMemberBOOL{Value: true}, "null": &types.AttributeValueMemberNULL{Value: true},
		"ss": &types.AttributeValueMemberSS{Value: []string{"one"}}, "ns": &types.AttributeValueMemberNS{Value: []string{"1"}},
		"bs": &types.AttributeValueMemberBS{Value: [][]byte{[]byte("bytes")}},
		"l":  &types.AttributeValueMemberL{Value: []types.AttributeValue{lab.Str("text")}},
		"m":  &types.AttributeValueMemberM{Value: map[string]types.AttributeValue{"s": lab.Str("text")}},
	}
}

// spoil overwrites the memory to which a Record points: its data and its attributes.
func spoil(r leasehold.Record) {
	copy(r.Data, "spoiled!")
	spoilAttributes(r.Attributes)
}

func spoilAttributes(attributes map[string]types.AttributeValue) {
	for name, v := range attributes {
		switch v := v.(type) {
		case *types.AttributeValueMemberS:
			v.Value = "spoiled"
		case *types.AttributeValueMemberN:
			v.Value = "-1"
		case *types.AttributeValueMemberB:
			copy(v.Value, "spoiled")
		case *types.AttributeValueMemberBOOL:
			v.Value = false
		case *types.AttributeValueMemberNULL:
			v.Value = false
		case *types.AttributeValueMemberSS:
			v.Value[0] = "spoiled"
		case *types.AttributeValueMemberNS:
			v.Value[0] = "-1"
		case *types.AttributeValueMemberBS:
			copy(v.Value[0], "spoiled")
		case *types.AttributeValueMemberL:
			v.Value[0].(*types.AttributeValueMemberS).Value = "spoiled"
		case *types.AttributeValueMemberM:
			v.Value["s"].(*types.AttributeValueMemberS).Value = "spoiled"
		}
		delete(attributes, name)
	}
}

func TestReturnedRecordIsCopyThatCallersMayChange(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		cfg := lab.Config()
		cfg.OnEvent = func(_ context.Context, e leasehold.Event) {
			if e.Holder != nil {
				spoil(*e.Holder)
			}
		}
		c, _ := w.Client(cfg)
		is := func(what string, r leasehold.Record) {
			t.Helper()
			if !bytes.Equal(r.Data, []byte("data")) || !reflect.DeepEqual(r.Attributes, everyAttribute()) {
				t.Errorf("%s has data %q and attributes %v", what, r.Data, r.Attributes)
			}
		}
		given := everyAttribute()
		lock := w.Acquire(c, "job", leasehold.WithData([]byte("data")), leasehold.WithAttributes(given), leasehold.WithoutRenewal())
		spoilAttributes(given)
		is("the record", lock.Record())
		spoil(lock.Record())
		is("the record, after a copy was changed,", lock.Record())
		copy(lock.Record().Data, "spoiled!")
		is("the record, after the data of a copy was changed,", lock.Record())

		// TryAcquire fails, because the same client already holds the key.
		var held *leasehold.HeldError
		if _, err := c.TryAcquire(t.Context(), "job"); !errors.As(err, &held) {
			t.Fatal(err)
		}
		is("the holder", held.Holder)
		spoil(held.Holder)
		is("the record, after the copy in the error was changed,", lock.Record())

		// The holder does not renew its lock, and another client takes the lock over.
		_, _, next := w.Holding(cfg)
		for range 2 {
			dead, ok := next.TookOver()
			if !ok {
				t.Fatal("TookOver returned no record")
			}
			is("the dead holder's record", dead)
			spoil(dead)
		}
	})
}

func TestRecordShowsTimeOfLastWrite(t *testing.T) {
	oneClient(t, func(t *testing.T, w *lab.World, c *leasehold.Client, _ *lab.Wire) {
		is := func(what string, r leasehold.Record, renewed, released bool) {
			t.Helper()
			if at := r.WrittenAt; !at.Equal(time.Now().Truncate(time.Millisecond)) {
				t.Errorf("%s: written at %v, but the time is %v", what, at, time.Now())
			}
			b, err := json.Marshal(r)
			if err != nil || bytes.Contains(b, []byte(`"renewedAt":"`)) != renewed || bytes.Contains(b, []byte(`"releasedAt":"`)) != released {
				t.Errorf("%s: %s, %v", what, b, err)
			}
		}
		lock := w.Acquire(c, "job", leasehold.WithoutRenewal())
		is("granted", get(w, c, "job"), false, false)
		lab.Elapse(3 * time.Second)
		renew(w, lock)
		is("renewed", get(w, c, "job"), true, false)
		lab.Elapse(3 * time.Second)
		w.Release(lock)
		is("released", get(w, c, "job"), false, true)
		w.Put(map[string]types.AttributeValue{"key": lab.Str("job"), "ownerName": lab.Str("java"), "leaseDuration": lab.Str("20000"), "recordVersionNumber": lab.Str("3f9c1d2e-0b1a-4c5d-8e9f-001122334455")})
		lab.Want(t, "time of the last write by another library", get(w, c, "job").WrittenAt, time.Time{})
	})
}

func TestRecordJSONShowsHowLongLockHasBeenHeld(t *testing.T) {
	oneClient(t, func(t *testing.T, w *lab.World, c *leasehold.Client, _ *lab.Wire) {
		held := func(what string, r leasehold.Record, want any) {
			t.Helper()
			var got map[string]any
			if b, err := json.Marshal(r); err != nil || json.Unmarshal(b, &got) != nil || got["heldMs"] != want {
				t.Errorf("%s: %s, %v; want heldMs %v", what, b, err, want)
			}
		}
		lock := w.Acquire(c, "job")
		lab.Elapse(time.Minute) // the lock is renewed in this minute, and a renewal must not change the time since the grant
		r := get(w, c, "job")
		held("a minute later", r, 60_000.0)
		r.GrantedAt = time.Now().Add(time.Hour)
		held("by a clock that is ahead", r, nil)
		w.Release(lock)
		held("released", get(w, c, "job"), nil)
	})
}

func TestRecordShowsHowPreviousGrantOfKeyEnded(t *testing.T) {
	oneClient(t, func(t *testing.T, w *lab.World, a *leasehold.Client, _ *lab.Wire) {
		b, _ := w.Client(lab.Config())
		shown := func(what string, want *leasehold.End) leasehold.Record {
			t.Helper()
			r := get(w, b, "job")
			got := r.Former
			if (got == nil) != (want == nil) || got != nil && (got.Owner != want.Owner || got.Token != want.Token || got.How != want.How || got.At.IsZero()) {
				t.Errorf("%s: %+v", what, got)
			}
			text, err := json.Marshal(r)
			if err != nil || strings.Contains(string(text), `"former":{`) != (want != nil) {
				t.Errorf("%s: %s, %v", what, text, err)
			}
			return r
		}
		lock := w.Acquire(a, "job")
		shown("the first grant", nil)
		w.Release(lock)
		shown("released", &leasehold.End{Owner: lock.Record().Owner, Token: lock.Token(), How: "released"})
		lock = w.Acquire(a, "job")
		r := shown("granted after a release", nil)
		breaks(w, b, r)
		shown("broken", &leasehold.End{Owner: lock.Record().Owner, Token: lock.Token(), How: "broken"})
		broken := lock.Token()
		lock = w.Acquire(a, "job", leasehold.WithoutRenewal())
		shown("granted after a break", &leasehold.End{Token: broken, How: "broken"})
		owner, token := lock.Record().Owner, lock.Token()
		w.Detach(lock)
		next := w.Acquire(b, "job")
		shown("taken over", &leasehold.End{Owner: owner, Token: token, How: "taken over"})
		w.Release(next)
		shown("released after a takeover", &leasehold.End{Owner: next.Record().Owner, Token: next.Token(), How: "released"})
		next = w.Acquire(b, "job")
		shown("granted after that release", nil)
		w.Release(next)
	})
}

func TestRecordJSONOmitsFieldsWhoseValueIsUnknown(t *testing.T) {
	at := time.UnixMilli(1764230400000)
	var queue leasehold.Record
	queue.Waiting = append(queue.Waiting, struct {
		Owner string
		Since time.Time
	}{"next", at})
	for name, tc := range map[string]struct {
		record leasehold.Record
		want   string // the expected JSON after the field of the key
	}{
		"a grant of another library": {leasehold.Record{}, `"state":"held","owner":"","version":"","leaseMs":0}`},
		"a free key":                 {leasehold.Record{Released: true}, `"state":"released","owner":"","version":"","leaseMs":0}`},
		"a broken grant": {
			leasehold.Record{Broken: &leasehold.End{By: "ops", At: at, Reason: "stuck", Token: 7}},
			`"state":"held","owner":"","version":"","leaseMs":0,"broken":{"by":"ops","at":"2025-11-27T08:00:00.000Z","reason":"stuck","token":7}}`,
		},
		"a waiter": {queue, `"state":"held","owner":"","version":"","leaseMs":0,"waiting":[{"owner":"next","since":"2025-11-27T08:00:00.000Z"}]}`},
	} {
		got, err := json.Marshal(tc.record)
		if want := `{"key":"",` + tc.want; err != nil || string(got) != want {
			t.Errorf("%s: %s, %v; want %s", name, got, err, want)
		}
	}
}
