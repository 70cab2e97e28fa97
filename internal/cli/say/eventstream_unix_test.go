//go:build unix

package say

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"

	"github.com/leasehold-go/leasehold/internal/lab"
)

func TestEventStreamWaitsForReaderOfFIFO(t *testing.T) {
	t.Parallel()
	fifo := makeFIFO(t)
	synctest.Test(t, func(t *testing.T) {
		opened := make(chan error, 1)
		go func() {
			f, err := openEventFile(fifo)
			if err == nil {
				err = f.Close()
			}
			opened <- err
		}()
		synctest.Wait() // now the first attempt to open the FIFO has failed
		reader := lab.Must(os.OpenFile(fifo, os.O_RDONLY|syscall.O_NONBLOCK, 0))(t)
		defer reader.Close()
		lab.OK(t, <-opened)
	})
}

func TestEventStreamFailsIfFIFOHasNoReader(t *testing.T) {
	t.Parallel()
	fifo := makeFIFO(t)
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		lab.WantText(t, "openEventFile", lab.ErrorOf(openEventFile(fifo)), "start its reader first")
		lab.Want(t, "waited for", time.Since(began), readerPatience)
	})
}

func makeFIFO(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "fifo")
	lab.OK(t, unix.Mkfifo(path, 0o600))
	return path
}
