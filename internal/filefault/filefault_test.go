package filefault_test

import (
	"fmt"
	"io/fs"
	"strings"
	"syscall"
	"testing"

	"github.com/leasehold-go/leasehold/internal/filefault"
)

func TestCauseOfFileErrorIsRecognisedFromErrorValueOrText(t *testing.T) {
	for errno, want := range map[syscall.Errno]struct {
		says   string
		passes bool
	}{
		syscall.ENOSPC: {"the disk is full: free some space there", true},
		syscall.EDQUOT: {"this user's disk quota is used up: ", true},
		syscall.EIO:    {"the disk has failed: ", true},
		syscall.EFBIG:  {"the file is as large as it may be: raise the limit of ulimit -f", false},
		syscall.EROFS:  {"the file system is read-only: mount it for writing", false},
		syscall.EMFILE: {"this process can open no more files: raise the limit of ulimit -n", false},
		syscall.ENFILE: {"this machine can open no more files: ", false},
	} {
		err := fmt.Errorf("boltstore: %w", &fs.PathError{Op: "open", Path: "/locks.db", Err: errno})
		of, known := filefault.Of(err)
		in, read := filefault.In(err.Error())
		if !known || !read || of != in || of.Passes() != want.passes || !strings.HasPrefix(of.String(), want.says) {
			t.Errorf("%v: %v and %v", errno, of, in)
		}
	}
	if f, known := filefault.Of(fs.ErrClosed); known {
		t.Errorf("fault of a closed file: %v, want none", f)
	}
}
