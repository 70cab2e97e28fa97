//go:build linux

package processes

import (
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func says(e Event, words string) bool { return strings.Contains(e.Text, words) }

func TestFullDiskDoesNotBreakLocksInFile(t *testing.T) {
	t.Parallel()
	const lease, workers = time.Second, 6
	d := mountDisk(t)
	at := place{File: filepath.Join(d.root, "locks.db")}
	c := newCrew(t, "disk", at)
	for range workers {
		c.worker(task{Place: at, Keys: keysOf(3), Lease: lease})
	}
	full := func(e Event) bool { return says(e, "no space left on device") }
	var seen int
	for range 4 {
		wait(lease)
		c.journal.write(Event{Kind: Broke, Text: "the disk is full"})
		from := now()
		d.fill()
		// bbolt first uses the free pages in its file. So the first writes on the full disk may
		// still succeed.
		if _, ok := c.watcher.await(bound, func(e Event) bool { return e.At > from && full(e) }); ok {
			seen++
		}
		wait(lease)
		d.free()
	}
	if seen == 0 {
		t.Error("nobody noticed")
	}
	verify(t, c.finish())
}
