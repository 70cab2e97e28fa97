package cli

import (
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/leasehold-go/leasehold"
)

// standardStream stands for standard input and output.
const standardStream = "-"

func grantFlag(fl *pflag.FlagSet, path *string, usage string) {
	fl.StringVarP(path, "grant", "f", standardStream, usage)
}

// writeGrant writes a grant to a file or to standard output.
func (a *app) writeGrant(path string, g leasehold.Grant) error {
	b, err := json.Marshal(g)
	if err != nil {
		return err
	}
	b = append(b, '\n')
	if path == standardStream {
		_, err = a.Stdout.Write(b)
		return err
	}
	return writeFile(path, b)
}

// readGrant reads a grant from a file or from standard input.
func (a *app) readGrant(path string) (leasehold.Grant, error) {
	var g leasehold.Grant
	var b []byte
	var err error
	from := path
	if path == standardStream {
		from = "standard input"
		b, err = io.ReadAll(a.Stdin)
	} else {
		b, err = os.ReadFile(path)
	}
	if err != nil {
		return g, usagef("the grant of leasehold acquire is needed: %v", err)
	}
	if err := json.Unmarshal(b, &g); err != nil || g.ID == "" || g.Table == "" {
		return g, usagef("%s is not a grant as leasehold acquire writes it", from)
	}
	return g, nil
}

// resumed is what renew and release share: a grant taken up again.
type resumed struct {
	store *store
	locks *leasehold.Client
	lock  *leasehold.Lock
}

// resume reads a grant and takes it up. A grant that is lost is an answer, not
// trouble. With data it refuses a layout that cannot keep any, before the grant
// is taken up: that can be done once.
func (a *app) resume(cmd *cobra.Command, path string, data bool, opts ...leasehold.RenewOption) (*resumed, error) {
	if path == standardStream && isTerminal(a.Stdin) {
		return nil, usageOf(cmd, "name the FILE with the grant: -f FILE")
	}
	g, err := a.readGrant(path)
	if err != nil {
		return nil, err
	}
	s, err := a.open(cmd, g.Table)
	if err != nil {
		return nil, err
	}
	if s.table != g.Table {
		s.close()
		return nil, usagef("the grant is of table %s, not %s", g.Table, s.table)
	}
	if data && !s.layout.Capabilities().Data {
		s.close()
		return nil, &leasehold.UnsupportedError{Layout: s.layout.Name(), Feature: "data"}
	}
	locks, err := s.locks(leasehold.Config{Owner: withoutID(g.Owner)})
	if err != nil {
		s.close()
		return nil, err
	}
	signals := catchSignals()
	defer signals.release()
	ctx, cancel := signals.bind(cmd.Context())
	defer cancel()
	lock, err := locks.Resume(ctx, g, opts...)
	if err != nil {
		closeLocks(locks)
		s.close()
		return nil, err
	}
	return &resumed{s, locks, lock}, nil
}

func (r *resumed) close() {
	closeLocks(r.locks)
	r.store.close()
}

// removeGrant removes the file of a grant that is over.
func removeGrant(path string) error {
	if path == standardStream {
		return nil
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
