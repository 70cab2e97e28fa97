package boltstore_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"testing"

	"go.etcd.io/bbolt"

	"github.com/leasehold-go/leasehold/internal/lab"
)

// BenchmarkDurableWrites measures conditional updates by processes that share a file. Each
// update is on disk before it is acknowledged. The case "floor" measures bbolt alone, for
// comparison: one process keeps the file open, and makes one commit for each write.
func BenchmarkDurableWrites(b *testing.B) {
	perSecond := func(b *testing.B) { b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "writes/s") }
	b.Run("floor", func(b *testing.B) {
		db := lab.Must(bbolt.Open(filepath.Join(b.TempDir(), "floor.db"), 0o600, nil))(b)
		defer func() { _ = db.Close() }()
		for n := range b.N {
			lab.OK(b, db.Update(func(tx *bbolt.Tx) error {
				bucket, err := tx.CreateBucketIfNotExists([]byte("floor"))
				if err != nil {
					return err
				}
				return bucket.Put([]byte("lock"), []byte(strconv.Itoa(n)))
			}))
		}
		perSecond(b)
	})
	for _, processes := range []int{1, 4} {
		b.Run(fmt.Sprint("processes-", processes), func(b *testing.B) {
			path, _ := newFile(b)
			b.ResetTimer() // the measurement includes the start of the processes, so each process must write many times
			var wg sync.WaitGroup
			for p := range processes {
				wg.Go(func() {
					cmd := exec.CommandContext(b.Context(), os.Args[0])
					cmd.Env = append(os.Environ(), boltWriter+"="+path, boltKey+"="+strconv.Itoa(p),
						boltCount+"="+strconv.Itoa((b.N+processes-1)/processes))
					cmd.Stderr = os.Stderr
					if err := cmd.Run(); err != nil {
						b.Error(err)
					}
				})
			}
			wg.Wait()
			perSecond(b)
		})
	}
}
