package machine

import (
	"maps"
	"testing"
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
		return nameClock(func(path string) string { return files[path] }, func(path string) string { return of[path] })
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
