package checks

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/cli/wording"
	"github.com/leasehold-go/leasehold/internal/decide"
	"github.com/leasehold-go/leasehold/internal/lease"
	"github.com/leasehold-go/leasehold/internal/protocol"
	"github.com/leasehold-go/leasehold/table"
)

// described is the table as table.Check asks for it, remembered.
type described struct {
	table.DB
	table *dynamodb.DescribeTableOutput
	noTTL bool // the caller may not ask for it
}

func (d *described) DescribeTable(ctx context.Context, in *dynamodb.DescribeTableInput, opts ...func(*dynamodb.Options)) (*dynamodb.DescribeTableOutput, error) {
	err := patiently(ctx, func(ctx context.Context) (err error) {
		d.table, err = d.DB.DescribeTable(ctx, in, opts...)
		return err
	})
	return d.table, err
}

func (d *described) DescribeTimeToLive(ctx context.Context, in *dynamodb.DescribeTimeToLiveInput, opts ...func(*dynamodb.Options)) (out *dynamodb.DescribeTimeToLiveOutput, err error) {
	err = patiently(ctx, func(ctx context.Context) (err error) {
		out, err = d.DB.DescribeTimeToLive(ctx, in, opts...)
		return err
	})
	if d.noTTL = decide.Denied(err); d.noTTL {
		return &dynamodb.DescribeTimeToLiveOutput{}, nil
	}
	return out, err
}

// settings checks the table's settings.
func (t *Target) settings(ctx context.Context) []Finding {
	known := described{DB: t.DB}
	problems, err := table.Check(ctx, &known, table.Spec{Name: t.Table, Layout: t.Layout})
	switch {
	case errors.Is(err, leasehold.ErrTableNotFound):
		return []Finding{failed("table", leasehold.ErrTableNotFound)}
	case decide.Denied(err):
		return []Finding{untold("DescribeTable", "status, keys, billing and replicas are not known")}
	case err != nil:
		return []Finding{failed("table", err)}
	}
	found := t.allowed("DescribeTable")
	if known.noTTL {
		found = append(found, untold("DescribeTimeToLive", "TTL is not known"))
	} else {
		found = append(found, t.allowed("DescribeTimeToLive")...)
	}
	return append(found, t.compared(known, problems)...)
}

// untold says that the caller may not ask.
func untold(action, so string) Finding {
	return Finding{
		Check: action, State: Unknown, What: "dynamodb:" + action + " is denied, so " + so + "; locks do not need it",
		Do: "to check this too, use credentials that may",
	}
}

func (t *Target) allowed(action string) []Finding {
	if t.isLocal() {
		return nil
	}
	return []Finding{{Check: action, State: OK, What: "allowed: table check, doctor", Values: map[string]any{"action": "dynamodb:" + action, "allowed": true}}}
}

// compared says of each setting whether it fits the layout.
func (t *Target) compared(known described, problems []table.Problem) (found []Finding) {
	want, is, fits := t.Proto.Schema(), known.table.Table, true
	for _, line := range []struct{ about, check, ok string }{
		{"status", "table", t.statusText(is)},
		{"keys", "keys", keysText(want)},
		{"ttl", "ttl", ttlText(want)},
		{"", "billing", billingText(is, lease.Usual(t.Lease, t.Proto.Skew()).Every)},
		{"replicas", "replicas", replicasText(is)},
	} {
		switch {
		case line.about == "ttl" && (known.noTTL || !fits), t.isLocal() && (line.check == "billing" || line.check == "replicas"):
			continue
		}
		f := Finding{Check: line.check, State: OK, What: line.ok}
		for _, p := range problems {
			switch {
			case p.About != line.about:
			case p.Fatal:
				f.State, f.What, f.Last, fits = Fatal, p.What, true, false
			default:
				f.State, f.What = Warning, p.What
			}
		}
		found = append(found, f)
	}
	return found
}

func (t *Target) statusText(is *types.TableDescription) string {
	text := t.Table + " in " + t.Location
	switch {
	case t.Created:
		return text + ", made now"
	case t.isLocal():
		return text
	}
	return fmt.Sprintf("%s: %s, %s", text, is.TableStatus, aws.ToString(is.TableArn))
}

func keysText(want protocol.Schema) string {
	text := fmt.Sprintf("partition key %s, a string", want.Partition)
	switch {
	case want.SortNumber:
		text += fmt.Sprintf("; sort key %s, a number", want.Sort)
	case want.Sort != "":
		text += fmt.Sprintf("; sort key %s, a string", want.Sort)
	}
	return text
}

func ttlText(want protocol.Schema) string {
	if want.TTL == "" {
		return "off, as this layout writes no time to live"
	}
	return "on for the attribute " + want.TTL + ": released records go away by themselves"
}

// billingText says what the table is paid by, and for how many locks that is enough.
func billingText(is *types.TableDescription, every time.Duration) string {
	if is.BillingModeSummary != nil && is.BillingModeSummary.BillingMode == types.BillingModePayPerRequest || is.ProvisionedThroughput == nil {
		return "pay per request"
	}
	writes := aws.ToInt64(is.ProvisionedThroughput.WriteCapacityUnits)
	return fmt.Sprintf("provisioned: %d read and %d write units a second, enough to renew %.0f locks every %s",
		aws.ToInt64(is.ProvisionedThroughput.ReadCapacityUnits), writes, float64(writes)*every.Seconds(), wording.Duration(every))
}

func replicasText(is *types.TableDescription) string {
	if len(is.Replicas) == 0 {
		return "none: the table is in one Region"
	}
	var regions []string
	for _, r := range is.Replicas {
		regions = append(regions, aws.ToString(r.RegionName))
	}
	return "strong consistency with " + strings.Join(regions, ", ") + ": one holder over all Regions; but no TTL there, and no transactions: no Commit, no several keys at once"
}
