//go:build linux

package engines

import (
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// A server that listens on every address runs in a network namespace whose only interface
// is loopback. Two processes make the server reachable:
//
//	outside     opens a listener on 127.0.0.1, starts this program again in a new namespace,
//	            and passes the listener to it
//	namespace   brings loopback up, starts the server, accepts connections on the listener,
//	            and relays each of them to the server
//
// A socket belongs to the namespace in which it was opened. So the inherited listener accepts
// connections from outside the namespace.
const (
	// namespaceName is the value of argv[0] that makes this program run as the process in the
	// namespace.
	namespaceName = "leasehold-engine-namespace"
	// namespacePort is the server's port. It is always free, because no other program uses
	// ports in the namespace.
	namespacePort = "8000"
	// listenerFD is the file descriptor of the inherited listener, which is the first file
	// in exec.Cmd.ExtraFiles.
	listenerFD = 3
)

// Any program that imports this package, even a test, may be started again as the process
// in the namespace. So init checks argv[0] before main runs and flags are parsed.
func init() {
	if os.Args[0] == namespaceName {
		if err := beNamespace(os.Args[1:]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
}

// beNamespace is the main function of the process in the namespace. It returns when the server
// ends. It kills the server when stdin is closed. The kernel closes stdin when the process
// outside the namespace ends.
func beNamespace(server []string) error {
	runtime.LockOSThread() // this thread must not end, because the kernel kills the server when the thread that started the server ends
	if err := loopbackUp(); err != nil {
		return err
	}
	listener, err := net.FileListener(os.NewFile(listenerFD, "listener"))
	if err != nil {
		return fmt.Errorf("take over the listener: %w", err)
	}
	cmd := exec.Command(server[0], server[1:]...)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		return err
	}
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		_ = cmd.Process.Kill()
	}()
	go forward(listener)
	return cmd.Wait()
}

// loopbackUp brings up the namespace's only interface.
func loopbackUp() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("bring loopback up: %w", err)
	}
	defer unix.Close(fd)
	lo, err := unix.NewIfreq("lo")
	if err != nil {
		return fmt.Errorf("bring loopback up: %w", err)
	}
	lo.SetUint16(unix.IFF_UP)
	if err := unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, lo); err != nil {
		return fmt.Errorf("bring loopback up: %w", err)
	}
	return nil
}

// forward accepts connections on listener. It relays each of them, in both directions, over a
// separate connection to the server. If the server is not listening yet, forward closes the
// accepted connection immediately.
func forward(listener net.Listener) {
	for {
		outside, err := listener.Accept()
		if err != nil {
			return
		}
		go func() {
			defer outside.Close()
			inside, err := net.Dial("tcp", net.JoinHostPort("127.0.0.1", namespacePort))
			if err != nil {
				return
			}
			defer inside.Close()
			pipe(outside.(*net.TCPConn), inside.(*net.TCPConn))
		}()
	}
}

// pipe copies data between two connections, in both directions, until both sides have
// stopped sending.
func pipe(a, b *net.TCPConn) {
	var both sync.WaitGroup
	both.Go(func() { _, _ = io.Copy(a, b); _ = a.CloseWrite() })
	both.Go(func() { _, _ = io.Copy(b, a); _ = b.CloseWrite() })
	both.Wait()
}
