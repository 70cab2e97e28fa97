package cli

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/arn"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/cli/failure"
	"github.com/leasehold-go/leasehold/internal/cli/misuse"
	"github.com/leasehold-go/leasehold/internal/cli/say"
	"github.com/leasehold-go/leasehold/internal/cli/store"
)

// placedGrant is a grant and the store that it was made in. In another store, a table
// of the same name would show the grant as lost.
type placedGrant struct {
	leasehold.Grant
	at grantPlace
}

// grantPlace distinguishes tables of the same name. It is part of the grant's
// JSON. Unknown fields are empty, as in grants that the library or an earlier
// version of the command wrote.
type grantPlace struct {
	File        string `json:"file,omitempty"`
	TableID     string `json:"tableId,omitempty"` // in a file, which may be deleted and made anew
	Region      string `json:"region,omitempty"`
	EndpointURL string `json:"endpointUrl,omitempty"`
	Account     string `json:"account,omitempty"` // of the credentials, if they say it
}

// String is the place for people.
func (p grantPlace) String() string {
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

func (g placedGrant) MarshalJSON() ([]byte, error) {
	if g.at == (grantPlace{}) {
		return json.Marshal(g.Grant)
	}
	return say.Joined(g.Grant, g.at)
}

func (g *placedGrant) UnmarshalJSON(b []byte) error {
	if err := json.Unmarshal(b, &g.Grant); err != nil {
		return err
	}
	return json.Unmarshal(b, &g.at)
}

// placeOf returns the place of this store.
func placeOf(ctx context.Context, s *store.Store) grantPlace {
	if s.File != "" {
		return grantPlace{File: s.File, TableID: tableID(ctx, s)}
	}
	o := s.DB.Options()
	at := grantPlace{Region: o.Region, EndpointURL: aws.ToString(o.BaseEndpoint)}
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

// placed adds this store's place to a grant.
func placed(ctx context.Context, s *store.Store, g leasehold.Grant) placedGrant {
	return placedGrant{g, placeOf(ctx, s)}
}

// madeAnew is what differs if the table in a file is not the one that there was.
const madeAnew = "made anew"

// differs says in what this place is not that one, so that a grant of one would seem
// lost in the other. Empty: nothing that is known.
func (p grantPlace) differs(from grantPlace) string {
	known := func(a, b string) bool { return a != "" && b != "" && a != b }
	switch {
	case p == grantPlace{} || from == grantPlace{}:
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

// refuseOtherStore refuses a store that is not the one that a grant was made in.
func (a *app) refuseOtherStore(g placedGrant, here grantPlace) error {
	switch what := g.at.differs(here); what {
	case "":
		return nil
	case madeAnew:
		return misuse.Errorf("the grant is from a table %s in %s that is gone: the one that is there now was made since, or another file system is mounted",
			g.Table, g.at)
	case "--endpoint-url":
		if a.flags.Endpoint != "" && a.flags.Endpoint != g.at.EndpointURL {
			return nil // by request, as a server can move: see unproven
		}
		return misuse.Errorf("the grant is from table %s in %s, and this is %s: unset AWS_ENDPOINT_URL_DYNAMODB and AWS_ENDPOINT_URL, or name the server with --endpoint-url",
			g.Table, g.at, here)
	default:
		return misuse.Errorf("the grant is from table %s in %s, and this is %s: choose that with %s", g.Table, g.at, here, what)
	}
}

// unproven says that a grant which seems lost may have been made in another store than
// this one. nil: it was made in this one.
func unproven(g placedGrant, here grantPlace, err error) error {
	switch {
	case !errors.Is(err, leasehold.ErrLost):
		return nil
	case g.at == grantPlace{}:
		return &unprovenError{err, "the grant does not say in which store its table " + g.Table + " is, and this is " + here.String()}
	case g.at.EndpointURL != here.EndpointURL:
		return misuse.Errorf("the grant is from table %s in %s, and %s does not have it: if the server has not moved, leave out --endpoint-url",
			g.Table, g.at, here.EndpointURL)
	}
	return nil
}

// unprovenError is the loss of a grant that may be held in another store.
type unprovenError struct {
	err  error
	says string
}

func (e *unprovenError) Error() string { return failure.Brief(e.err) + ": " + e.says }

func (e *unprovenError) Unwrap() error { return e.err }

// useStoreOf sets the flags to the table of a grant; like all flags, they
// override the environment. Flags that name another table are refused, because
// the grant would seem lost there. Only --endpoint-url may differ, as a server
// can move.
func (a *app) useStoreOf(g placedGrant) error {
	f := &a.flags
	refuse := func(flag, given, made string) error {
		return misuse.Errorf("%s %s: the grant is from table %s in %s: leave out %[1]s", flag, given, g.Table, made)
	}
	switch {
	case f.Table != "" && f.Table != g.Table:
		return misuse.Errorf("the grant is from table %s, not %s", g.Table, f.Table)
	case g.at == (grantPlace{}):
		return nil // written by the library, which names only the table
	case g.at.File != "":
		if _, err := os.Lstat(g.at.File); errors.Is(err, fs.ErrNotExist) {
			return misuse.Errorf("the grant is from table %s in %s, and that file is not there", g.Table, g.at.File)
		}
		if f.File != "" {
			if abs, err := filepath.Abs(f.File); err != nil || abs != g.at.File {
				return refuse("--file", f.File, g.at.File)
			}
		}
		f.Table, f.File = g.Table, g.at.File
		return nil
	case f.File != "":
		return refuse("--file", f.File, "DynamoDB")
	case f.Region != "" && f.Region != g.at.Region:
		return refuse("--region", f.Region, g.at.Region)
	}
	f.Table, f.Region, f.OfGrant = g.Table, g.at.Region, true
	if f.Endpoint == "" {
		f.Endpoint = g.at.EndpointURL
	}
	return nil
}
