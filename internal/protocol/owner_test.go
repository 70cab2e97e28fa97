package protocol

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestLeaseholdOwnerIsRecognizedByClientID(t *testing.T) {
	a, b := NewOwner("web-7/812"), NewOwner("web-7/812")
	if a == b || !HasClientID(a) || !HasClientID(b) || !strings.HasPrefix(a, "web-7/812/") {
		t.Errorf("owners %q and %q", a, b)
	}
	if short := ShortOwner(a); short != a[:len("web-7/812/")+4] {
		t.Errorf("%q is shortened to %q", a, short)
	}
	for _, foreign := range []string{
		"", "java-host", "host/812", "host/ABCDEFGHIJKLMNOPQRSTUVWXYZ", "host/abcdefghijklmnopqrstuvwxy",
		"host/abcdefghijklmnopqrstuvwxy1", "abcdefghijklmnopqrstuvwxyz", "3f9c1d2e-0b1a-4c5d-8e9f-001122334455",
	} {
		if HasClientID(foreign) || ShortOwner(foreign) != foreign {
			t.Errorf("%q counts as leasehold's, or is shortened to %q", foreign, ShortOwner(foreign))
		}
	}
}

func TestRecordVersionsAreUniqueUUIDs(t *testing.T) {
	shape := regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`)
	seen := map[string]bool{}
	for range 1000 {
		v := NewVersion()
		if !shape.MatchString(v) || seen[v] {
			t.Fatalf("version %q, seen before: %v", v, seen[v])
		}
		seen[v] = true
	}
}

func TestVersionTimeReturnsTimeWhenVersionWasCreated(t *testing.T) {
	before := time.Now().Truncate(time.Millisecond)
	v := NewVersion()
	if at := VersionTime(v); at.Before(before) || at.After(time.Now()) {
		t.Errorf("%q has the time %v, want a time from %v to now", v, at, before)
	}
	if at := VersionTime("017f22e2-79b0-7cc3-98c4-dc0c0c07398f"); at.UTC().Format(time.RFC3339Nano) != "2022-02-22T19:22:22Z" { // this version and its time are the example in RFC 9562, appendix A.6
		t.Errorf("the version of the RFC has the time %v", at.UTC())
	}
	for _, unknown := range []string{
		"", "3f9c1d2e-0b1a-4c5d-8e9f-001122334455", "017f22e2-79b0-7cc3-c8c4-dc0c0c07398f", VersionHex(v), v[:35] + "x",
	} {
		if at := VersionTime(unknown); !at.IsZero() {
			t.Errorf("%q has the time %v", unknown, at)
		}
	}
}

func TestIsVersionAcceptsOnlyLowerCaseUUIDsWithHyphens(t *testing.T) {
	v := NewVersion()
	if !IsVersion(v) {
		t.Errorf("%q is not a version", v)
	}
	for _, foreign := range []string{
		"", "1795274561341567000:MZXW6YTBOI2DGNRVGQ3TQOJQGEZDGNBVGY3TQOLBMJRWIZLGM5UA", "q7RzM0aVdK2sYx9LwE4bTgN8uHcJ5oPf",
		VersionHex(v), v + "0", v[:35], v[:35] + "x", v[:35] + "A", v[:8] + "0" + v[9:],
	} {
		if IsVersion(foreign) {
			t.Errorf("%q counts as a version", foreign)
		}
	}
}

func TestRecordVersionConvertsToHexAndBackUnchanged(t *testing.T) {
	v := NewVersion()
	if h := VersionHex(v); !regexp.MustCompile(`^[0-9a-f]{32}$`).MatchString(h) || VersionOfHex(h) != v {
		t.Errorf("%q becomes %q, and that becomes %q", v, h, VersionOfHex(h))
	}
	for _, none := range []string{"", "c0de", "q7RzM0aVdK2sYx9LwE4bTgN8uHcJ5oPf", v} {
		if none != v && VersionHex(none) != none || VersionOfHex(none) != none {
			t.Errorf("%q became %q and %q", none, VersionHex(none), VersionOfHex(none))
		}
	}
}
