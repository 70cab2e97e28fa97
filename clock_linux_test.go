package leasehold_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/leasehold-go/leasehold"
)

func TestAClockIsNamedByItsBootAndWhatItsNamespaceSetsItOffBy(t *testing.T) {
	const boot = "/proc/sys/kernel/random/boot_id"
	const offsets = "/proc/self/timens_offsets"
	links := map[string]string{
		"/proc/self/ns/mnt": "mnt:[1]", "/proc/self/ns/time": "time:[2]", "/proc/self/ns/time_for_children": "time:[2]",
	}
	name := func(id, table string, changed map[string]string) string {
		of := maps.Clone(links)
		maps.Copy(of, changed)
		files := map[string]string{boot: id, offsets: table}
		return leasehold.NameClock(func(path string) string { return files[path] }, func(path string) string { return of[path] })
	}
	const none = "monotonic           0         0\nboottime            0         0\n"
	const day = "monotonic           0         0\nboottime        86400         5\n"
	for _, tc := range []struct {
		what, got, want string
	}{
		{"the machine", name("b\n", none, nil), "b"},
		{"a container with a clock of its own", name("b\n", day, nil), "b/86400/5"},
		{"another namespace, set off as much", name("b\n", day, map[string]string{"/proc/self/ns/time": "time:[3]", "/proc/self/ns/time_for_children": "time:[3]"}), "b/86400/5"},
		{"set off by a fraction of a second", name("b\n", "monotonic 0 0\nboottime -1 500000000\n", nil), "b/-1/500000000"},
		{"Linux before 5.7", name("b\n", "1 0 0\n7 9 0\n", nil), "b/9/0"},
		{"another boot", name("c\n", none, nil), "c"},
		{"a kernel without time namespaces", name("b\n", "", map[string]string{"/proc/self/ns/time": "", "/proc/self/ns/time_for_children": ""}), "b"},
		{"no boot id", name("", none, nil), ""},
		{"no list of namespaces", name("b\n", none, map[string]string{"/proc/self/ns/mnt": "", "/proc/self/ns/time": "", "/proc/self/ns/time_for_children": ""}), ""},
		{"the children's offsets", name("b\n", day, map[string]string{"/proc/self/ns/time_for_children": "time:[3]"}), ""},
		{"no offsets", name("b\n", "", nil), ""},
		{"offsets of other clocks", name("b\n", "monotonic 0 0\n", nil), ""},
		{"offsets of another form", name("b\n", "boottime 0\n", nil), ""},
	} {
		if tc.got != tc.want {
			t.Errorf("%s: %q, want %q", tc.what, tc.got, tc.want)
		}
	}
}

// observeVersion is set where this binary runs as another process, which prints an
// observation of the lock that its clock saw first just now.
const observeVersion = "LEASEHOLD_TEST_OBSERVE_VERSION"

func TestAnObservationOfAnotherTimeNamespaceMakesNobodyDead(t *testing.T) {
	w := newWorld(t)
	c, _ := w.client(config())
	if version := os.Getenv(observeVersion); version != "" {
		o := leasehold.Observation{Key: leasehold.Key{Partition: "job"}, Version: version, Lease: 20 * time.Second, Since: time.Now()}
		b, err := json.Marshal(leasehold.BootObservation(c, o, 0))
		if err != nil {
			t.Fatal(err)
		}
		_, _ = os.Stdout.Write(append(b, '\n'))
		return
	}
	lock := w.acquire(c, "job", leasehold.WithoutRenewal())
	run := func(wrap ...string) (leasehold.Observation, error) {
		cmd := exec.Command(wrap[0], append(wrap[1:], os.Args[0], "-test.run=^"+t.Name()+"$")...)
		cmd.Env = append(os.Environ(), observeVersion+"="+lock.Record().Version)
		out, err := cmd.CombinedOutput()
		var o leasehold.Observation
		if err != nil {
			err = fmt.Errorf("%w: %s", err, out)
		} else {
			line, _, _ := strings.Cut(string(out), "\n")
			err = json.Unmarshal([]byte(line), &o)
		}
		return o, err
	}
	// By two clocks: one that has shown more since the boot, and one that has
	// shown less, by which this machine's would make it a minute old.
	for _, offset := range []string{"100000", "-60"} {
		o, err := run("unshare", "--map-root-user", "--time", "--boottime", offset, "--fork")
		if err != nil {
			t.Skipf("needs unshare(1) and leave to make a time namespace: %v", err)
		}
		other, _ := w.client(config())
		if err := other.ImportObservations(0, o); err != nil {
			t.Fatal(err)
		}
		if _, err := other.TryAcquire(t.Context(), "job"); !errors.Is(err, leasehold.ErrHeld) {
			t.Errorf("a live holder, seen by a clock set off by %ss: %v", offset, err)
		}
	}
	w.release(lock)
}
