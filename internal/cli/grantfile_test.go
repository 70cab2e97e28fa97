//go:build unix

package cli_test

import (
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/leasehold-go/leasehold/internal/lab"
	"github.com/leasehold-go/leasehold/table"
)

// With -v, a command logs each request. Here the command must print only the error message:
// it must reject the file before it sends a request.
func TestGrantFileMustBeRegularFileOnAnyBackend(t *testing.T) {
	t.Parallel()
	const redirect = " is not a regular file: leave out --grant and redirect, as in acquire KEY >FILE, renew <OLD >NEW or release <FILE\n"
	dir, env := tableEnv(t)
	at := func(name string) string { return filepath.Join(dir, name) }
	socket := lab.Must(net.Listen("unix", at("socket")))(t)
	defer socket.Close()
	lab.OK(t, errors.Join(syscall.Mkfifo(at("fifo"), 0o600), os.Symlink("fifo", at("link")), os.Mkdir(at("folder"), 0o700)))
	for path, why := range map[string]string{
		at("fifo"): redirect, at("link"): redirect, at("socket"): redirect, "/dev/null": redirect, "/dev/full": redirect,
		"/dev/stdin": redirect, "/dev/stdout": redirect, "/dev/stderr": redirect, "/dev/fd/1": redirect, "/proc/self/fd/0": redirect,
		at("folder"): " is a directory: name a file in it\n",
	} {
		for _, args := range [][]string{{"acquire", "k"}, {"renew"}, {"release"}} {
			stderr := refuses(t, env, 2, "", append(args, "-v", "-f", path)...)
			lab.Want(t, args[0]+" -f "+path, strings.ReplaceAll(stderr, "~", dir), "leasehold: --grant "+path+why)
		}
	}
}

// The server applies the renewal, but sends no reply. Then SIGTERM ends leasehold renew. Later
// commands must still accept the grant in the file.
func TestGrantFileStaysValidAfterInterruptedRenewal(t *testing.T) {
	t.Parallel()
	var armed atomic.Bool
	applied := make(chan struct{})
	f := newFaulty(t, table.Spec{}, func(op string, w http.ResponseWriter, r *http.Request, next http.Handler) {
		if op != "UpdateItem" || !armed.CompareAndSwap(true, false) {
			next.ServeHTTP(w, r)
			return
		}
		next.ServeHTTP(httptest.NewRecorder(), r)
		close(applied)
		<-r.Context().Done()
	})
	grant := filepath.Join(t.TempDir(), "grant")
	succeeds(t, f.env, "acquire", "k", "-l", "10m", "-f", grant)
	armed.Store(true)
	renew := start(t, t.TempDir(), f.env, "renew", "-f", grant)
	<-applied
	renew.endsBy(syscall.SIGTERM)
	for _, command := range []string{"renew", "release"} {
		succeeds(t, f.env, command, "-f", grant)
	}
}
