package say

import (
	"bufio"
	"fmt"
	"io"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold-go/leasehold/internal/lab"
)

func TestStalledReaderDelaysOutputOnceAndGetsNewestTexts(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const dropped = 100
		reader, writer := io.Pipe()
		q := &queue{to: writer, patience: time.Second}
		began := time.Now()
		for i := range textsKept + dropped {
			lab.OK(t, q.add(fmt.Sprintln(i)))
		}
		lab.Want(t, "waited for", time.Since(began), q.patience)
		lines := bufio.NewScanner(reader)
		go func() {
			for i := 0; lines.Scan(); i = max(i, dropped) + 1 { // the first text is not dropped, because it is being written
				lab.Want(t, "line", lines.Text(), fmt.Sprint(i))
			}
		}()
		unwritten, err := q.await(math.MaxInt64)
		lab.OK(t, err)
		lab.OK(t, writer.Close())
		lab.Want(t, "unwritten texts", unwritten, dropped)
	})
}

func TestEmptyOutputQueueIsFlushedAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		_, err := (&queue{to: io.Discard}).await(time.Minute)
		lab.OK(t, err)
		lab.Want(t, "waited for", time.Since(began), 0)
	})
}
