package textfile

import (
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/cli/store"
	"github.com/leasehold-go/leasehold/internal/lab"
)

func TestDocumentedMetricsEqualMetricsWrittenByRunCommand(t *testing.T) {
	page := lab.Must(os.ReadFile("../../../docs/metrics.md"))(t)
	var names []string
	for _, of := range metrics {
		name := metricPrefix + of.name
		names = append(names, name)
		if !regexp.MustCompile("\\| `" + name + "` \\|").Match(page) {
			t.Errorf("%s is in no table of the page", name)
		}
	}
	for _, name := range regexp.MustCompile(metricPrefix+`\w+`).FindAll(page, -1) {
		if !slices.Contains(names, string(name)) {
			t.Errorf("the page names %s, which does not exist", name)
		}
	}
}

func TestLockLossesOfConcurrentRunsAreAllCounted(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("files are not locked there")
	}
	const runs = 8
	path, key := filepath.Join(t.TempDir(), "k.prom"), "a \"key\",\n\\n} 1"
	var all sync.WaitGroup
	for range runs {
		all.Go(func() {
			r, err := Open(path, time.Now(), store.Place{Table: "locks"}, []string{key}, "")
			if err == nil {
				err = r.Write(time.Now(), 123, leasehold.ErrLost)
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	b, err := os.ReadFile(path)
	if want := `leasehold_run_lost_total{key="a \"key\",\n\\n} 1",table="locks"} 8` + "\n"; err != nil || !regexp.MustCompile("(?m)^"+regexp.QuoteMeta(want)).Match(b) {
		t.Errorf("%v\n%s", err, b)
	}
}
