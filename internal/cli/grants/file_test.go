package grants

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/lab"
	"github.com/leasehold-go/leasehold/internal/plainfile"
)

func TestGrantFileAcceptsOnlyOneOfConcurrentWrites(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("files are not locked there")
	}
	const writers, rounds = 8, 30
	content := map[string][]byte{"a missing file": nil, "an empty file": {}}
	for what, before := range content {
		for range rounds {
			path := filepath.Join(t.TempDir(), "grant")
			if before != nil {
				lab.OK(t, os.WriteFile(path, before, 0o600))
			}
			errs := make([]error, writers)
			var ready, done sync.WaitGroup
			ready.Add(writers)
			for i := range writers {
				done.Go(func() {
					g := &File{path: path, file: path, before: before}
					ready.Done()
					ready.Wait()
					errs[i] = g.Write(nil, Grant{Grant: leasehold.Grant{
						ID: string(rune('a' + i)), Table: "locks", Key: leasehold.Key{Partition: "k"}, Owner: "o", Token: int64(i + 1),
						Versions: []string{"v"}, Lease: time.Minute, TrustedUntil: time.Now(),
					}})
				})
			}
			done.Wait()
			winner := ""
			for i, err := range errs {
				switch {
				case err == nil && winner == "":
					winner = string(rune('a' + i))
				case err == nil:
					t.Fatalf("%s: two grants have been written to it, and one of them is lost", what)
				case !errors.Is(err, plainfile.ErrChanged):
					t.Fatalf("%s: %v", what, err)
				}
			}
			b, err := os.ReadFile(path)
			if in, ok := parse(b); err != nil || !ok || in.ID != winner {
				t.Fatalf("%s: %q has won, and it holds %s, %v", what, winner, b, err)
			}
		}
	}
}

func TestRemoveKeepsGrantFileReplacedByNewerGrant(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "grant")
	ended := Grant{Grant: leasehold.Grant{ID: "ended", Table: "locks", Lease: time.Minute, TrustedUntil: time.Now()}}
	g := &File{path: path, file: path, Grant: ended}
	lab.OK(t, g.Write(nil, ended))
	lab.OK(t, plainfile.Alone(path, func([]byte) error { return os.Rename(path, path+".old") }))
	if err := g.Remove(); err != nil {
		t.Errorf("of a file that is gone: %v", err)
	}
	next := ended
	next.ID, next.Token = "next", 2
	lab.OK(t, g.Write(nil, next))
	lab.OK(t, g.Remove())
	if b, err := os.ReadFile(path); err != nil {
		t.Errorf("another grant was removed: %v", err)
	} else if in, ok := parse(b); !ok || in.ID != "next" {
		t.Errorf("it holds %s", b)
	}
}
