package hold

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/cli/arguments"
	"github.com/leasehold-go/leasehold/internal/cli/holding"
	"github.com/leasehold-go/leasehold/internal/cli/misuse"
	"github.com/leasehold-go/leasehold/internal/cli/store"
	"github.com/leasehold-go/leasehold/internal/cli/wording"
	"github.com/leasehold-go/leasehold/internal/protocol"
	"github.com/leasehold-go/leasehold/semaphore"
)

// wantedFlags are the flags about the hold. complete turns them into the Wanted.
type wantedFlags struct {
	holding.Wanted
	more    []string // keys besides KEY
	permits arguments.Number
	wait    arguments.Duration
	lease   arguments.Duration
	once    arguments.Text     // --once: the work's label
	every   arguments.Duration // --every: the length of its periods
	data    arguments.Data

	records  store.Records   // what the records of the table look like
	orphaned <-chan struct{} // closed when the parent has ended, with --die-with-parent; nil otherwise
}

// waitFlags adds the flags for the wait for KEY.
func waitFlags(fl *pflag.FlagSet, f *wantedFlags) {
	fl.BoolVarP(&f.NoWait, "nonblock", "n", false, "do not wait for a live holder, but observe one that appears dead for its lease")
	fl.VarP(&f.wait, "wait", "w", "wait at most `DURATION` (default: forever)")
}

// recordFlags adds the flags for the record.
func recordFlags(fl *pflag.FlagSet, f *wantedFlags) {
	fl.VarP(&f.lease, "lease", "l", "a dead holder blocks KEY for `DURATION`")
	arguments.SortKey(fl, &f.SortKey)
	f.data.Flag(fl)
}

// name sets the keys that the user has named, without duplicates.
func (f *wantedFlags) name(args []string) {
	f.Keys = nil
	for _, key := range slices.Concat(args, f.more) {
		if !slices.Contains(f.Keys, key) {
			f.Keys = append(f.Keys, key)
		}
	}
}

// checkSeveral refuses contradictory flags.
func checkSeveral(cmd *cobra.Command, f *wantedFlags) error {
	keys := f.Keys
	counted := f.permits.Given
	broken := slices.IndexFunc(keys, func(key string) bool { return strings.Contains(key, "\n") })
	switch {
	case slices.Contains(keys, ""):
		return misuse.Of(cmd, "KEY is empty")
	case broken >= 0 && len(keys) > 1 && !f.Any:
		return misuse.Of(cmd, "KEY %s has a line break, and CMD gets several keys one a line: hold it alone", wording.Name(keys[broken]))
	case counted && (f.permits.Value < 1 || f.permits.Value > semaphore.MostPermits):
		return misuse.Of(cmd, "-p %d: use 1 to %d permits", f.permits.Value, semaphore.MostPermits)
	case counted && f.Any:
		return misuse.Of(cmd, "-p and --any: use one of them")
	case counted && len(keys) > 1:
		return misuse.Of(cmd, "-p and several keys: use one of them")
	}
	return nil
}

// completeOnce checks --every and --once, and sets the option for them.
func (f *wantedFlags) completeOnce(cmd *cobra.Command) error {
	labelled, periodic := f.once.Given, f.every.Given
	name := "--every"
	if labelled {
		name = "--once"
	}
	_, marks := f.records.Proto.(protocol.Native)
	switch {
	case !labelled && !periodic:
		return nil
	case labelled && periodic:
		return misuse.Of(cmd, "--every and --once: use one of them")
	case f.permits.Given || len(f.more) > 0:
		return misuse.Of(cmd, "%s is for one key: leave it out, or -p and -k", name)
	case !marks:
		return misuse.Of(cmd, "%s: records of layout %s do not say what was done: leave it out, or give each day a key of its own", name, f.records.Layout.Name())
	case labelled:
		if problem := protocol.LabelProblem(f.once.Value); problem != "" {
			return misuse.Of(cmd, "--once: %s", problem)
		}
		f.Once = leasehold.Once(f.once.Value)
		return nil
	}
	if problem := protocol.PeriodProblem(f.every.Duration); problem != "" {
		return misuse.Of(cmd, "--every: %s", problem)
	}
	f.Once = leasehold.Every(f.every.Duration)
	return nil
}

// complete checks the flags, and reads the variables that may set them.
func (c *command) complete(cmd *cobra.Command, f *wantedFlags) (err error) {
	if f.NoWait && f.wait.Given {
		return misuse.Of(cmd, "--nonblock and --wait: use one of them")
	}
	f.Permits, f.Wait = f.permits.Value, f.wait.Duration
	f.NoWait = f.NoWait || f.wait.Given && f.Wait == 0
	if f.Owner, err = c.Settings.Owner(); err != nil {
		return err
	}
	if f.Lease, err = c.Settings.Lease(f.lease); err != nil {
		return err
	}
	if f.records, err = c.Settings.Records(); err != nil {
		return err
	}
	if err := f.completeOnce(cmd); err != nil {
		return err
	}
	return f.records.RefuseShortLease(cmd, f.Lease)
}

// storeWait returns how long to wait for the file of a local store.
func (f *wantedFlags) storeWait() time.Duration {
	switch {
	case f.NoWait:
		return 0
	case f.Wait > 0:
		return f.Wait
	}
	return store.Forever
}

// seeking opens the table and calls fn with a Seeker for the flags.
func (c *command) seeking(cmd *cobra.Command, f *wantedFlags, fn func(*store.Store, *holding.Seeker) error) error {
	began := time.Now()
	s, err := c.Open(cmd, store.Opening{Make: true, Wait: f.storeWait()})
	if err != nil {
		return err
	}
	defer s.Close()
	f.Waited = time.Since(began)
	if f.Data, err = f.data.Option(c.Stdin); err != nil { // read while a signal can still end the wait for it
		return err
	}
	if f.Data == nil && f.Permits > 0 && s.Layout.Capabilities().Data { // ls shows the data
		f.Data = leasehold.WithData(fmt.Appendf(nil, "one of %s", wording.Count(f.Permits, "permit", "permits")))
	}
	seeker := holding.Seek(holding.User{Settings: &c.Settings, Environ: c.Environ, Say: c.Say, Now: c.Now, Orphaned: f.orphaned}, s, f.Wanted)
	defer seeker.Close()
	return fn(s, seeker)
}
