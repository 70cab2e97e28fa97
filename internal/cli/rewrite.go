package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/spf13/cobra"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/attempts"
	"github.com/leasehold-go/leasehold/internal/cli/failure"
	"github.com/leasehold-go/leasehold/internal/cli/say"
	"github.com/leasehold-go/leasehold/internal/cli/store"
	"github.com/leasehold-go/leasehold/internal/cli/wording"
	"github.com/leasehold-go/leasehold/internal/protocol"
	"github.com/leasehold-go/leasehold/internal/records"
	"github.com/leasehold-go/leasehold/internal/visible"
)

type rewriteFlags struct {
	yes, dryRun bool
	prefix      string
}

func (a *app) newTableRewrite() *cobra.Command {
	var f rewriteFlags
	cmd := &cobra.Command{
		Use:   "rewrite [PREFIX] [flags]",
		Short: "Rewrite released records of another layout for --layout",
		Long: `Rewrite the records of another layout so that the library of --layout, awslabs
or dynamolock, can read them. Run it before the first process of that library
starts, and after the last process that uses another layout has ended: it would
write such records again.

Reads the whole table, shows the records that need rewriting, and asks. Those
that are released and whose key begins with PREFIX are acquired and released
once: data and attributes stay, the token grows by one. Those that are held are
skipped and listed (exit code 1): run it again once they are released. With
--dry-run nothing is written, and the exit code is 1 if any need rewriting.`,
		Example: `  leasehold table rewrite --layout dynamolock --dry-run
  leasehold table rewrite --layout dynamolock import/ --yes`,
		Args: onePrefix,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 {
				f.prefix = args[0]
			}
			switch {
			case f.yes && f.dryRun:
				return usageOf(cmd, "--yes and --dry-run: use one of them")
			case !f.yes && !f.dryRun && !a.canAsk():
				return usageOf(cmd, "rewrite asks at a terminal, and there is none: look with --dry-run, then use --yes")
			}
			s, err := a.open(cmd, store.Opening{})
			if err != nil {
				return err
			}
			defer s.Close()
			proto, err := records.Of(s.Layout)
			if err != nil {
				return err
			}
			rewriting, ok := proto.(protocol.Rewriting)
			if !ok {
				return usageOf(cmd, "layout %s can read every record in its table: there is nothing to rewrite", s.Layout.Name())
			}
			return failure.Answer(withLocks(cmd.Context(), s, func(ctx context.Context, locks *leasehold.Client) error {
				return a.rewrite(ctx, s, locks, rewriting, f)
			}))
		},
	}
	fl := cmd.Flags()
	fl.SortFlags = false
	fl.BoolVar(&f.dryRun, "dry-run", false, "show the records that need rewriting, and write nothing")
	fl.BoolVarP(&f.yes, "yes", "y", false, "do not ask")
	return cmd
}

// toRewrite is a record that the layout's library cannot read.
type toRewrite struct {
	record leasehold.Record
	what   string // why not
	bad    error  // it is not a lock record; nil: it is
}

// Results for a record, as printed.
const (
	resultDue       = "due"
	resultRewritten = "rewritten"
	resultHeld      = "held"
	resultBad       = "bad"
)

func (a *app) rewrite(ctx context.Context, s *store.Store, locks *leasehold.Client, proto protocol.Rewriting, f rewriteFlags) error {
	all, err := recordsToRewrite(ctx, s, proto, f.prefix)
	if err != nil {
		return cause(ctx, err)
	}
	if len(all) == 0 {
		a.say.Text("nothing to rewrite in %s: %s reads every record", s.Table, s.Layout.Name())
		return nil
	}
	if !f.yes && !f.dryRun {
		if err := a.confirmRewrite(ctx, s, all); err != nil {
			return err
		}
	}
	done, left, damaged := 0, 0, false
	for _, r := range all {
		result := resultDue
		switch {
		case r.bad != nil:
			a.say.Fail(r.bad)
			result, damaged = resultBad, true
		case !r.record.Released:
			result = resultHeld
		case !f.dryRun:
			if result, err = rewriteOne(ctx, locks, &r); err != nil {
				a.say.Note("rewrote %d of %s: run it again for the others", done, wording.Count(len(all), "record", "records"))
				return cause(ctx, err)
			}
		}
		switch result {
		case resultRewritten:
			done++
		case "": // it was deleted
			continue
		default:
			left++
		}
		if err := a.sayRewrite(s, r, result); err != nil {
			return err
		}
	}
	switch {
	case damaged:
		return failure.Exit(failure.CodeTrouble, nil)
	case f.dryRun:
		return failure.Exit(failure.CodeNo, nil)
	case left > 0:
		return failure.Exit(failure.CodeNo, fmt.Errorf("rewrote %d of %s, the others are held: run it again once they are released or broken", done, wording.Count(done+left, "record", "records")))
	}
	a.say.Text("rewrote %s of %s", wording.Count(done, "record", "records"), s.Name())
	return nil
}

// confirmRewrite shows the records that need rewriting, and asks.
func (a *app) confirmRewrite(ctx context.Context, s *store.Store, all []toRewrite) error {
	due := 0
	for _, r := range all {
		result := resultHeld
		switch {
		case r.bad != nil:
			result = resultBad
		case r.record.Released:
			result = resultDue
			due++
		}
		if err := a.sayRewrite(s, r, result); err != nil {
			return err
		}
	}
	return a.confirm(ctx, fmt.Sprintf("Acquire and release the %s due, in layout %s? [y/N] ", wording.Count(due, "record that is", "records that are"), s.Layout.Name()), "nothing was rewritten")
}

// rewriteOne acquires and releases a key. That writes the whole record anew,
// except the caller's data and attributes.
func rewriteOne(ctx context.Context, locks *leasehold.Client, r *toRewrite) (result string, err error) {
	opts := []leasehold.AcquireOption{leasehold.IfExists(), leasehold.WithoutRenewal()}
	if r.record.Key.Sort != "" {
		opts = append(opts, leasehold.WithSortKey(r.record.Key.Sort))
	}
	lock, err := locks.TryAcquire(ctx, r.record.Key.Partition, opts...)
	var held *leasehold.HeldError
	switch {
	case errors.As(err, &held):
		r.record = held.Holder
		return resultHeld, nil
	case errors.Is(err, leasehold.ErrNotFound):
		return "", nil
	case err != nil:
		return "", err
	}
	// A signal must not prevent the release.
	return resultRewritten, lock.Release(context.WithoutCancel(ctx), leasehold.KeepOnRelease())
}

// recordsToRewrite reads the records that need rewriting, in order of key.
func recordsToRewrite(ctx context.Context, s *store.Store, proto protocol.Rewriting, prefix string) ([]toRewrite, error) {
	in := &dynamodb.ScanInput{TableName: aws.String(s.Table), ConsistentRead: aws.Bool(true)}
	if prefix != "" {
		in.FilterExpression = aws.String("begins_with(#k, :p)")
		in.ExpressionAttributeNames = map[string]string{"#k": proto.Schema().Partition}
		in.ExpressionAttributeValues = protocol.Item{":p": &types.AttributeValueMemberS{Value: prefix}}
	}
	var all []toRewrite
	var at attempts.Walk
	for pages := dynamodb.NewScanPaginator(s.DB, in); pages.HasMorePages(); {
		page, err := pages.NextPage(ctx)
		if err == nil {
			err = at.Pass(page.ResultMetadata, page.Items, page.LastEvaluatedKey)
		}
		if err != nil {
			return nil, err
		}
		for _, item := range page.Items {
			what := proto.Foreign(item)
			if what == "" {
				continue
			}
			found := toRewrite{what: what}
			r, err := proto.Decode(item)
			found.record = leasehold.Record{Key: leasehold.Key(proto.Schema().KeyOf(item)), Owner: r.Owner, Released: r.Released}
			var problem *protocol.DecodeError
			if errors.As(err, &problem) {
				found.bad = &leasehold.RecordError{
					Key: found.record.Key, Attribute: problem.Attribute, Problem: problem.Problem, Item: item,
				}
			}
			all = append(all, found)
		}
	}
	slices.SortFunc(all, func(x, y toRewrite) int {
		return cmp.Or(cmp.Compare(x.record.Key.Partition, y.record.Key.Partition), cmp.Compare(x.record.Key.Sort, y.record.Key.Sort))
	})
	return all, nil
}

// sayRewrite writes one line with the result for a record.
func (a *app) sayRewrite(s *store.Store, r toRewrite, result string) error {
	by := ""
	if result == resultHeld {
		by = r.record.Owner
	}
	if a.flags.json {
		return json.NewEncoder(a.Stdout).Encode(struct {
			Table   string `json:"table"`
			Key     string `json:"key"`
			SortKey string `json:"sortKey,omitempty"`
			Result  string `json:"result"`
			What    string `json:"what"`
			Owner   string `json:"owner,omitempty"`
		}{s.Table, r.record.Key.Partition, r.record.Key.Sort, result, r.what, by})
	}
	cells := []string{result, visible.Name(r.record.Key.String()), visible.Name(r.what)}
	if by != "" {
		cells = append(cells, "by "+wording.Owner(by))
	}
	return a.Stdout.Show(say.Tabbed(cells...), "\n")
}
