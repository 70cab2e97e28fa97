package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/spf13/cobra"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/protocol"
	"github.com/leasehold-go/leasehold/internal/records"
)

type rewriteFlags struct {
	yes, dryRun bool
	prefix      string
}

func (a *app) newTableRewrite() *cobra.Command {
	var f rewriteFlags
	cmd := &cobra.Command{
		Use:   "rewrite [PREFIX] [flags]",
		Short: "Make idle records of another layout readable for --layout's library",
		Long: `Make the records that another layout wrote readable for the library of
--layout, awslabs or dynamolock, before its first process starts.

Reads the whole table, shows which records are in the way, and asks. Each that
is idle and whose key begins with PREFIX is acquired and released once: data
and attributes stay, the token grows by one. Those that are held are skipped
and named (exit code 1): once they are released, run it again. No process may
use another layout by then, or it writes such records anew. With --dry-run the
exit code is 1 if there are any.`,
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
			case !f.yes && !f.dryRun && (!isTerminal(a.Stdin) || !isTerminal(a.Stderr)):
				return usageOf(cmd, "it asks at a terminal only: look with --dry-run, then give --yes")
			}
			s, err := a.open(cmd, "")
			if err != nil {
				return err
			}
			defer s.close()
			proto, err := records.Of(s.layout)
			if err != nil {
				return err
			}
			rewriting, ok := proto.(protocol.Rewriting)
			if !ok {
				return usageOf(cmd, "layout %s reads all that can be in its table: there is nothing to rewrite", s.layout.Name())
			}
			return no(s.withLocks(cmd.Context(), func(ctx context.Context, locks *leasehold.Client) error {
				return a.rewrite(ctx, s, locks, rewriting, f)
			}))
		},
	}
	fl := cmd.Flags()
	fl.SortFlags = false
	fl.BoolVar(&f.dryRun, "dry-run", false, "show what is in the way and write nothing")
	fl.BoolVarP(&f.yes, "yes", "y", false, "do not ask")
	return cmd
}

// toRewrite is a record that the layout's library cannot live with.
type toRewrite struct {
	record leasehold.Record
	what   string // of it
	bad    error  // it is no lock of the layout
}

// What came of a record.
const (
	isDue     = "due"
	isDone    = "rewritten"
	isSkipped = "held"
	isBad     = "bad"
)

func (a *app) rewrite(ctx context.Context, s *store, locks *leasehold.Client, proto protocol.Rewriting, f rewriteFlags) error {
	all, err := foreignRecords(ctx, s, proto, f.prefix)
	if err != nil {
		return cause(ctx, err)
	}
	if len(all) == 0 {
		a.say.text("nothing to rewrite in %s: %s reads every record", s.table, s.layout.Name())
		return nil
	}
	if !f.yes && !f.dryRun {
		if err := a.confirmRewrite(ctx, s, all); err != nil {
			return err
		}
	}
	done, left, damaged := 0, 0, false
	for _, r := range all {
		result := isDue
		switch {
		case r.bad != nil:
			a.say.fail(r.bad)
			result, damaged = isBad, true
		case !r.record.Released:
			result = isSkipped
		case !f.dryRun:
			if result, err = rewriteOne(ctx, locks, &r); err != nil {
				a.say.note("rewrote %d of %d records: what is done stays done, run it again for the others", done, len(all))
				return cause(ctx, err)
			}
		}
		switch result {
		case isDone:
			done++
		case "": // it is gone
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
		return exit(codeTrouble, nil)
	case f.dryRun:
		return exit(codeNo, nil)
	case left > 0:
		return exit(codeNo, fmt.Errorf("rewrote %d of %d records, the others are held: once they are released or broken, run it again", done, done+left))
	}
	a.say.text("rewrote %d records of %s", done, s.table)
	return nil
}

// confirmRewrite shows what is in the way, and asks.
func (a *app) confirmRewrite(ctx context.Context, s *store, all []toRewrite) error {
	due := 0
	for _, r := range all {
		result := isSkipped
		switch {
		case r.bad != nil:
			result = isBad
		case r.record.Released:
			result = isDue
			due++
		}
		if err := a.sayRewrite(s, r, result); err != nil {
			return err
		}
	}
	yes, err := a.ask(ctx, fmt.Sprintf("Acquire and release each of the %d that are due, in layout %s? [y/N] ", due, s.layout.Name()))
	if err == nil && !yes {
		err = exit(codeNo, errors.New("nothing was rewritten"))
	}
	return err
}

// rewriteOne acquires and releases a key, which writes all of its record but
// what it carries for the caller.
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
		return isSkipped, nil
	case errors.Is(err, leasehold.ErrNotFound):
		return "", nil
	case err != nil:
		return "", err
	}
	// A signal does not keep it from being released.
	return isDone, lock.Release(context.WithoutCancel(ctx), leasehold.KeepOnRelease())
}

// foreignRecords reads what is in the way, in order of key.
func foreignRecords(ctx context.Context, s *store, proto protocol.Rewriting, prefix string) ([]toRewrite, error) {
	in := &dynamodb.ScanInput{TableName: aws.String(s.table), ConsistentRead: aws.Bool(true)}
	if prefix != "" {
		in.FilterExpression = aws.String("begins_with(#k, :p)")
		in.ExpressionAttributeNames = map[string]string{"#k": proto.Schema().Partition}
		in.ExpressionAttributeValues = protocol.Item{":p": &types.AttributeValueMemberS{Value: prefix}}
	}
	var all []toRewrite
	for pages := dynamodb.NewScanPaginator(s.db, in); pages.HasMorePages(); {
		page, err := pages.NextPage(ctx)
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

// sayRewrite writes what came of a record, a line each.
func (a *app) sayRewrite(s *store, r toRewrite, result string) error {
	by := ""
	if result == isSkipped {
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
		}{s.table, r.record.Key.Partition, r.record.Key.Sort, result, r.what, by})
	}
	cells := []string{result, printable(r.record.Key.String()), printable(r.what)}
	if by != "" {
		cells = append(cells, "by "+shortOwner(by))
	}
	_, err := fmt.Fprintln(a.Stdout, strings.Join(cells, "\t"))
	return err
}
