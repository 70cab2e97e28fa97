//go:build linux

package engines

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// listening returns the addresses on which a process accepts TCP connections, in the
// network namespace of that process.
func listening(pid int) ([]netip.AddrPort, error) {
	proc := filepath.Join("/proc", strconv.Itoa(pid))
	sockets, err := socketsOf(proc)
	if err != nil {
		return nil, err
	}
	var at []netip.AddrPort
	for _, table := range []string{"tcp", "tcp6"} {
		content, err := os.ReadFile(filepath.Join(proc, "net", table))
		if err != nil {
			return nil, fmt.Errorf("engines: read the sockets of process %d: %w", pid, err)
		}
		for line := range strings.Lines(string(content)) {
			const local, state, inode = 1, 3, 9 // indexes of columns in /proc/PID/net/tcp; see proc(5)
			fields := strings.Fields(line)
			if len(fields) <= inode || fields[state] != "0A" || !slices.Contains(sockets, fields[inode]) {
				continue
			}
			addr, err := parseAddr(fields[local])
			if err != nil {
				return nil, err
			}
			at = append(at, addr)
		}
	}
	return at, nil
}

// socketsOf returns the inodes of a process's open sockets. proc is the path /proc/PID.
func socketsOf(proc string) ([]string, error) {
	fds, err := os.ReadDir(filepath.Join(proc, "fd"))
	if err != nil {
		return nil, fmt.Errorf("engines: read what a process has open: %w", err)
	}
	var inodes []string
	for _, fd := range fds {
		target, err := os.Readlink(filepath.Join(proc, "fd", fd.Name()))
		if err != nil {
			continue // the process has closed this file since ReadDir listed it
		}
		if inode, ok := strings.CutPrefix(target, "socket:["); ok {
			inodes = append(inodes, strings.TrimSuffix(inode, "]"))
		}
	}
	return inodes, nil
}

// parseAddr parses an address and a port as the kernel writes them. The address is a
// sequence of 32-bit words in this machine's byte order, in hexadecimal.
func parseAddr(s string) (netip.AddrPort, error) {
	words, port, ok := strings.Cut(s, ":")
	number, portErr := strconv.ParseUint(port, 16, 16)
	raw, hexErr := hex.DecodeString(words)
	if !ok || portErr != nil || hexErr != nil || len(raw)%4 != 0 {
		return netip.AddrPort{}, fmt.Errorf("engines: %q is not an address", s)
	}
	for i := 0; i < len(raw); i += 4 {
		binary.BigEndian.PutUint32(raw[i:], binary.NativeEndian.Uint32(raw[i:]))
	}
	addr, ok := netip.AddrFromSlice(raw)
	if !ok {
		return netip.AddrPort{}, fmt.Errorf("engines: %q is not an address", s)
	}
	return netip.AddrPortFrom(addr, uint16(number)), nil
}
