package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"text/tabwriter"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/leasehold-go/leasehold"
)

type getFlags struct {
	check, data, held, raw bool
	checkFor               time.Duration
	sortKey                string
}

func (a *app) newGet() *cobra.Command {
	var f getFlags
	cmd := &cobra.Command{
		Use:   "get KEY [flags]",
		Short: "Show one record",
		Long: `Show the record of KEY. Exit code 1 if there is none.
Of a semaphore: how many permits there are, and who holds them.

With --held it prints nothing: exit code 0 if KEY is held, 1 if it is not. A
record whose holder has died says held; with --check too, exit code 0 means
that a live holder has it.`,
		Example: `  leasehold get deploy/prod
  leasehold get deploy/prod --data > state.json
  if leasehold get deploy/prod --held; then echo busy; fi`,
		ValidArgsFunction: a.completeKeys(anyRecord),
		Args:              oneKey,
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case f.check && f.data:
				return usageOf(cmd, "--check and --data: use one of them")
			case f.raw && (f.check || f.data || f.held):
				return usageOf(cmd, "--raw shows what is stored, and nothing else: leave out the other flag")
			case f.held && f.data:
				return usageOf(cmd, "--held and --data: use one of them")
			case !f.check && cmd.Flags().Changed("for"):
				return usageOf(cmd, "--for is for --check: add --check, or leave out --for")
			}
			s, err := a.open(cmd, "")
			if err != nil {
				return err
			}
			defer s.close()
			if f.data && !s.layout.Capabilities().Data {
				return &leasehold.UnsupportedError{Layout: s.layout.Name(), Feature: "data"}
			}
			key := completeKey(s.layout, leasehold.Key{Partition: args[0], Sort: f.sortKey})
			return answer(s.withLocks(cmd.Context(), func(ctx context.Context, locks *leasehold.Client) error {
				switch {
				case f.raw:
					return a.getRaw(ctx, s, key)
				case f.held:
					return a.getHeld(ctx, s, locks, key, f)
				}
				return a.getRecord(ctx, s, locks, key, f)
			}))
		},
	}
	fl := cmd.Flags()
	fl.BoolVar(&f.check, "check", false, "observe the record and show whether its holder is live or dead")
	checkForFlag(fl, &f.checkFor)
	fl.BoolVar(&f.data, "data", false, "print only the data, byte for byte")
	fl.BoolVar(&f.held, "held", false, "print nothing: exit code 0 if KEY is held, 1 if it is not")
	fl.BoolVar(&f.raw, "raw", false, "print what is stored under KEY, damaged or not, as DynamoDB JSON")
	fl.StringVar(&f.sortKey, "sort-key", "", "sort key `VALUE`, in a table that has one")
	return cmd
}

func (a *app) getRecord(ctx context.Context, s *store, locks *leasehold.Client, key leasehold.Key, f getFlags) error {
	r, err := locks.Get(ctx, key.Partition, withSortKey(key)...)
	if n, is := permitsIn(s.layout, err); is {
		if f.data {
			return usagef("%[1]s is a semaphore: each permit has its own data: use leasehold get %[1]s/N --data", printable(key.Partition))
		}
		return a.showSemaphore(ctx, s, locks, key.Partition, n, f.check, f.checkFor)
	}
	if err != nil {
		return cause(ctx, err)
	}
	if f.data {
		_, err := a.Stdout.Write(r.Data)
		return err
	}
	shown := row{record: r}
	if f.check && !r.Released {
		by, err := newObserver(s, locks)
		if err != nil {
			return err
		}
		by.limit = f.checkFor
		o := a.observeWithProgress(ctx, by, []leasehold.Record{r}, "the holder")[0]
		switch {
		case o.err != nil && o.liveness != unknown:
			return o.err
		case o.err != nil: // it ended early: with what is known
			return errors.Join(a.showRecord(a.Stdout, s, row{record: o.record, liveness: o.liveness}), o.err)
		case o.gone:
			return notFound(s, key)
		}
		shown = row{record: o.record, liveness: o.liveness}
	}
	return a.showRecord(a.Stdout, s, shown)
}

// showRecord writes one record, one line per field.
func (a *app) showRecord(w io.Writer, s *store, r row) error {
	if a.flags.json {
		return json.NewEncoder(w).Encode(recordJSON{Table: s.table, Record: r.record, Holder: r.liveness})
	}
	terminal := isTerminal(w)
	out := w
	var tw *tabwriter.Writer
	if terminal {
		tw = tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
		out = tw
	}
	for _, field := range a.fields(r, terminal) {
		if field[1] == "" {
			continue
		}
		if _, err := fmt.Fprintf(out, "%s\t%s\n", field[0], field[1]); err != nil {
			return err
		}
	}
	if tw != nil {
		return tw.Flush()
	}
	return nil
}

// fields returns the names and values that a record shows. The names are those
// of its JSON; a field with an empty value is not shown.
func (a *app) fields(r row, terminal bool) [][2]string {
	rec := r.record
	owner, held, moment := printableOrEmpty(rec.Owner), "", timeText
	if terminal {
		owner, held, moment = shortOwner(rec.Owner), heldFor(rec, a.Now()), localTime
	}
	var renewed, released time.Time
	switch {
	case rec.Released:
		released = rec.WrittenAt()
	case rec.Version != rec.Grant:
		renewed = rec.WrittenAt()
	}
	fields := [][2]string{
		{"key", printable(rec.Key.Partition)},
		{"sortKey", printableOrEmpty(rec.Key.Sort)},
		{"state", state(rec)},
		{"holder", listing{colour: terminal && a.get("NO_COLOR") == ""}.paint(string(r.liveness))},
		{"owner", owner},
		{"token", tokenText(rec)},
		{"version", printableOrEmpty(rec.Version)},
		{"lease", leaseFixed(rec)},
		{"grantedAt", moment(rec.GrantedAt)},
		{"held", held},
		{"renewedAt", moment(renewed)},
		{"releasedAt", moment(released)},
		{"expiresAt", moment(rec.ExpiresAt)},
		{"broken", brokenText(rec.Broken, moment)},
		{"data", dataText(rec.Data)},
	}
	if len(rec.Attributes) > 0 {
		if raw, err := rawJSON(rec.Attributes); err == nil {
			fields = append(fields, [2]string{"attributes", string(raw)})
		}
	}
	return fields
}

// brokenText says who broke a grant, which, when and why. Empty: nobody did.
func brokenText(b *leasehold.Broken, moment func(time.Time) string) string {
	if b == nil {
		return ""
	}
	text := breakText(b, moment)
	if b.Token != 0 {
		text = fmt.Sprintf("token %d %s", b.Token, text)
	}
	return text
}

// breakText says who broke a grant, when and why.
func breakText(b *leasehold.Broken, moment func(time.Time) string) string {
	text := "by " + shortOwner(b.By) + " at " + moment(b.At)
	if b.Reason != "" {
		text += ": " + printable(b.Reason)
	}
	return text
}

// dataText shows data: short text as it is, anything else as a number of bytes.
func dataText(b []byte) string {
	const longest = 200
	switch {
	case len(b) == 0:
		return ""
	case len(b) > longest || !utf8.Valid(b):
		return fmt.Sprintf("%d bytes (see --data)", len(b))
	}
	return printable(string(b))
}
