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
		lab.WantParts(t, "docs/metrics.md", page, "| `"+name+"` |")
	}
	for _, name := range regexp.MustCompile(metricPrefix+`\w+`).FindAll(page, -1) {
		lab.Want(t, "docs/metrics.md names a metric that exists: "+string(name), slices.Contains(names, string(name)), true)
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
			lab.WantErr(t, "run", err, nil)
		})
	}
	all.Wait()
	want := `leasehold_run_lost_total{key="a \"key\",\n\\n} 1",table="locks"} 8` + "\n"
	lab.WantMatch(t, "the file", lab.Must(os.ReadFile(path))(t), "(?m)^"+regexp.QuoteMeta(want))
}
