package boltstore_test

import (
	"errors"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/leasehold-go/leasehold/internal/lab"
	"github.com/leasehold-go/leasehold/localdynamo/boltstore"
)

func TestEmptyFileIsRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "locks.db")
	lab.OK(t, os.WriteFile(path, nil, 0o600))
	if _, err := boltstore.Open(path); !errors.Is(err, boltstore.ErrEmpty) {
		t.Errorf("opened: %v", err)
	}
	if info, err := os.Stat(path); err != nil || info.Size() != 0 {
		t.Errorf("written to: %v, %v", info, err)
	}
}

func TestConcurrentMakeCallsCreateOneCompleteStore(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "locks.db")
	var made atomic.Int32
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() {
			if ours, err := boltstore.Make(path, nil); err != nil {
				t.Error(err)
			} else if ours {
				made.Add(1)
			}
		})
		wg.Go(func() {
			if _, err := boltstore.Open(path); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if made.Load() > 1 {
		t.Errorf("made %d times", made.Load())
	}
	if files, err := os.ReadDir(dir); err != nil || len(files) != 1 {
		t.Errorf("left behind: %v, %v", files, err)
	}
}
