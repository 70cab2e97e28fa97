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

// Grant is a grant of a lock, together with the store that granted it. Without the store, a table
// of the same name in another store could be taken for the grant's table. The grant would then seem
// to be lost.
type Grant struct {
	leasehold.Grant
	At Place
}

// Place identifies the store of a table, because tables in several stores may have the same name.
// It is stored in a grant's JSON, with the layout of the records. Its fields are empty if the
// library or an earlier version of leasehold wrote the grant.
type Place struct {
	File        string `json:"file,omitempty"`
	Region      string `json:"region,omitempty"`
	EndpointURL string `json:"endpointUrl,omitempty"`
	Account     string `json:"account,omitempty"` // AWS account of the credentials; empty if the credentials do not contain it
	Layout      string `json:"layout,omitempty"`
}

// String returns the place in a form for messages.
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

// MarshalJSON returns the fields of the grant and of its place in one JSON object.
func (g Grant) MarshalJSON() ([]byte, error) {
	if g.At == (Place{}) {
		return json.Marshal(g.Grant)
	}
	return say.Joined(g.Grant, g.At)
}

// UnmarshalJSON parses a grant as written by MarshalJSON, or by package leasehold, which
// stores no place.
func (g *Grant) UnmarshalJSON(b []byte) error {
	if err := json.Unmarshal(b, &g.Grant); err != nil {
		return err
	}
	return json.Unmarshal(b, &g.At)
}

// parse parses a grant written by "leasehold acquire". It returns false if b contains none.
func parse(b []byte) (Grant, bool) {
	var g Grant
	err := json.Unmarshal(b, &g)
	return g, err == nil && g.ID != "" && g.Table != ""
}

// leaseEnds returns when the lease of g expires by this machine's clock. TrustedUntil is earlier
// by a tenth of the lease. In a layout that relies on clocks, the result is too early by the
// allowed clock skew.
func leaseEnds(g Grant) time.Time { return g.TrustedUntil.Add(g.Lease / 10) }

// PlaceOf returns the Place of the store s.
func PlaceOf(ctx context.Context, s *store.Store) Place {
	if s.File != "" {
		return Place{File: s.File, Layout: s.Layout.Name()}
	}
	o := s.Home.Options()
	at := Place{Region: o.Region, EndpointURL: aws.ToString(o.BaseEndpoint), Layout: s.Layout.Name()}
	if o.Credentials != nil && !store.IsLoopback(at.EndpointURL) && !arn.IsARN(s.Table) { // skipped for an ARN, which already contains the account
		if c, err := o.Credentials.Retrieve(ctx); err == nil { // costs no time, because the next requests use the cached credentials
			at.Account = c.AccountID
		}
	}
	return at
}

// differs compares two places, field by field. It returns the name of the flag that sets the
// first field in which they differ, such as "--file". It returns "" if the places do not
// differ, or if one of them is unknown.
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

// RefuseOther returns an error if the opened store, whose place is the parameter "here", is not the
// store of the grant. It accepts another endpoint if the user has named this endpoint: the
// parameter "asked" is the value of --endpoint-url, or empty.
func (g Grant) RefuseOther(here Place, asked string) error {
	switch what := g.At.differs(here); what {
	case "":
		return nil
	case "--endpoint-url":
		if asked != "" && asked != g.At.EndpointURL {
			return nil // accepted: the user named this endpoint, and the grant's server may have moved there; see explain
		}
		return failure.Misusef("the grant is from table %s in %s, and this is %s: unset AWS_ENDPOINT_URL_DYNAMODB and AWS_ENDPOINT_URL, or name the server with --endpoint-url",
			g.Table, g.At, here)
	default:
		return failure.Misusef("the grant is from table %s in %s, and this is %s: choose that with %s", g.Table, g.At, here, what)
	}
}

// UseStore sets f to the grant's table, store and layout, as if flags had set them, so that they
// override the environment. It returns an error if a flag names another store, because that store
// would report the grant as lost. Only --endpoint-url may differ, because the store's server can
// move.
func (g Grant) UseStore(f *store.Settings) error {
	if f.Table != "" && f.Table != g.Table {
		return failure.Misusef("the grant is from table %s, not %s", g.Table, f.Table)
	}
	if g.At == (Place{}) {
		return nil // package leasehold wrote this grant rather than the command, so only its table is known
	}
	if _, err := os.Lstat(g.At.File); g.At.File != "" && errors.Is(err, fs.ErrNotExist) {
		return failure.Misusef("the grant is from table %s in %s, and that file does not exist", g.Table, g.At.File)
	}
	file, err := filepath.Abs(f.File)
	switch made := g.At.String(); {
	// If --layout is given, it must name the grant's layout. The table's keys may fit another
	// layout too, but the other clients could not read a record in that layout.
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
		_ = f.Layout.Set(g.At.Layout) // cannot fail, because Set accepts any text
	}
	return nil
}

func (g Grant) refuseFlag(flag, given, made string) error {
	return failure.Misusef("%s %s: the grant is from table %s in %s: leave out %[1]s", flag, given, g.Table, made)
}

// Resume renews the grant and returns its lock. It fails if the grant has been renewed since g was
// written. Otherwise two processes with copies of g could both hold the lock. The parameter "here"
// is the place of the client's store.
func (g Grant) Resume(ctx context.Context, locks *leasehold.Client, here Place, opts ...leasehold.RenewOption) (*leasehold.Lock, error) {
	lock, err := locks.Resume(ctx, g.Grant, opts...)
	return lock, g.explain(here, err)
}

// maxRenewalsFollowed limits how often ResumeToRelease tries again because another process
// has renewed the grant in the meantime.
const maxRenewalsFollowed = 5

// ResumeToRelease renews the grant so that the caller can release its lock. It accepts an outdated
// g if the record has its id, token and owner, because the file with the renewed grant may be lost.
// The parameter "least" is the shortest lease that the library accepts.
func (g Grant) ResumeToRelease(ctx context.Context, locks *leasehold.Client, here Place, least time.Duration) (*leasehold.Lock, error) {
	if g.Lease != 0 { // zero means that the grant is damaged
		g.Lease = max(g.Lease, least)
	}
	for followed := 0; ; followed++ {
		lock, err := locks.Resume(ctx, g.Grant)
		since := g.renewedSince(err)
		if since == nil || followed == maxRenewalsFollowed {
			return lock, g.explain(here, err)
		}
		g.Versions = []string{since.Version}
	}
}

// explain adds a possible cause to an err that reports the grant as lost: the grant may have been
// renewed after this copy was written, or "here" may not be the store of the grant. If neither is
// possible, explain returns err unchanged.
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

// unsureError means that the grant seems lost but may still be held. The grant may have been
// renewed after this copy was written, or it may be in another store.
type unsureError struct{ error }

func (e unsureError) Unwrap() error { return e.error }

// Ended reports whether the grant has ended, given the error of its release. The grant has
// ended if it was released (nil) or is certainly lost (ErrLost without an unsureError).
func Ended(err error) bool {
	return err == nil || errors.Is(err, leasehold.ErrLost) && !errors.As(err, new(unsureError))
}

// renewedSince returns the lock's current record if err shows that the grant was renewed
// after this copy of it was written. Otherwise it returns nil.
func (g Grant) renewedSince(err error) *leasehold.Record {
	var lost *leasehold.LostError
	if !errors.As(err, &lost) || lost.By == nil {
		return nil
	}
	if r := lost.By; !r.Released && r.Grant == g.ID && r.Token == g.Token && (r.Owner == "" || r.Owner == g.Owner) {
		return r
	}
	return nil
}
