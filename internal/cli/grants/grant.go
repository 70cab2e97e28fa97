package grants

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/arn"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/cli/failure"
	"github.com/leasehold-go/leasehold/internal/cli/say"
	"github.com/leasehold-go/leasehold/internal/cli/store"
)

// Grant is a grant and the store that it was made in. In another store, a table with the
// same name would show the grant as lost.
type Grant struct {
	leasehold.Grant
	At Place
}

// Place distinguishes tables with the same name, and names the layout of their records. It
// is part of the grant's JSON. Unknown fields are empty, as in grants written by the library
// or by an earlier version of the command.
type Place struct {
	File        string `json:"file,omitempty"`
	Region      string `json:"region,omitempty"`
	EndpointURL string `json:"endpointUrl,omitempty"`
	Account     string `json:"account,omitempty"` // the account of the credentials, if they contain it
	Layout      string `json:"layout,omitempty"`
}

// String returns the place for people.
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

// MarshalJSON returns the grant and its place as one object.
func (g Grant) MarshalJSON() ([]byte, error) {
	if g.At == (Place{}) {
		return json.Marshal(g.Grant)
	}
	return say.Joined(g.Grant, g.At)
}

// UnmarshalJSON parses the output of MarshalJSON or of the library.
func (g *Grant) UnmarshalJSON(b []byte) error {
	if err := json.Unmarshal(b, &g.Grant); err != nil {
		return err
	}
	return json.Unmarshal(b, &g.At)
}

// parse parses a grant written by leasehold acquire.
func parse(b []byte) (Grant, bool) {
	var g Grant
	err := json.Unmarshal(b, &g)
	return g, err == nil && g.ID != "" && g.Table != ""
}

// leaseEnds returns the time on this machine's clock at which the lease of a grant expires.
// This is TrustedUntil plus the margin, which is a tenth of the lease.
func leaseEnds(g Grant) time.Time { return g.TrustedUntil.Add(g.Lease / 10) }

// PlaceOf returns the place of the store s.
func PlaceOf(ctx context.Context, s *store.Store) Place {
	if s.File != "" {
		return Place{File: s.File, Layout: s.Layout.Name()}
	}
	o := s.Home.Options()
	at := Place{Region: o.Region, EndpointURL: aws.ToString(o.BaseEndpoint), Layout: s.Layout.Name()}
	if o.Credentials != nil && !store.IsLoopback(at.EndpointURL) && !arn.IsARN(s.Table) { // not needed for an ARN, which contains the account
		if c, err := o.Credentials.Retrieve(ctx); err == nil { // this costs the next requests nothing, because the credentials are cached for them
			at.Account = c.AccountID
		}
	}
	return at
}

// differs compares two places. A grant made in one place would seem lost in another.
// differs returns the flag for the first difference, or "" if no difference is known.
func (p Place) differs(from Place) string {
	switch {
	case p == Place{} || from == Place{}:
		return ""
	case p.File != from.File:
		return "--file"
	case p.EndpointURL != from.EndpointURL:
		return "--endpoint-url"
	case p.Region != from.Region:
		return "--region"
	case p.Account != "" && from.Account != "" && p.Account != from.Account:
		return "--profile"
	}
	return ""
}

// RefuseOther returns an error if the store is not the grant's own. asked is the endpoint
// that a flag names, if any.
func (g Grant) RefuseOther(here Place, asked string) error {
	switch what := g.At.differs(here); what {
	case "":
		return nil
	case "--endpoint-url":
		if asked != "" && asked != g.At.EndpointURL {
			return nil // accepted, because the user asked for this endpoint and a server can move: see explain
		}
		return failure.Misusef("the grant is from table %s in %s, and this is %s: unset AWS_ENDPOINT_URL_DYNAMODB and AWS_ENDPOINT_URL, or name the server with --endpoint-url",
			g.Table, g.At, here)
	default:
		return failure.Misusef("the grant is from table %s in %s, and this is %s: choose that with %s", g.Table, g.At, here, what)
	}
}

// UseStore sets the flags to the table of the grant and its layout. Like all flags, they
// override the environment. UseStore refuses flags that name another table, because the
// grant would seem lost there. Only --endpoint-url may name something else, because a
// server can move.
func (g Grant) UseStore(f *store.Settings) error {
	if f.Table != "" && f.Table != g.Table {
		return failure.Misusef("the grant is from table %s, not %s", g.Table, f.Table)
	}
	if g.At == (Place{}) {
		return nil // the library wrote this grant, and the library stores only the table
	}
	if _, err := os.Lstat(g.At.File); g.At.File != "" && errors.Is(err, fs.ErrNotExist) {
		return failure.Misusef("the grant is from table %s in %s, and that file does not exist", g.Table, g.At.File)
	}
	file, err := filepath.Abs(f.File)
	switch made := g.At.String(); {
	// A layout given by a flag must be the grant's layout. Another layout may fit the
	// table, but write records that the library which uses the table cannot read.
	case f.Layout.Given && g.At.Layout != "" && f.Layout.Value != g.At.Layout:
		return g.refuseFlag("--layout", f.Layout.Value, "layout "+g.At.Layout)
	case f.File != "" && (err != nil || file != g.At.File):
		return g.refuseFlag("--file", f.File, made)
	case f.Region != "" && f.Region != g.At.Region:
		return g.refuseFlag("--region", f.Region, made)
	}
	f.Table, f.File, f.Region, f.OfGrant = g.Table, g.At.File, g.At.Region, g.At.File == ""
	f.Endpoint = cmp.Or(f.Endpoint, g.At.EndpointURL)
	if g.At.Layout != "" {
		_ = f.Layout.Set(g.At.Layout) // the error can be ignored, because any text is accepted
	}
	return nil
}

func (g Grant) refuseFlag(flag, given, made string) error {
	return failure.Misusef("%s %s: the grant is from table %s in %s: leave out %[1]s", flag, given, g.Table, made)
}

// Resume renews the grant. It refuses a copy of the grant from before an earlier renewal,
// since two processes could then hold the grant. here is the store of locks.
func (g Grant) Resume(ctx context.Context, locks *leasehold.Client, here Place, opts ...leasehold.RenewOption) (*leasehold.Lock, error) {
	lock, err := locks.Resume(ctx, g.Grant, opts...)
	return lock, g.explain(here, err)
}

// maxRenewalsFollowed limits how often ResumeToRelease tries again if another process
// renews the grant at the same time.
const maxRenewalsFollowed = 5

// ResumeToRelease is Resume for a grant that is to be released. It also accepts a copy of
// the grant from before a renewal, because the output of that renewal may have been lost.
// Id, token and owner of both copies are the same. ResumeToRelease renews for at least the
// duration least, because a shorter lease would be refused. The release then ends the
// lease.
func (g Grant) ResumeToRelease(ctx context.Context, locks *leasehold.Client, here Place, least time.Duration) (*leasehold.Lock, error) {
	if g.Lease != 0 { // a zero lease means that the grant is damaged
		g.Lease = max(g.Lease, least)
	}
	lock, err := locks.Resume(ctx, g.Grant)
	for range maxRenewalsFollowed {
		since := g.renewedSince(err)
		if since == nil {
			break
		}
		g.Versions = []string{since.Version}
		lock, err = locks.Resume(ctx, g.Grant)
	}
	return lock, g.explain(here, err)
}

// explain returns err. If err reports the loss of the grant, explain adds other possible
// causes, such as a renewal or another store.
func (g Grant) explain(here Place, err error) error {
	unsure := func(says string) error { return unsureError{failure.Like(err, failure.Brief(err)+": "+says)} }
	switch {
	case !errors.Is(err, leasehold.ErrLost):
		return err
	case g.renewedSince(err) != nil:
		return unsure("use the file that the latest renewal wrote; if that is lost, leasehold release still accepts this one")
	case g.At == Place{}:
		return unsure("the grant does not say in which store its table " + g.Table + " is, and this is " + here.String())
	case g.At.EndpointURL != here.EndpointURL:
		return failure.Misusef("the grant is from table %s in %s, and %s does not have it: if the server has not moved, leave out --endpoint-url",
			g.Table, g.At, here.EndpointURL)
	}
	return err
}

// unsureError reports the loss of a grant that may still be held, because the grant was
// renewed since or belongs to another store.
type unsureError struct{ error }

func (e unsureError) Unwrap() error { return e.error }

// Ended reports whether a grant is of no further use because it was released or lost.
func Ended(err error) bool {
	return err == nil || errors.Is(err, leasehold.ErrLost) && !errors.As(err, new(unsureError))
}

// renewedSince returns the record if the grant could not be resumed because it was renewed
// after it was written to its file. Otherwise it returns nil.
func (g Grant) renewedSince(err error) *leasehold.Record {
	var lost *leasehold.LostError
	if !errors.As(err, &lost) || lost.By == nil {
		return nil
	}
	r := lost.By
	if r.Released || r.Grant != g.ID || r.Token != g.Token || r.Owner != "" && r.Owner != g.Owner {
		return nil
	}
	return r
}
