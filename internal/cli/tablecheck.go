package cli

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"github.com/leasehold-go/leasehold/internal/records"
	"github.com/leasehold-go/leasehold/table"
)

func (a *app) newTableCheck() *cobra.Command {
	return &cobra.Command{
		Use:   "check [flags]",
		Short: "Check keys, TTL, replicas and permissions; exit 1: does not fit",
		Long: `Check that the table fits the layout, one line each, "ok" included: its status,
keys, time to live and replicas, and each permission, by a request that changes
nothing. Beside what is not ok stands what to do. Exit code 1: something is not.

leasehold doctor checks more: the caller, a lock that is really acquired, the
round trip, the clock.`,
		Example: `  leasehold table check --table locks
  leasehold table check --json | jq -r 'select(.state != "ok") | .what'`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			s, err := a.openAny(cmd, "")
			if err != nil {
				return err
			}
			defer s.close()
			ctx, done := a.untilSignal(cmd.Context())
			defer done()
			return answer(cause(ctx, a.checkTable(ctx, s)))
		},
	}
}

// checkTable writes a line for each check.
func (a *app) checkTable(ctx context.Context, s *store) error {
	found, fits, err := tableFindings(ctx, s)
	if err != nil {
		return err
	}
	failed := false
	say := func(f finding) error {
		failed = failed || f.State != fine
		return a.writeFinding(f)
	}
	for _, f := range found {
		if err := say(f); err != nil {
			return err
		}
	}
	switch {
	case s.file != "": // nobody denies anything
	case !fits: // the requests would fail for other reasons
		err = say(finding{Check: "permissions", State: notKnown, What: "not tried, as the table does not fit"})
	default:
		err = a.tryPermissions(ctx, s, say)
	}
	if err == nil && failed {
		err = exit(codeNo, nil)
	}
	return err
}

// tableFindings compares the table with its layout. fits: a lock can be acquired in it.
func tableFindings(ctx context.Context, s *store) (found []finding, fits bool, err error) {
	proto, err := records.Of(s.layout)
	if err != nil {
		return nil, false, err
	}
	problems, err := table.Check(ctx, s.db, table.Spec{Name: s.table, Layout: s.layout})
	if err != nil {
		return nil, false, err
	}
	fits = true
	for _, ok := range []struct{ about, check, what string }{
		{"status", "table", printable(s.table) + " in " + s.location},
		{"keys", "keys", keysText(proto.Schema())},
		{"ttl", "ttl", ttlText(proto.Schema())},
		{"replicas", "replicas", "none, or with strong consistency: one holder over all Regions"},
	} {
		if ok.about == "replicas" && s.file != "" {
			continue
		}
		right := true
		for _, p := range problems {
			if p.About != ok.about {
				continue
			}
			f := finding{Check: ok.check, State: warning, What: p.What}
			if p.Fatal {
				f.State, fits = fatal, false
			}
			found, right = append(found, f), false
		}
		if right {
			found = append(found, finding{Check: ok.check, State: fine, What: ok.what})
		}
	}
	return found, fits, nil
}

// tryPermissions tries every permission, and changes nothing.
func (a *app) tryPermissions(ctx context.Context, s *store, say func(finding) error) error {
	const nobody = "leasehold-table-check" // never written
	permissions, err := s.permissions(s.testKey(nobody, nobody))
	if err != nil {
		return err
	}
	for _, p := range permissions {
		is, err := allowed(p.try(ctx))
		if err != nil {
			return err
		}
		f := finding{Check: strings.TrimPrefix(p.action, "dynamodb:"), State: fine, What: "allowed: " + p.uses}
		if !is {
			f.State, f.What = warning, p.action+" is denied to these credentials: "+p.uses
			f.Do = "allow it in the caller's IAM policy"
			if p.fatal {
				f.State = fatal
			}
		}
		if err := say(f); err != nil {
			return err
		}
	}
	return nil
}
