package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/sts"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/attempts"
	"github.com/leasehold-go/leasehold/internal/decide"
	"github.com/leasehold-go/leasehold/internal/protocol"
	"github.com/leasehold-go/leasehold/table"
)

// sayStore says which table it is, and who says so.
func (d *doctor) sayStore() {
	d.say(finding{
		Check: "store", State: fine, What: fmt.Sprintf("table %s in %s, layout %s, named by %s",
			d.store.table, d.store.location, d.store.layout.Name(), d.namedBy("table", "LEASEHOLD_TABLE")),
		Values: map[string]any{"table": d.store.table, "in": d.store.location, "layout": d.store.layout.Name()},
	})
}

// namedBy says whether a flag or a variable named the store.
func (d *doctor) namedBy(flag, variable string) string {
	if flag == "table" && d.app.flags.table != "" || flag == "file" && d.app.flags.file != "" {
		return "--" + flag
	}
	return variable
}

// checkRegion says where requests go, and who says so.
func (d *doctor) checkRegion() {
	o := d.store.db.Options()
	region := o.Region
	f := finding{Check: "region", State: fine, What: region + ", from " + cmp.Or(d.app.regionBy(d.store.aws), "nowhere: any will do for a server on this machine"), Values: map[string]any{"region": region}}
	if endpoint := aws.ToString(o.BaseEndpoint); endpoint != "" {
		f.What += "; requests go to " + endpoint
		f.Values["endpoint"] = endpoint
	}
	d.say(f)
}

// checkIdentity asks AWS who the caller is. Locks do not need it: without an answer
// it is not known, and that is all.
func (d *doctor) checkIdentity(ctx context.Context) {
	d.progress("asking who the caller is")
	ctx, cancel := context.WithTimeout(ctx, attempts.Limit)
	defer cancel()
	o := d.store.db.Options()
	f := finding{Check: "identity", State: notKnown}
	creds, err := o.Credentials.Retrieve(ctx)
	if err != nil {
		return // the first request says so
	}
	client := sts.NewFromConfig(d.store.aws, func(s *sts.Options) {
		s.Region, s.Credentials, s.Retryer = o.Region, o.Credentials, aws.NopRetryer{}
	})
	endpoint := client.Options().BaseEndpoint
	if endpoint == nil && isLoopback(aws.ToString(o.BaseEndpoint)) {
		f.What = "not asked: the table's server is on this machine, and AWS does not know its callers"
		d.say(f)
		return
	}
	who, err := client.GetCallerIdentity(ctx, &sts.GetCallerIdentityInput{})
	switch {
	case err == nil:
		f.State, f.What = fine, fmt.Sprintf("%s, credentials from %s", aws.ToString(who.Arn), creds.Source)
		f.Values = map[string]any{"arn": aws.ToString(who.Arn), "account": aws.ToString(who.Account), "credentials": creds.Source}
		if creds.CanExpire {
			f.What += ", renewed before they expire at " + timeJSON(creds.Expires)
		}
	case decide.Answered(err) && endpoint == nil && o.BaseEndpoint == nil:
		f.State, f.What = fatal, "AWS does not accept the credentials from "+creds.Source+": "+reason(err)
	default:
		f.What = fmt.Sprintf("STS has not said who the caller is: %s; locks do not need it; credentials from %s", reason(err), creds.Source)
	}
	d.say(f)
}

// described answers table.Check with what is known already.
type described struct {
	table.DB
	table *dynamodb.DescribeTableOutput
	ttl   *dynamodb.DescribeTimeToLiveOutput
}

func (d described) DescribeTable(context.Context, *dynamodb.DescribeTableInput, ...func(*dynamodb.Options)) (*dynamodb.DescribeTableOutput, error) {
	return d.table, nil
}

func (d described) DescribeTimeToLive(context.Context, *dynamodb.DescribeTimeToLiveInput, ...func(*dynamodb.Options)) (*dynamodb.DescribeTimeToLiveOutput, error) {
	return d.ttl, nil
}

// checkTable checks the table's settings. It reports whether items can be tried.
func (d *doctor) checkTable(ctx context.Context) bool {
	d.progress("describing the table")
	name := aws.String(d.store.table)
	var known described
	err := d.ask(ctx, func(ctx context.Context) (err error) {
		known.table, err = d.store.db.DescribeTable(ctx, &dynamodb.DescribeTableInput{TableName: name})
		return err
	})
	var missing *types.ResourceNotFoundException
	switch {
	case errors.As(err, &missing):
		d.failed = true
		d.say(finding{Check: "table", State: fatal, What: "there is no such table", Do: "create it with leasehold table create, or check Region, account and endpoint"})
		return false
	case isDenied(err):
		d.say(finding{
			Check: "DescribeTable", State: notKnown, What: "dynamodb:DescribeTable is denied, so status, keys, billing and replicas are not known; locks do not need it",
			Do: "to check them too, run doctor with credentials that may",
		})
		return true
	case err != nil:
		d.trouble("table", reason(err))
		return false
	}
	d.sayAllowed("DescribeTable", "table check, doctor")
	err = d.ask(ctx, func(ctx context.Context) (err error) {
		known.ttl, err = d.store.db.DescribeTimeToLive(ctx, &dynamodb.DescribeTimeToLiveInput{TableName: name})
		return err
	})
	switch {
	case isDenied(err):
		d.say(finding{
			Check: "DescribeTimeToLive", State: notKnown, What: "dynamodb:DescribeTimeToLive is denied, so TTL is not known; locks do not need it",
			Do: "to check it too, run doctor with credentials that may",
		})
	case err != nil:
		d.trouble("DescribeTimeToLive", reason(err))
		return false
	default:
		d.sayAllowed("DescribeTimeToLive", "table check, doctor")
	}
	return d.sayTable(ctx, known)
}

func (d *doctor) sayAllowed(action, uses string) {
	if d.store.file != "" {
		return
	}
	d.say(finding{Check: action, State: fine, What: "allowed: " + uses, Values: map[string]any{"action": "dynamodb:" + action, "allowed": true}})
}

// sayTable compares the table with its layout. It reports whether items can be
// tried.
func (d *doctor) sayTable(ctx context.Context, known described) bool {
	want, ttlKnown := d.proto.Schema(), known.ttl != nil
	if !ttlKnown {
		known.ttl = &dynamodb.DescribeTimeToLiveOutput{}
	}
	problems, err := table.Check(ctx, known, table.Spec{Name: d.store.table, Layout: d.store.layout})
	if err != nil {
		d.trouble("table", errorText(err, d.store.table))
		return false
	}
	t, fits := known.table.Table, true
	for _, line := range []struct{ about, check, ok string }{
		{"status", "table", d.statusText(t)},
		{"keys", "keys", keysText(want)},
		{"ttl", "ttl", ttlText(want)},
		{"", "billing", billingText(t, timingOf(d.flags.lease, d.proto.Skew()).Every)},
		{"replicas", "replicas", replicasText(t)},
	} {
		switch {
		case line.about == "ttl" && (!ttlKnown || !fits), d.store.file != "" && (line.check == "billing" || line.check == "replicas"):
			continue
		}
		found := finding{Check: line.check, State: fine, What: line.ok}
		for _, p := range problems {
			switch {
			case p.About != line.about:
			case p.Fatal:
				found.State, found.What, fits = fatal, p.What, false
			default:
				found.State, found.What = warning, p.What
			}
		}
		d.say(found)
	}
	return fits
}

func (d *doctor) statusText(t *types.TableDescription) string {
	switch {
	case d.store.created:
		return d.store.table + ", made now"
	case d.store.file != "":
		return d.store.table
	}
	return fmt.Sprintf("%s, %s", t.TableStatus, aws.ToString(t.TableArn))
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
func billingText(t *types.TableDescription, every time.Duration) string {
	if t.BillingModeSummary != nil && t.BillingModeSummary.BillingMode == types.BillingModePayPerRequest || t.ProvisionedThroughput == nil {
		return "pay per request"
	}
	writes := aws.ToInt64(t.ProvisionedThroughput.WriteCapacityUnits)
	return fmt.Sprintf("provisioned: %d read and %d write units a second, enough to renew %.0f locks every %s",
		aws.ToInt64(t.ProvisionedThroughput.ReadCapacityUnits), writes, float64(writes)*every.Seconds(), shortDuration(every))
}

func replicasText(t *types.TableDescription) string {
	if len(t.Replicas) == 0 {
		return "none: the table is in one Region"
	}
	var regions []string
	for _, r := range t.Replicas {
		regions = append(regions, aws.ToString(r.RegionName))
	}
	return "strong consistency with " + strings.Join(regions, ", ") + ": one holder over all Regions; but no TTL there, and no transactions: no Commit, no several keys at once"
}

// checkPermissions tries every action on items. It reports whether the table
// answers.
func (d *doctor) checkPermissions(ctx context.Context) bool {
	key := d.key()
	permissions, err := d.store.permissions(key)
	if err != nil {
		d.trouble("permissions", err.Error())
		return false
	}
	for _, p := range permissions {
		action := strings.TrimPrefix(p.action, "dynamodb:")
		d.progress("trying " + action)
		var is bool
		err := d.ask(ctx, func(ctx context.Context) (err error) {
			is, err = allowed(p.try(ctx))
			return err
		})
		needed := p.neededFor(table.Access(d.flags.access))
		f := finding{Check: action, State: fine, Values: map[string]any{"action": p.action, "allowed": is}}
		switch cause := decide.Classify(err).Cause; {
		case is:
			f.What = "allowed: " + p.uses
		case err == nil && needed:
			f.State, f.What = warning, "denied: "+p.uses
			if p.fatal {
				f.State = fatal
			}
			f.Do = fmt.Sprintf("allow %s in the caller's IAM policy, as leasehold table policy %s does", p.action, d.flags.access)
		case err == nil:
			f.What = fmt.Sprintf("denied, and access %s does not need it: %s", d.flags.access, p.uses)
		case cause == decide.Busy:
			f.State, f.What, f.Values = notKnown, "throttled: not known", nil
		case cause == decide.Unreachable:
			d.trouble(action, reason(err))
			return false
		default:
			f.State, f.What, f.Values = warning, "refused: "+reason(err)+": "+p.uses, nil
			if p.fatal {
				f.State = fatal
			}
		}
		d.say(f)
		if !is {
			d.cannot = append(d.cannot, p.action)
		}
	}
	return true
}

// key is the key to write to.
func (d *doctor) key() leasehold.Key {
	if d.testKey == (leasehold.Key{}) {
		d.testKey = d.store.testKey(randomKey(d.flags.prefix+doctorPrefix), "doctor")
	}
	return d.testKey
}
