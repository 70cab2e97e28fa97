package checks

import (
	"cmp"
	"context"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sts"

	"github.com/leasehold-go/leasehold/internal/attempts"
	"github.com/leasehold-go/leasehold/internal/cli/wording"
	"github.com/leasehold-go/leasehold/internal/decide"
)

// Origin is where a DynamoDB table and its caller are known from.
type Origin struct {
	AWS      aws.Config
	TableBy  string // what has named the table
	RegionBy string // what has named the Region; empty: nothing
}

// From are the checks of where a DynamoDB table is, and who asks.
func (t *Target) From(o Origin) []Check {
	return []Check{
		{"looking where the table is", func(context.Context) []Finding { return []Finding{t.named(o), t.region(o)} }},
		{"asking who the caller is", func(ctx context.Context) []Finding { return t.identity(ctx, o) }},
	}
}

// named says which table it is, and who says so.
func (t *Target) named(o Origin) Finding {
	return Finding{
		Check: "store", State: OK, What: fmt.Sprintf("table %s in %s, layout %s, named by %s", t.Table, t.Location, t.Layout.Name(), o.TableBy),
		Values: map[string]any{"table": t.Table, "in": t.Location, "layout": t.Layout.Name()},
	}
}

// region says where requests go, and who says so.
func (t *Target) region(o Origin) Finding {
	is := t.DB.Options()
	f := Finding{
		Check: "region", State: OK, What: is.Region + ", from " + cmp.Or(o.RegionBy, "nowhere: any will do for a server on this machine"),
		Values: map[string]any{"region": is.Region},
	}
	if endpoint := aws.ToString(is.BaseEndpoint); endpoint != "" {
		f.What += "; requests go to " + endpoint
		f.Values["endpoint"] = endpoint
	}
	return f
}

// identity asks AWS who the caller is. Locks do not need it: without an answer it is not
// known, and that is all.
func (t *Target) identity(ctx context.Context, from Origin) []Finding {
	ctx, cancel := context.WithTimeout(ctx, attempts.Limit)
	defer cancel()
	o := t.DB.Options()
	f := Finding{Check: "identity", State: Unknown}
	creds, err := o.Credentials.Retrieve(ctx)
	if err != nil {
		return nil // the first request says so
	}
	client := sts.NewFromConfig(from.AWS, func(s *sts.Options) {
		s.Region, s.Credentials, s.Retryer = o.Region, o.Credentials, aws.NopRetryer{}
	})
	endpoint := client.Options().BaseEndpoint
	if endpoint == nil && t.onThisMachine() {
		f.What = "not asked: the table's server is on this machine, and AWS does not know its callers"
		return []Finding{f}
	}
	who, err := client.GetCallerIdentity(ctx, &sts.GetCallerIdentityInput{})
	switch {
	case err == nil:
		f.State, f.What = OK, fmt.Sprintf("%s, credentials from %s", aws.ToString(who.Arn), creds.Source)
		f.Values = map[string]any{"arn": aws.ToString(who.Arn), "account": aws.ToString(who.Account), "credentials": creds.Source}
		if creds.CanExpire {
			f.What += ", renewed before they expire at " + wording.Time(creds.Expires)
		}
	case decide.Answered(err) && endpoint == nil && o.BaseEndpoint == nil:
		f.State, f.What, f.Err = Fatal, "AWS does not accept the credentials from "+creds.Source, err
	default:
		f.What, f.Err = "credentials from "+creds.Source+"; STS has not said who the caller is, and locks do not need it", err
	}
	return []Finding{f}
}
