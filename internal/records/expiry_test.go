package records_test

import (
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/leasehold-go/leasehold/internal/lab"
	"github.com/leasehold-go/leasehold/internal/protocol"
)

var null types.AttributeValue = &types.AttributeValueMemberNULL{Value: true}

func TestTakeoverIsRejectedUntilMaxSkewAfterExpiry(t *testing.T) {
	onEachLayout(t, func(t *testing.T, b *bench) {
		if !b.isByClock() {
			return
		}
		step := b.Capabilities().LeaseStep
		b.hold()
		r := b.record()
		for _, tc := range []struct {
			// after is the time since the record's expiry, by the waiter's clock.
			after time.Duration
			lands bool
		}{
			{-lease, false}, {0, false}, {step, false}, {skew, false},
			{skew + step - time.Nanosecond, false}, {skew + step, true}, {time.Hour, true},
		} {
			b.hold()
			g := b.grant(g9)
			g.Dead, g.Now = &r, r.ExpiresAt.Add(tc.after)
			lab.Want(t, fmt.Sprintf("%v after its expiry: taken over", tc.after), b.lands(b.Grant(g)), tc.lands)
		}
		// A waiter tries to take the key over at the moment when the holder's clock shows the end of
		// the lease. DynamoDB must reject the takeover, even if the waiter's clock is ahead of the
		// holder's clock, or behind it, by the skew.
		for _, apart := range []time.Duration{-skew, 0, skew} {
			b.hold() // sends its writes at the time "granted", by the holder's clock
			g := b.grant(g9)
			g.Dead, g.Now = &r, granted.Add(lease+apart)
			b.rejects(b.Grant(g), "taken over as the lease ends, by a clock that differs by %v", apart)
		}
	})
}

func TestTakeoverOfChangedRecordIsRejected(t *testing.T) {
	onEachLayout(t, func(t *testing.T, b *bench) {
		old := granted.Add(-time.Hour)
		var peer protocol.Item
		var next map[string]protocol.Item
		switch b.Name() {
		case "dynamo-dlm":
			of := func(code string, at time.Time) protocol.Item {
				return protocol.Item{"release_code": text(code), "expires": decimal(strconv.FormatInt(at.Unix(), 10))}
			}
			peer = of("a", old)
			next = map[string]protocol.Item{"another grant": of("b", old), "not dead": of("a", granted)}
		case "dyndb-mutex":
			of := func(name string, at time.Time) protocol.Item {
				return protocol.Item{"holder": text(name), "expire_ts": decimal(strconv.FormatInt(at.UnixMilli(), 10))}
			}
			peer = of("a", old)
			next = map[string]protocol.Item{"another holder": of("b", old), "another grant": of("a", old.Add(time.Millisecond)), "not dead": of("a", granted)}
		default:
			return // skipped: for the other layouts, TestGrantIsAppliedOnlyIfKeyIsFreeOrHolderDead checks this
		}
		b.put(peer)
		r := b.record()
		take := func() *protocol.Write {
			g := b.grant(g9)
			g.Dead = &r
			return b.Grant(g)
		}
		for name, item := range next {
			b.put(item)
			b.rejects(take(), "%s: taken over", name)
			if b.lands(b.Break(r, protocol.Break{Version: v3, Expires: granted})) && name != "not dead" {
				t.Errorf("%s: broken", name)
			}
		}
		b.put(peer)
		if !b.lands(take()) {
			t.Error("not taken over")
		}
	})
}

func TestRecordDoesNotExpireBeforeLeaseEnds(t *testing.T) {
	onEachLayout(t, func(t *testing.T, b *bench) {
		if !b.isByClock() {
			return
		}
		step := b.Capabilities().LeaseStep
		for _, now := range []time.Time{granted, granted.Add(1), granted.Add(time.Second - 1), granted.Add(500*time.Millisecond + 1)} {
			for _, d := range []time.Duration{time.Second, time.Second + 1, 1500 * time.Millisecond, lease - 1} {
				b.put(nil)
				g := b.grant(g1)
				g.Now, g.Lease = now, d
				b.must(b.Grant(g))
				if at := b.record().ExpiresAt; at.Before(now.Add(d)) || !at.Before(now.Add(d+step)) {
					t.Errorf("a lease of %v from %v on expires at %v", d, now, at)
				}
			}
		}
	})
}

func TestExpiryLaterThanYear9999IsReadAsEndOf9999(t *testing.T) {
	onEachLayout(t, func(t *testing.T, b *bench) {
		if !b.isByClock() {
			return
		}
		_, held := b.hold()
		for _, name := range []string{"expires", "expire_ts"} {
			if held[name] != nil {
				held[name] = decimal("99999999999999999999")
			}
		}
		b.put(held)
		if at, want := b.record().ExpiresAt, time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC); !at.Equal(want) {
			t.Errorf("expires at %v, want %v", at, want)
		}
	})
}

// collected returns the time from which TTL may delete the record. It returns
// false if the record has no such time.
func (b *bench) collected() (time.Time, bool) {
	b.Helper()
	n, ok := b.item()[b.Schema().TTL].(*types.AttributeValueMemberN)
	if !ok {
		return time.Time{}, false
	}
	s := lab.Must(strconv.ParseInt(n.Value, 10, 64))(b)
	return time.Unix(s, 0), true
}

// isKept fails the test if TTL may delete the record earlier than d after the grant, whose time is
// in the variable "granted". The parameter "when" names the last write of the record.
func (b *bench) isKept(when string, d time.Duration) {
	b.Helper()
	if until, has := b.collected(); has && until.Before(granted.Add(d)) {
		b.Errorf("%s, TTL may delete the record at %v", when, until)
	}
}

func TestTTLDoesNotDeleteHeldRecord(t *testing.T) {
	onEachLayout(t, func(t *testing.T, b *bench) {
		h, _ := b.hold()
		b.isKept("while the key is held", lease+time.Hour)
		if !b.Capabilities().KeepOnRelease {
			return
		}
		retained := granted.Add(24 * time.Hour)
		b.must(b.Release(h, protocol.Release{Version: v3, Expires: retained}))
		if until, has := b.collected(); has != (b.Schema().TTL != "") || has && !until.Equal(retained) {
			t.Errorf("after the release, TTL may delete the record at %v, %v", until, has)
		}
		b.must(b.Grant(b.grant(g9)))
		b.isKept("after the next grant", lease+time.Hour)
	})
}

// A client computes the TTL value of a record from its own clock, but TTL uses DynamoDB's. In a
// layout without MaxSkew, the client's clock may be days behind. DynamoDB accepts its requests,
// because the SDK corrects the time of signatures.
func TestTTLDoesNotDeleteHeldRecordIfClientClockIsDaysBehind(t *testing.T) {
	onEachLayout(t, func(t *testing.T, b *bench) {
		if b.isByClock() {
			return // skipped: in this layout, clients' clocks are wrong by at most MaxSkew
		}
		const slow = 6 * 24 * time.Hour
		g := b.grant(g1)
		g.Now = granted.Add(-slow)
		b.must(b.Grant(g))
		b.isKept("after the grant", lease)
		h := protocol.Hold{Key: b.lockKey(), Owner: b.record().Owner, Grants: []string{g1}, Token: b.record().Token, Versions: []string{g1}}
		b.must(b.Renew(h, protocol.Renewal{Version: v2, Lease: lease, Now: granted.Add(-slow)}))
		b.isKept("after the renewal", lease)
	})
}

func TestGrantRemovesExpiresAtAttribute(t *testing.T) {
	onEachLayout(t, func(t *testing.T, b *bench) {
		h, held := b.hold()
		if held["leaseDuration"] == nil {
			return // skipped: clients of layout native do not read this layout's records
		}
		b.must(b.Release(h, protocol.Release{Version: v3, Expires: granted}))
		item := b.item()
		item["expiresAt"] = decimal("1764230400")
		b.put(item)
		b.must(b.Grant(b.grant(g9)))
		lab.Want(t, "time when TTL may delete a held record", b.item()["expiresAt"], nil)
	})
}
