package behaviour_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/lab"
)

func TestBreakEndsOnlySpecifiedGrant(t *testing.T) {
	oneClient(t, func(t *testing.T, w *lab.World, a *leasehold.Client, _ *lab.Wire) {
		op, _ := w.Client(lab.Config())
		lock := w.Acquire(a, "job")
		r := get(w, op, "job")
		lab.Elapse(12 * time.Second) // the client renews the grant in this time, so the record has a new version
		lab.WantErr(t, "break of a renewed grant if unrenewed", op.Break(t.Context(), r, leasehold.BreakOptions{IfUnrenewed: true}), leasehold.ErrChanged)
		breaks(w, op, r)
		lab.Elapse(6 * time.Second)
		if lost := as[*leasehold.LostError](lock.Err()); lost == nil || lost.Reason != leasehold.LostBroken {
			t.Errorf("the holder: %v", lock.Err())
		}
		var changed *leasehold.ChangedError
		if err := op.Break(t.Context(), r, leasehold.BreakOptions{}); !errors.As(err, &changed) || !changed.Now.Released {
			t.Errorf("break of a free key: %v", err)
		}
		next := w.Acquire(a, "job")
		if err := op.Break(t.Context(), r, leasehold.BreakOptions{}); !errors.As(err, &changed) || changed.Now.Token != next.Token() {
			t.Errorf("break of another grant: %v", err)
		}
		w.Release(next)
		w.Delete("job")
		lab.WantErr(t, "break without a record", op.Break(t.Context(), r, leasehold.BreakOptions{}), leasehold.ErrNotFound)
		_ = lock.Release(t.Context())
	})
}

func TestErrorOfLostLockContainsOperatorAndReasonOfBreak(t *testing.T) {
	says := regexp.MustCompile(`^leasehold: lost job in table locks \(token \d+\) at [0-9:.]+: broken by operator/[a-z2-7]{4} at 0\d:\d\d:\d\d: "the disk\\nis full"(; the record shows a later grant, of test/[a-z2-7]{4})?$`)
	type row struct {
		after  func(*lab.World, *leasehold.Client)
		reason leasehold.LostReason
	}
	lab.Each(t, map[string]row{
		"free since then":           {func(*lab.World, *leasehold.Client) {}, leasehold.LostBroken},
		"granted to another client": {func(w *lab.World, c *leasehold.Client) { w.Acquire(c, "job") }, leasehold.LostReplaced},
		"granted and released since then": {func(w *lab.World, c *leasehold.Client) {
			w.Release(w.Acquire(c, "job"))
		}, leasehold.LostReplaced},
	}, func(t *testing.T, w *lab.World, tc row) {
		holder, _ := w.Client(lab.Config())
		next, _ := w.Client(lab.Config())
		cfg := lab.Config()
		cfg.Owner = "operator"
		op, _ := w.Client(cfg)
		renewing, releasing, detached := w.Acquire(holder, "job"), w.Acquire(holder, "other"), w.Acquire(holder, "third")
		grant := w.Detach(detached)
		for _, key := range []string{"job", "other", "third"} {
			r := get(w, op, key)
			lab.OK(t, op.Break(t.Context(), r, leasehold.BreakOptions{Reason: "the disk\nis full"}))
		}
		tc.after(w, next)
		lab.Elapse(6 * time.Second)
		var lost *leasehold.LostError
		if !errors.As(renewing.Err(), &lost) || lost.Reason != tc.reason || !says.MatchString(lost.Error()) {
			t.Errorf("the holder: %v", renewing.Err())
		}
		if b := lost.By; b == nil || b.Broken == nil || b.Broken.Reason != "the disk\nis full" || b.Broken.Token != renewing.Token() {
			t.Errorf("the record in the error: %+v", lost.By)
		}
		told := func(what string, err error) {
			t.Helper()
			if !errors.Is(err, leasehold.ErrLost) || !strings.Contains(err.Error(), ": broken by operator/") {
				t.Errorf("%s: %v", what, err)
			}
		}
		told("a release", releasing.Release(t.Context()))
		told("a resume", lab.ErrorOf(holder.Resume(t.Context(), grant)))
		_ = next.Close(t.Context())
	})
}

func TestErrorOfLostLockDoesNotMentionBreakOfPreviousGrant(t *testing.T) {
	oneClient(t, func(t *testing.T, w *lab.World, a *leasehold.Client, _ *lab.Wire) {
		op, _ := w.Client(lab.Config())
		first := w.Acquire(a, "job", leasehold.WithoutRenewal())
		breaks(w, op, first.Record())
		second := w.Acquire(a, "job", leasehold.WithoutRenewal())
		w.Update("job", map[string]types.AttributeValue{"grantId": lab.Str("another")})
		if err := second.Renew(t.Context()); !errors.Is(err, leasehold.ErrLost) || strings.Contains(err.Error(), "broken") {
			t.Errorf("the error of the next holder: %v", err)
		}
	})
}

func TestBreakRejectsTooLongOrInvalidReason(t *testing.T) {
	oneLock(t, func(t *testing.T, _ *lab.World, c *leasehold.Client, wire *lab.Wire, lock *leasehold.Lock) {
		wire.Sent()
		for _, reason := range []string{strings.Repeat("x", 1001), "\xff"} {
			lab.WantFailed(t, "break", c.Break(t.Context(), lock.Record(), leasehold.BreakOptions{Reason: reason}))
			lab.Want(t, "requests", len(wire.Sent()), 0)
		}
		lab.WantErr(t, "Break", c.Break(t.Context(), lock.Record(), leasehold.BreakOptions{Reason: strings.Repeat("x", 1000)}), nil)
	})
}

// overJSON encodes a grant as JSON and decodes it again, as if another process had received it.
func overJSON(t *testing.T, g leasehold.Grant) leasehold.Grant {
	t.Helper()
	b := lab.Must(json.Marshal(g))(t)
	var out leasehold.Grant
	lab.OK(t, json.Unmarshal(b, &out))
	return out
}

func TestGrantWhoseLeaseIsOutOfRangeCannotBeParsed(t *testing.T) {
	const most = math.MaxInt64 / int64(time.Millisecond)
	for ms, fits := range map[int64]bool{0: true, most: true, most + 1: false, -1: false} {
		var g leasehold.Grant
		err := json.Unmarshal(fmt.Appendf(nil, `{"key":"job","leaseMs":%d,"trustedUntil":"2026-11-21T12:00:00Z"}`, ms), &g)
		if (err == nil) != fits || fits && g.Lease.Milliseconds() != ms {
			t.Errorf("leaseMs %d: %v, %v", ms, g.Lease, err)
		}
	}
}

func TestGrantCannotBeParsedIfTrustedUntilIsOutOfRange(t *testing.T) {
	for at, fits := range map[string]bool{
		"0000-01-01T00:00:00Z": true, "9999-12-31T23:59:59Z": true,
		"0000-01-01T00:00:00+02:00": false, "9999-12-31T23:59:59-02:00": false, "0001-01-01T00:00:00Z": false,
	} {
		var g leasehold.Grant
		if err := json.Unmarshal([]byte(`{"key":"job","trustedUntil":"`+at+`"}`), &g); (err == nil) != fits {
			t.Errorf("%s: %v", at, err)
		}
	}
}

func TestDetachFailsWhileGrantHasSecondHandle(t *testing.T) {
	oneLock(t, func(t *testing.T, w *lab.World, c *leasehold.Client, _ *lab.Wire, lock *leasehold.Lock) {
		inner := share(w, c, lock)
		lab.WantFailed(t, "detach", lab.ErrorOf(lock.Detach()))
		lab.WantErr(t, "other handle", inner.Err(), nil)
		w.Release(inner)
		w.Release(lock)
	})
}

func TestDetachOfReleasedHandleReturnsErrReleased(t *testing.T) {
	oneLock(t, func(t *testing.T, w *lab.World, c *leasehold.Client, _ *lab.Wire, lock *leasehold.Lock) {
		inner := share(w, c, lock)
		w.Release(inner)
		lab.WantErr(t, "detach of a released handle", lab.ErrorOf(inner.Detach()), leasehold.ErrReleased)
		lab.WantErr(t, "the other handle", lock.Err(), nil)
		_ = lock.Release(t.Context())
	})
}

func TestResumeSucceedsAfterUnansweredRenewal(t *testing.T) {
	oneClient(t, func(t *testing.T, w *lab.World, a *leasehold.Client, wire *lab.Wire) {
		b, _ := w.Client(lab.Config())
		lock := w.Acquire(a, "deploy", leasehold.WithoutRenewal())
		// The renewal is applied, but the caller stops waiting before the reply comes.
		wire.SetFault(lab.Once(lab.Call.Renews, lab.Slow(time.Second)))
		lab.WantErr(t, "renewal", lock.Renew(w.Within(100*time.Millisecond)), leasehold.ErrUnknownOutcome)
		g := w.Detach(lock)
		w.Release(w.Resume(b, g))
		lab.Elapse(3 * time.Second)
	})
}

// The fuzzed text stands for JSON that another process has written. If it is parsed as a grant, the
// lease must not be negative. Encoding and parsing the grant again must not change any field but
// TrustedUntil, which the test does not compare.
func FuzzParsedGrantIsUnchangedByReencoding(f *testing.F) {
	const grant = `{"table":"locks","key":"job","owner":"o","token":42,"grant":"g","versions":["v"],"leaseMs":20000,"trustedUntil":"2026-11-21T12:00:00.000Z"}`
	for _, seed := range []string{
		grant, `{}`, `null`, `[]`, `{"key":"job"}`, strings.Replace(grant, "20000", "-1", 1),
		strings.Replace(grant, "20000", "18446744073710", 1), strings.Replace(grant, `"owner"`, `"sortKey":"s","owner"`, 1),
		strings.Replace(grant, "2026-11-21T12:00:00.000Z", "9999-12-31T23:59:59-12:00", 1),
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var g leasehold.Grant
		if err := json.Unmarshal(b, &g); err != nil {
			if json.Valid(b) && !strings.HasPrefix(err.Error(), "leasehold: grant") {
				t.Errorf("%s: %v", b, err)
			}
			return
		}
		var again leasehold.Grant
		rereads(t, g, &again)
		if again.TrustedUntil = g.TrustedUntil; g.Lease < 0 || !reflect.DeepEqual(g, again) {
			t.Errorf("%s is parsed as %+v. After encoding and parsing again: %+v", b, g, again)
		}
	})
}

// rereads encodes v as JSON, and decodes that JSON into the value to which target points.
func rereads(t *testing.T, v, target any) {
	t.Helper()
	b := lab.Must(json.Marshal(v))(t)
	if err := json.Unmarshal(b, target); err != nil {
		t.Fatalf("%+v was written as %s: %v", v, b, err)
	}
}

func TestDetachedGrantCanBeResumedOnlyOnce(t *testing.T) {
	oneClient(t, func(t *testing.T, w *lab.World, a *leasehold.Client, wire *lab.Wire) {
		lock := w.Acquire(a, "deploy", leasehold.WithoutRenewal(), leasehold.WithLease(10*time.Minute), leasehold.WithData([]byte("x")))
		wire.Sent()
		g := w.Detach(lock)
		lab.WantErr(t, "lock", lock.Err(), leasehold.ErrReleased)
		lab.Want(t, "requests", len(wire.Sent()), 0)
		lab.WantErr(t, "release of a detached lock", lock.Release(t.Context()), leasehold.ErrReleased)
		lab.Elapse(5 * time.Minute)
		g = overJSON(t, g)
		b, _ := w.Client(lab.Config())
		resumed := w.Resume(b, g)
		if resumed.Token() != lock.Token() || string(resumed.Record().Data) != "x" || resumed.Record().Owner != lock.Record().Owner {
			t.Errorf("resumed %+v", resumed.Record())
		}
		lab.Elapse(time.Hour) // the resumed lock is renewed meanwhile
		lab.WantErr(t, "resumed", resumed.Err(), nil)
		d, _ := w.Client(lab.Config())
		lab.WantErr(t, "resumed twice", lab.ErrorOf(d.Resume(t.Context(), g)), leasehold.ErrLost)
		w.Release(resumed)
		lab.WantErr(t, "resumed after the release", lab.ErrorOf(d.Resume(t.Context(), g)), leasehold.ErrLost)
	})
}

func TestExpiredGrantCanBeResumedUnlessKeyIsTakenOver(t *testing.T) {
	oneClient(t, func(t *testing.T, w *lab.World, a *leasehold.Client, _ *lab.Wire) {
		lock := w.Acquire(a, "deploy", leasehold.WithoutRenewal())
		g := w.Detach(lock)
		lab.Elapse(time.Hour)
		lock = w.Resume(a, g)
		g = w.Detach(lock)
		taken := holds(w, "deploy")
		_, err := a.Resume(t.Context(), g)
		if lost := as[*leasehold.LostError](err); lost == nil || lost.Reason != leasehold.LostReplaced || lost.By.Token != taken.Token() {
			t.Errorf("resume after a takeover: %v", err)
		}
		w.Release(taken)
	})
}

func TestResumeRejectsInvalidGrantBeforeAnyRequest(t *testing.T) {
	oneClient(t, func(t *testing.T, w *lab.World, c *leasehold.Client, wire *lab.Wire) {
		g := w.Detach(w.Acquire(c, "deploy"))
		wire.Sent()
		for says, change := range map[string]func(*leasehold.Grant){ // the map's key is a part of the expected error's text
			`of table "other"`: func(g *leasehold.Grant) { g.Table = "other" },
			"lacks its table, key, owner, token, id, versions, lease:": func(g *leasehold.Grant) { *g = leasehold.Grant{} },
			"lacks its id:":       func(g *leasehold.Grant) { g.ID = "" },
			"lacks its versions:": func(g *leasehold.Grant) { g.Versions = nil },
			"lacks its key:":      func(g *leasehold.Grant) { g.Key = leasehold.Key{} },
			"lacks its key, id:":  func(g *leasehold.Grant) { g.Key, g.ID = leasehold.Key{}, "" },
			"lacks its lease:":    func(g *leasehold.Grant) { g.Lease = 0 },
		} {
			bad := g
			change(&bad)
			lab.WantText(t, "resume", lab.ErrorOf(c.Resume(t.Context(), bad)), says)
			lab.Want(t, "requests", len(wire.Sent()), 0)
		}
	})
}
