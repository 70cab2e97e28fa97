package cli

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/leasehold-go/leasehold/internal/machine"
	"github.com/leasehold-go/leasehold/internal/protocol"
)

func TestASightingCountsForItsVersionInItsStoreByItsClock(t *testing.T) {
	if machine.ClockID() == "" {
		t.Skip("this system has no clock that two processes can compare")
	}
	dir := t.TempDir()
	a := &app{Env: Env{Now: time.Now, LookupEnv: func(name string) (string, bool) { return dir, name == "XDG_STATE_HOME" }}}
	here, elsewhere := &store{location: "here", table: "locks"}, &store{location: "elsewhere", table: "locks"}
	watched := a.newMemory(here)
	watched.note(protocol.Key{Partition: "job"}, "v1", time.Minute, time.Hour)
	watched.note(protocol.Key{Partition: "job"}, "v2", time.Minute, 0) // another reader of a read/write lock
	watched.save()

	is := func(what string, s *store, version string, least, most time.Duration) {
		t.Helper()
		if age := a.newMemory(s).age(version); age < least || age > most {
			t.Errorf("%s: seen for %v", what, age)
		}
	}
	is("what was seen an hour ago", here, "v1", time.Hour-time.Millisecond, time.Hour+time.Minute)
	is("the other holder", here, "v2", 0, time.Minute)
	is("another version", here, "v3", 0, 0)
	is("another store", elsewhere, "v1", 0, 0)

	file := a.newMemory(here).file.path
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	other := strings.ReplaceAll(string(b), machine.ClockID(), "00000000-0000-0000-0000-000000000000")
	if err := os.WriteFile(file, []byte(other), 0o600); err != nil {
		t.Fatal(err)
	}
	is("before the last reboot", here, "v1", 0, 0)

	later := a.newMemory(here)
	later.note(protocol.Key{Partition: "job"}, "v4", time.Minute, time.Hour)
	later.save()
	is("after another of the same key", here, "v4", time.Hour-time.Millisecond, time.Hour+time.Minute)
	if b, err := os.ReadFile(file); err != nil || strings.Contains(string(b), `"v1"`) {
		t.Errorf("the file keeps what was seen before: %s, %v", b, err)
	}
}
