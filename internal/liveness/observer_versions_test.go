package liveness

import (
	"slices"
	"testing"
	"time"

	"github.com/leasehold-go/leasehold/internal/decide"
	"github.com/leasehold-go/leasehold/internal/protocol"
)

// at returns an instant at which both clocks show d.
func at(d time.Duration) decide.Instant { return decide.Instant{Mono: d, Boot: d} }

// shown records that a reply has shown a record of the key at the time d.
func (v *Versions) shown(name, id, grant string, d time.Duration) Version {
	return v.Note(key(name), protocol.Record{Version: id, Grant: grant, Lease: time.Second}, at(d))
}

func keysOf(v *Versions) []string {
	var names []string
	for key := range v.byKey {
		names = append(names, key.Partition)
	}
	slices.Sort(names)
	return names
}

func key(name string) protocol.Key { return protocol.Key{Partition: name} }

// of returns the version that is stored for a key. It returns false if no version is stored.
func (v *Versions) of(key protocol.Key) (Version, bool) {
	e := v.byKey[key]
	if e == nil {
		return Version{}, false
	}
	return e.Version, true
}

func TestRecordVersionAndGrantAreDatedByTheirFirstRead(t *testing.T) {
	v := NewVersions(10)
	for _, tc := range []struct {
		id, grant      string
		now            time.Duration
		since, granted time.Duration
	}{
		{"1", "g", 1, 1, 1},
		{"1", "g", 2, 1, 1},  // the same version as before
		{"2", "g", 3, 3, 1},  // another version, with the same grant id: a renewal
		{"3", "h", 4, 4, 4},  // another grant id: another holder
		{"3", "", 5, 4, 4},   // the same version as before, so the grant is the same, although its id is missing
		{"1", "g", 6, 6, 6},  // a version that was replaced comes back, and counts as new
		{"4", "g", 7, 7, 6},  // another version, with the same grant id: a renewal
		{"4", "g", 99, 7, 6}, // the same version as before, much later
	} {
		got := v.shown("a", tc.id, tc.grant, tc.now)
		if got.Since != at(tc.since) || got.Granted != tc.granted {
			t.Errorf("%+v: %+v", tc, got)
		}
		if known, ok := v.of(key("a")); !ok || known != got {
			t.Errorf("stored is %+v, returned was %+v", known, got)
		}
	}
	v.Forget(key("a"))
	if known, ok := v.of(key("a")); ok {
		t.Errorf("after Forget, the key has version %+v", known)
	}
	if got := v.shown("a", "4", "g", 100); got.Since.Mono != 100 || got.Granted != 100 {
		t.Errorf("after Forget, the version has an earlier time: %+v", got)
	}
}

func TestFullVersionCacheDropsOldestKeyThatIsNotPinned(t *testing.T) {
	v := NewVersions(2)
	v.Pin(key("pinned"))
	v.Pin(key("pinned"))
	for i, name := range []string{"pinned", "a", "b", "c"} {
		v.shown(name, "1", "g", time.Duration(i+1))
	}
	if got := keysOf(v); !slices.Equal(got, []string{"b", "c", "pinned"}) {
		t.Errorf("kept are %v, want the pinned key and the newest two others", got)
	}
	v.shown("pinned", "1", "g", 5)
	v.Unpin(key("pinned"))
	v.shown("a", "1", "g", 6)
	v.shown("b", "1", "g", 7)
	if _, ok := v.of(key("pinned")); !ok {
		t.Error("the key is forgotten, but still has one of its two pins")
	}
	v.Unpin(key("pinned")) // this was the last pin, so the key is now the newest key that is not pinned
	v.shown("c", "1", "g", 8)
	if _, ok := v.of(key("pinned")); !ok {
		t.Error("the key is forgotten before an older one")
	}
	v.shown("d", "1", "g", 9)
	if got := keysOf(v); !slices.Equal(got, []string{"c", "d"}) || len(v.byKey) != 2 || v.idle.Len() != 2 || len(v.pins) > 0 {
		t.Errorf("no key is pinned: kept are %v, %d versions, %d of them idle, %d pins", got, len(v.byKey), v.idle.Len(), len(v.pins))
	}
}

func TestKeyThatIsReadTwiceCountsOnceTowardCacheLimit(t *testing.T) {
	v := NewVersions(2)
	v.shown("a", "1", "g", 1)
	v.shown("b", "1", "g", 2)
	v.shown("b", "2", "g", 3)
	if names := keysOf(v); !slices.Equal(names, []string{"a", "b"}) {
		t.Errorf("after three reads of two keys, the versions of %v are stored", names)
	}
}

func TestVersionCacheKeepsKeyThatWasPinnedBeforeItsFirstRead(t *testing.T) {
	v := NewVersions(0)
	v.Pin(key("a"))
	for _, name := range []string{"a", "b"} {
		v.shown(name, "1", "g", 1)
	}
	if _, ok := v.of(key("a")); !ok || len(v.byKey) != 1 {
		t.Errorf("%d keys are remembered, want a", len(v.byKey))
	}
	v.Unpin(key("a"))
	if len(v.byKey)+len(v.pins)+v.idle.Len() > 0 {
		t.Error("no key is pinned, but something is left")
	}
}
