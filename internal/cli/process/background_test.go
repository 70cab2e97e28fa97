package process

import (
	"testing"
	"testing/synctest"
	"time"
)

// Orphaned child processes may end at any rate. Their exits must not delay the reading of
// the process list, by which leasehold reaps each soon.
func TestProcessListIsReadOnTimeDespiteFrequentChildExits(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := &background{look: time.NewTimer(lookEvery)}
		b.look.Stop()
		looked := false
		for range 100 {
			b.lookIn(lookAfterEnd)
			time.Sleep(lookAfterEnd / 2)
			select {
			case <-b.look.C:
				looked = true
			default:
			}
		}
		if !looked {
			t.Error("nobody looks, though processes end")
		}
	})
}
