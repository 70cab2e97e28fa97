package grants

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/arn"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/cli/misuse"
	"github.com/leasehold-go/leasehold/internal/cli/say"
	"github.com/leasehold-go/leasehold/internal/cli/store"
)

// Grant is a grant and the store that it was made in. In another store, a table
// of the same name would show the grant as lost.
type Grant struct {
	leasehold.Grant
	At Place
}

// Place distinguishes tables of the same name, and says how their records are
// written. It is part of the grant's JSON. Unknown fields are empty, as in grants that
// the library or an earlier version of the command wrote.
type Place struct {
	File        string `json:"file,omitempty"`
	TableID     string `json:"tableId,omitempty"` // in a file, which may be deleted and made anew
	Region      string `json:"region,omitempty"`
	EndpointURL string `json:"endpointUrl,omitempty"`
	Account     string `json:"account,omitempty"` // of the credentials, if they say it
	Layout      string `json:"layout,omitempty"`
}

// String is the place for people.
func (p Place) String() string {
	if p.File != "" {
		return p.File
	}
	text := p.Region
	if p.EndpointURL != "" {
		text += " at " + p.EndpointURL
	}
	if p.Account != "" {
		text += " of account " + p.Account
	}
	return text
}

// MarshalJSON writes the grant with its place, as one object.
func (g Grant) MarshalJSON() ([]byte, error) {
	if g.At == (Place{}) {
		return json.Marshal(g.Grant)
	}
	return say.Joined(g.Grant, g.At)
}

// UnmarshalJSON reads what MarshalJSON or the library has written.
func (g *Grant) UnmarshalJSON(b []byte) error {
	if err := json.Unmarshal(b, &g.Grant); err != nil {
		return err
	}
	return json.Unmarshal(b, &g.At)
}

// parse reads a grant as leasehold acquire writes it.
func parse(b []byte) (Grant, bool) {
	var g Grant
	err := json.Unmarshal(b, &g)
	return g, err == nil && g.ID != "" && g.Table != ""
}

// leaseEnds is when the lease of a grant expires by this machine's clock:
// TrustedUntil plus the margin, which is a tenth of the lease.
func leaseEnds(g Grant) time.Time { return g.TrustedUntil.Add(g.Lease / 10) }

// PlaceOf returns the place of this store.
func PlaceOf(ctx context.Context, s *store.Store) Place {
	if s.File != "" {
		return Place{File: s.File, TableID: tableID(ctx, s), Layout: s.Layout.Name()}
	}
	o := s.DB.Options()
	at := Place{Region: o.Region, EndpointURL: aws.ToString(o.BaseEndpoint), Layout: s.Layout.Name()}
	if o.Credentials != nil && !store.IsLoopback(at.EndpointURL) && !arn.IsARN(s.Table) { // an ARN names the account
		if c, err := o.Credentials.Retrieve(ctx); err == nil { // kept for the requests that follow
			at.Account = c.AccountID
		}
	}
	return at
}

// tableID returns the id that a table of a local store got when it was made. Empty: it
// is not known.
func tableID(ctx context.Context, s *store.Store) string {
	out, err := s.DB.DescribeTable(ctx, &dynamodb.DescribeTableInput{TableName: aws.String(s.Table)})
	if err != nil || out.Table == nil {
		return ""
	}
	return aws.ToString(out.Table.TableId)
}

// madeAnew is what differs if the table in a file is not the one that there was.
const madeAnew = "made anew"

// differs says in what this place is not that one, so that a grant of one would seem
// lost in the other. Empty: nothing that is known.
func (p Place) differs(from Place) string {
	known := func(a, b string) bool { return a != "" && b != "" && a != b }
	switch {
	case p == Place{} || from == Place{}:
		return ""
	case p.File != from.File:
		return "--file"
	case known(p.TableID, from.TableID):
		return madeAnew
	case p.EndpointURL != from.EndpointURL:
		return "--endpoint-url"
	case p.Region != from.Region:
		return "--region"
	case known(p.Account, from.Account):
		return "--profile"
	}
	return ""
}

// RefuseOther refuses a store that is not the one that the grant was made in. asked is
// the endpoint that a flag names, if any.
func (g Grant) RefuseOther(here Place, asked string) error {
	switch what := g.At.differs(here); what {
	case "":
		return nil
	case madeAnew:
		return misuse.Errorf("the grant is from a table %s in %s that is gone: the one that is there now was made since, or another file system is mounted",
			g.Table, g.At)
	case "--endpoint-url":
		if asked != "" && asked != g.At.EndpointURL {
			return nil // by request, as a server can move: see unproven
		}
		return misuse.Errorf("the grant is from table %s in %s, and this is %s: unset AWS_ENDPOINT_URL_DYNAMODB and AWS_ENDPOINT_URL, or name the server with --endpoint-url",
			g.Table, g.At, here)
	default:
		return misuse.Errorf("the grant is from table %s in %s, and this is %s: choose that with %s", g.Table, g.At, here, what)
	}
}

// UseStore sets the flags to the table of the grant, and its layout; like all flags, they
// override the environment. Flags that name another are refused, because
// the grant would seem lost there. Only --endpoint-url may differ, as a server
// can move.
func (g Grant) UseStore(f *store.Settings) error {
	refuse := func(flag, given, made string) error {
		return misuse.Errorf("%s %s: the grant is from table %s in %s: leave out %[1]s", flag, given, g.Table, made)
	}
	if f.Table != "" && f.Table != g.Table {
		return misuse.Errorf("the grant is from table %s, not %s", g.Table, f.Table)
	}
	if made := g.At.Layout; made != "" {
		// Another layout may fit the table and yet write what its library cannot read.
		if f.LayoutGiven && f.LayoutName != made {
			return refuse("--layout", f.LayoutName, "layout "+made)
		}
		f.LayoutName, f.LayoutGiven = made, true
	}
	switch {
	case g.At == (Place{}):
		return nil // written by the library, which names only the table
	case g.At.File != "":
		if _, err := os.Lstat(g.At.File); errors.Is(err, fs.ErrNotExist) {
			return misuse.Errorf("the grant is from table %s in %s, and that file is not there", g.Table, g.At.File)
		}
		if f.File != "" {
			if abs, err := filepath.Abs(f.File); err != nil || abs != g.At.File {
				return refuse("--file", f.File, g.At.File)
			}
		}
		f.Table, f.File = g.Table, g.At.File
		return nil
	case f.File != "":
		return refuse("--file", f.File, "DynamoDB")
	case f.Region != "" && f.Region != g.At.Region:
		return refuse("--region", f.Region, g.At.Region)
	}
	f.Table, f.Region, f.OfGrant = g.Table, g.At.Region, true
	if f.Endpoint == "" {
		f.Endpoint = g.At.EndpointURL
	}
	return nil
}
