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

func (a *app) newGet() *cobra.Command {
	var check, data bool
	var checkFor time.Duration
	var sortKey string
	cmd := &cobra.Command{
		Use:   "get KEY [flags]",
		Short: "Show one record",
		Long: `Show the record of KEY. Exit code 1 if there is none.
Of a semaphore: how many permits there are, and who holds them.`,
		Example: `  leasehold get deploy/prod
  leasehold get deploy/prod --data > state.json`,
		ValidArgsFunction: a.completeKeys(anyRecord),
		Args:              oneKey,
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case check && data:
				return usageOf(cmd, "--check and --data: use one of them")
			case !check && cmd.Flags().Changed("for"):
				return usageOf(cmd, "--for is for --check: add --check, or leave out --for")
			}
			s, err := a.open(cmd, "")
			if err != nil {
				return err
			}
			defer s.close()
			if data && !s.layout.Capabilities().Data {
				return &leasehold.UnsupportedError{Layout: s.layout.Name(), Feature: "data"}
			}
			key := completeKey(s.layout, leasehold.Key{Partition: args[0], Sort: sortKey})
			return answer(s.withLocks(cmd.Context(), func(ctx context.Context, locks *leasehold.Client) error {
				return a.getRecord(ctx, s, locks, key, check, data, checkFor)
			}))
		},
	}
	fl := cmd.Flags()
	fl.BoolVar(&check, "check", false, "observe the record and show whether its holder is live or dead")
	checkForFlag(fl, &checkFor)
	fl.BoolVar(&data, "data", false, "print only the data, byte for byte")
	fl.StringVar(&sortKey, "sort-key", "", "sort key `VALUE`, in a table that has one")
	return cmd
}

func (a *app) getRecord(ctx context.Context, s *store, locks *leasehold.Client, key leasehold.Key, check, data bool, checkFor time.Duration) error {
	r, err := locks.Get(ctx, key.Partition, withSortKey(key)...)
	if n, is := permitsIn(s.layout, err); is {
		if data {
			return usagef("%[1]s is a semaphore: each permit has its own data: use leasehold get %[1]s/N --data", printable(key.Partition))
		}
		return a.showSemaphore(ctx, s, locks, key.Partition, n, check, checkFor)
	}
	if err != nil {
		return cause(ctx, err)
	}
	if data {
		_, err := a.Stdout.Write(r.Data)
		return err
	}
	shown := row{record: r}
	if check && !r.Released {
		by, err := newObserver(s, locks)
		if err != nil {
			return err
		}
		by.limit = checkFor
		o := a.observeWithProgress(ctx, by, []leasehold.Record{r}, "the holder")[0]
		switch {
		case o.err != nil && o.liveness != unknown:
			return o.err
		case o.err != nil: // it ended early: with what is known
			return errors.Join(a.showRecord(a.Stdout, s, row{o.record, o.liveness}), o.err)
		case o.gone:
			return fmt.Errorf("%w: %s in table %s", leasehold.ErrNotFound, printable(key.String()), s.table)
		}
		shown = row{o.record, o.liveness}
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
	owner, granted, held := printableOrEmpty(rec.Owner), timeText(rec.GrantedAt), ""
	if terminal {
		owner, held = shortOwner(rec.Owner), heldFor(rec, a.Now())
		if !rec.GrantedAt.IsZero() {
			granted = rec.GrantedAt.Local().Format("2006-01-02 15:04:05")
		}
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
		{"grantedAt", granted},
		{"held", held},
		{"expiresAt", timeText(rec.ExpiresAt)},
		{"data", dataText(rec.Data)},
	}
	if len(rec.Attributes) > 0 {
		var shown struct {
			Attributes json.RawMessage `json:"attributes"`
		}
		if b, err := json.Marshal(rec); err == nil && json.Unmarshal(b, &shown) == nil {
			fields = append(fields, [2]string{"attributes", string(shown.Attributes)})
		}
	}
	return fields
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
