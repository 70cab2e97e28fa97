package process

import (
	"testing"
	"testing/synctest"
	"time"
)

// Orphans may end all the time: each of them is reaped soon all the same.
func TestDeathsDoNotPutOffTheNextLook(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		for _, ended := range []time.Time{{}, time.Now()} { // while CMD runs, and after its end
			b := &background{look: time.NewTimer(lookEvery), since: ended}
			b.look.Stop()
			looked := false
			for range 100 {
				b.heardOfDeath()
				time.Sleep(lookAfterEnd / 2)
				select {
				case <-b.look.C:
					looked = true
				default:
				}
			}
			if !looked {
				t.Errorf("nobody looks, though processes end; CMD has ended: %v", !ended.IsZero())
			}
		}
	})
}
