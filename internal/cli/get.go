package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/cli/failure"
	"github.com/leasehold-go/leasehold/internal/cli/misuse"
	"github.com/leasehold-go/leasehold/internal/cli/permits"
	"github.com/leasehold-go/leasehold/internal/cli/say"
	"github.com/leasehold-go/leasehold/internal/cli/store"
	"github.com/leasehold-go/leasehold/internal/cli/wording"
	"github.com/leasehold-go/leasehold/internal/holders"
	"github.com/leasehold-go/leasehold/internal/visible"
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
former is who had the key last or, while it is held, who had it before: until
when, and how that ended (released, taken over, broken), if the record tells.

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
			s, err := a.open(cmd, store.Opening{})
			if err != nil {
				return err
			}
			defer s.Close()
			if f.data && !s.Layout.Capabilities().Data {
				return &leasehold.UnsupportedError{Layout: s.Layout.Name(), Feature: "data"}
			}
			key := store.CompleteKey(s.Layout, leasehold.Key{Partition: args[0], Sort: f.sortKey})
			return failure.Answer(withLocks(cmd.Context(), s, func(ctx context.Context, locks *leasehold.Client) error {
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
	fl.BoolVar(&f.data, "data", false, "print only the data, byte for byte; at a terminal, escaped")
	fl.BoolVar(&f.held, "held", false, "print nothing: exit code 0 if KEY is held, 1 if it is not")
	fl.BoolVar(&f.raw, "raw", false, "print what is stored under KEY, damaged or not, as DynamoDB JSON")
	fl.StringVar(&f.sortKey, "sort-key", "", "sort key `VALUE`, in a table that has one")
	return cmd
}

func (a *app) getRecord(ctx context.Context, s *store.Store, locks *leasehold.Client, key leasehold.Key, f getFlags) error {
	r, err := locks.Get(ctx, key.Partition, withSortKey(key)...)
	if n, is := permits.In(s.Layout, err); is {
		if f.data {
			return misuse.Errorf("%s is a semaphore: each permit has its own data: use leasehold get %s --data", wording.Name(key.Partition), wording.ShellWord(key.Partition+"/N"))
		}
		return a.showSemaphore(ctx, s, locks, key.Partition, n, f.check, f.checkFor)
	}
	if err != nil {
		return cause(ctx, err)
	}
	if f.data {
		return a.Stdout.Data(r.Data)
	}
	one := []leasehold.Record{r}
	by, err := newObserver(s, locks)
	if err != nil {
		return err
	}
	if err := by.Reader.UnderSessions(ctx, one); err != nil {
		return cause(ctx, err)
	}
	r = one[0]
	shown := row{record: r}
	if f.check && !r.Released {
		by.Limit = f.checkFor
		o := a.observeWithProgress(ctx, by, []leasehold.Record{r}, "the holder")[0]
		switch {
		case o.Err != nil && o.State != holders.Unknown:
			return o.Err
		case o.Err != nil: // it ended early: with what is known
			return errors.Join(a.showRecord(a.Stdout, s, row{record: o.Record, liveness: o.State}), o.Err)
		case o.Gone:
			return notFound(s, key)
		}
		shown = row{record: o.Record, liveness: o.State}
	}
	return a.showRecord(a.Stdout, s, shown)
}

// showRecord writes one record, one line per field.
func (a *app) showRecord(w *say.Output, s *store.Store, r row) error {
	if a.flags.json {
		return json.NewEncoder(w).Encode(say.Record{Table: s.Table, Record: r.record, Holder: r.liveness})
	}
	fields := slices.DeleteFunc(a.fields(r, w.Terminal), func(f [2]string) bool { return f[1] == "" })
	widest := 0
	for _, f := range fields {
		widest = max(widest, len(f[0]))
	}
	for _, f := range fields {
		line := []any{say.Tabbed(f[0], f[1])}
		if w.Terminal {
			var c say.Colour
			if f[0] == "holder" {
				c = colourOf(r.liveness)
			}
			line = append([]any{fmt.Sprintf("%-*s  ", widest, f[0])}, c.Of(visible.Line(f[1]))...)
		}
		if err := w.Show(append(line, "\n")...); err != nil {
			return err
		}
	}
	return nil
}

// fields returns the names and values that a record shows. The names are those
// of its JSON; a field with an empty value is not shown.
func (a *app) fields(r row, terminal bool) [][2]string {
	rec := r.record
	owner, held, moment := wording.Cell(rec.Owner), "", timeText
	if terminal {
		owner, held, moment = wording.Owner(rec.Owner), heldFor(rec, a.Now()), localTime
	}
	var renewed, released time.Time
	switch {
	case rec.Released:
		released = rec.WrittenAt()
	case rec.Version != rec.Grant:
		renewed = rec.WrittenAt()
	}
	fields := [][2]string{
		{"key", visible.Name(rec.Key.Partition)},
		{"sortKey", wording.Cell(rec.Key.Sort)},
		{"state", state(rec)},
		{"holder", string(r.liveness)},
		{"owner", owner},
		{"token", tokenText(rec)},
		{"version", wording.Cell(rec.Version)},
		{"lease", leaseFixed(rec)},
		{"session", rec.Session},
		{"grantedAt", moment(rec.GrantedAt)},
		{"held", held},
		{"renewedAt", moment(renewed)},
		{"releasedAt", moment(released)},
		{"expiresAt", moment(rec.ExpiresAt)},
		{"former", formerText(rec.Former(), moment)},
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

// formerText says who had the key before, and how that ended. Empty: it is not known.
func formerText(f *leasehold.Former, moment func(time.Time) string) string {
	if f == nil {
		return ""
	}
	var parts []string
	if f.Owner != "" {
		parts = append(parts, wording.Owner(f.Owner))
	}
	if f.Token != 0 {
		parts = append(parts, fmt.Sprintf("token %d", f.Token))
	}
	if until := moment(f.Until); until != "" {
		parts = append(parts, "until "+until)
	}
	return strings.Join(append(parts, string(f.Ended)), ", ")
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
	text := "by " + wording.Owner(b.By) + " at " + moment(b.At)
	if b.Reason != "" {
		text += ": " + visible.Name(b.Reason)
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
	return visible.Name(string(b))
}

func withSortKey(k leasehold.Key) []leasehold.GetOption {
	if k.Sort == "" {
		return nil
	}
	return []leasehold.GetOption{leasehold.WithSortKey(k.Sort)}
}
