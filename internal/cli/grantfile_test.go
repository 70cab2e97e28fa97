//go:build unix

package cli_test

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// -v would show each request.
func TestTableAGrantFileThatIsNotARegularFileIsRefusedBeforeAnyRequest(t *testing.T) {
	t.Parallel()
	const redirect = " is not a regular file: leave out --grant and redirect, as in acquire KEY >FILE, renew <OLD >NEW or release <FILE\n"
	dir, env := tableEnv(t)
	at := func(name string) string { return filepath.Join(dir, name) }
	socket, err := net.Listen("unix", at("socket"))
	if err != nil {
		t.Fatal(err)
	}
	defer socket.Close()
	for _, err := range []error{syscall.Mkfifo(at("fifo"), 0o600), os.Symlink("fifo", at("link")), os.Mkdir(at("folder"), 0o700)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	for path, why := range map[string]string{
		at("fifo"): redirect, at("link"): redirect, at("socket"): redirect, "/dev/null": redirect, "/dev/full": redirect,
		"/dev/stdin": redirect, "/dev/stdout": redirect, "/dev/stderr": redirect, "/dev/fd/1": redirect, "/proc/self/fd/0": redirect,
		at("folder"): " is a directory: name a file in it\n",
	} {
		for _, args := range [][]string{{"acquire", "k"}, {"renew"}, {"release"}} {
			_, stderr, code := said(t, env, append(args, "-v", "-f", path)...)
			want := "leasehold: --grant " + path + why
			if stderr = strings.ReplaceAll(stderr, "~", dir); code != 2 || stderr != want {
				t.Errorf("%s -f %s: exit code %d: %s, not %s", args[0], path, code, stderr, want)
			}
		}
	}
}
