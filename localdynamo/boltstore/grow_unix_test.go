//go:build unix

package boltstore_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/leasehold-go/leasehold/internal/filefault"
	"github.com/leasehold-go/leasehold/internal/lab"
	"github.com/leasehold-go/leasehold/localdynamo"
	"github.com/leasehold-go/leasehold/localdynamo/boltstore"
)

// The test limits the size of files (RLIMIT_FSIZE). The limit applies to every file of a process,
// so the test runs in a process of its own.
func TestErrorIsPermanentIfStoreFileCannotGrow(t *testing.T) {
	const child = "LEASEHOLD_TEST_BOLT_LIMITED"
	if os.Getenv(child) == "" {
		cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$")
		cmd.Env = append(os.Environ(), child+"=1")
		lab.Output(t, cmd)
		return
	}
	path, _ := newFile(t)
	store := lab.Must(boltstore.Open(path))(t)
	var before syscall.Rlimit
	lab.OK(t, syscall.Getrlimit(syscall.RLIMIT_FSIZE, &before))
	limit := before
	limit.Cur = 20 << 10 // the first four pages fit
	lab.OK(t, syscall.Setrlimit(syscall.RLIMIT_FSIZE, &limit))
	t.Cleanup(func() { lab.OK(t, syscall.Setrlimit(syscall.RLIMIT_FSIZE, &before)) })
	large := func(tx localdynamo.Tx) error { return tx.Put([]byte("k"), make([]byte, 64<<10)) }
	for what, err := range map[string]error{
		"a write":     store.Update(large),
		"a new store": lab.ErrorOf(boltstore.Open(filepath.Join(t.TempDir(), "new.db"))),
	} {
		lab.WantErr(t, what, err, syscall.EFBIG)
		lab.Want(t, what+" fails permanently", filefault.IsLasting(err), true)
	}
}
