package store

import (
	"cmp"
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/cli/failure"
	"github.com/leasehold-go/leasehold/internal/cli/requests"
	"github.com/leasehold-go/leasehold/internal/cli/wording"
	"github.com/leasehold-go/leasehold/internal/durations"
	"github.com/leasehold-go/leasehold/internal/lease"
	"github.com/leasehold-go/leasehold/internal/protocol"
	"github.com/leasehold-go/leasehold/internal/records"
	"github.com/leasehold-go/leasehold/layout"
)

// Target describes the lock table of a command: where it is, and the layout of its records.
type Target struct {
	Place
	Records
	Location string // Region, endpoint URL or file path, as messages show it
}

// Server describes the table's server for reports about requests.
func (t Target) Server() requests.Server {
	return requests.Server{Location: t.Location, IsFile: t.File != ""}
}

// At returns the file, the endpoint or the Region of the table.
func (t Target) At() string { return cmp.Or(t.File, t.Location) }

// Name returns the name by which the user knows the store: the table or, for a local store,
// the file.
func (t Target) Name() string {
	if t.File != "" {
		return t.Location
	}
	return t.Table
}

// Where returns where the locks are, for messages: the file, or "table NAME in REGION". If an
// endpoint is set, the text contains the URL of the endpoint instead of REGION.
func (t Target) Where() string {
	if t.File != "" {
		return t.Location
	}
	return "table " + t.Table + " in " + t.Location
}

// NotFound returns the error for a key that has no item in the table.
func (t Target) NotFound(key leasehold.Key) error {
	return fmt.Errorf("%w: %s in %s", leasehold.ErrNotFound, key.String(), t.Where())
}

// Place is the location of the locks: a table in DynamoDB, or a file on this machine.
type Place struct {
	Table   string
	File    string // path of the local store's file; empty for DynamoDB
	Unnamed bool   // true for a default store, because the user named none
	Machine bool   // true for the machine's store, which all users of the machine share
	Despite string // setting that suggests AWS but was ignored, because this is a trial of leasehold; otherwise empty
}

// Scope returns text that says which processes share the locks of a default store.
func (p Place) Scope() string {
	if p.Machine {
		return "locks for this machine only"
	}
	return "locks for processes of user " + userName() + " on this machine only"
}

// Records describes the records of a table: their layout and, if they contain times, the
// assumed error of this machine's clock.
type Records struct {
	Layout  layout.Layout
	Proto   protocol.Protocol // protocol that reads and writes records in Layout
	MaxSkew time.Duration     // bound on the error of this machine's clock; zero if none is set, or if Layout contains it
	skewSet bool              // true if LEASEHOLD_MAX_SKEW sets the bound, rather than Layout's default
}

// Key returns the lock key with the given parts. If sort is "", the key gets the default
// sort key of the layout.
func (r Records) Key(partition, sort string) leasehold.Key {
	return r.Proto.Complete(protocol.Key{Partition: partition, Sort: sort})
}

// ShortestLease returns the shortest lease that is advisable for these records.
func (r Records) ShortestLease() time.Duration { return shortestLease(r.Proto.Skew()) }

// shortestLease returns the shortest lease that is advisable if wall clocks may be wrong by skew. A
// holder trusts this lease for at least a tenth of the skew, clamped to [lease.ShortestTrust, 2 s].
// A shorter lease could be lost because the machine is busy for a moment.
func shortestLease(skew time.Duration) time.Duration {
	const step = 500 * time.Millisecond // the result is a multiple of this step, so that people can type it
	trust := min(max(skew/10, lease.ShortestTrust), 2*time.Second)
	least := durations.Scale(durations.Sum(skew, trust), float64(10)/9) // the factor adds the margin, which is a tenth of the lease
	return max(durations.Sum(skew, time.Second), durations.Sum(least, step-1).Truncate(step))
}

// RefuseShortLease returns an error if a lease of the given length is too short for the layout. In
// a layout that relies on clocks, the trusted time is shorter than the lease by the possible
// difference between the clocks. With a short lease, almost no trusted time is left.
func (r Records) RefuseShortLease(cmd *cobra.Command, length time.Duration) error {
	skew, least := r.Proto.Skew(), r.ShortestLease()
	switch {
	case length >= least:
		return nil
	case skew == 0:
		return failure.MisuseOf(cmd, "a lease of %s is too short: use at least %s", wording.Duration(length), wording.Duration(least))
	}
	instead := ""
	if r.skewSet {
		instead = ", or a shorter " + maxSkewVariable
	}
	return failure.MisuseOf(cmd, "a lease of %s is too short: layout %s allows for clocks that differ by %s: use at least %s for --lease%s",
		wording.Duration(length), r.Layout.Name(), wording.Duration(skew), wording.Duration(least), instead)
}

// attributeRoles lists the roles in --attr ROLE=NAME. For each role, "field" is the struct field in
// which a layout contains the name of the attribute with that role. If a layout's type lacks the
// field, users cannot choose the attribute's name.
var attributeRoles = []struct{ role, field string }{{"key", "PartitionKey"}, {"sort", "SortKey"}, {"ttl", "TTL"}}

// Attributes is the value of the flag --attr: attribute names by role.
type Attributes map[string]string

func (n *Attributes) String() string {
	var pairs []string
	for _, r := range attributeRoles {
		if name, given := (*n)[r.role]; given {
			pairs = append(pairs, r.role+"="+name)
		}
	}
	return strings.Join(pairs, ",")
}

// Type returns the placeholder for the flag's value in the help.
func (*Attributes) Type() string { return "ROLE=NAME" }

// Set parses one or several ROLE=NAME pairs, separated by commas. It returns an error if a
// role is unknown, or if DynamoDB does not allow the name.
func (n *Attributes) Set(s string) error {
	if *n == nil {
		*n = Attributes{}
	}
	for pair := range strings.SplitSeq(s, ",") {
		role, name, ok := strings.Cut(pair, "=")
		switch {
		case !ok || name == "":
			return errors.New("use ROLE=NAME, such as key=id")
		case len(name) > 255:
			return errors.New("names of attributes have at most 255 bytes")
		case role != "key" && role != "sort" && role != "ttl":
			return fmt.Errorf("unknown role %q: use key, sort or ttl", role)
		}
		(*n)[role] = name
	}
	return nil
}

// apply returns a copy of the layout l with the attribute names in n. It returns an error
// if the layout does not let users choose one of these names.
func (n Attributes) apply(l layout.Layout) (layout.Layout, error) {
	named := reflect.New(reflect.TypeOf(l)).Elem()
	named.Set(reflect.ValueOf(l))
	noSlots := named.FieldByName("NoSlots")
	for _, r := range attributeRoles {
		name, given := n[r.role]
		field := named.FieldByName(r.field)
		switch {
		case !given:
		case field.IsValid():
			field.SetString(name)
		case r.role == "sort" && name == noAttribute && noSlots.IsValid(): // --attr sort=- is for tables of dynamo-dlm 1.x, which have no sort key
			noSlots.SetBool(true)
		default:
			return nil, failure.Misusef("--attr %s=%s: layout %s does not let you choose the name for %[1]s: leave it out, or use another layout", r.role, name, l.Name())
		}
	}
	return named.Interface().(layout.Layout), nil
}

// noAttribute is a NAME in --attr ROLE=NAME which means that the table has no such
// attribute. layout.Native uses it in the same way.
const noAttribute = "-"

// ByFlags adapts a message of package table to the command line: a flag replaces each layout
// field that the message advises to set.
func ByFlags(problem string) string {
	// The pattern matches advice that tells a Go programmer to set a field of a layout.
	advice := regexp.MustCompile(`of layout (\S+): set Layout to it|set Layout to one of them|set (PartitionKey|SortKey|TTL) of the layout to ("(?:[^"\\]|\\.)*")|leave SortKey of the layout unset`)
	return advice.ReplaceAllStringFunc(problem, func(set string) string {
		part := advice.FindStringSubmatch(set)
		switch {
		case part[1] != "":
			return "of layout " + part[1] + ": use --layout " + part[1]
		case part[2] != "":
			name, err := strconv.Unquote(part[3])
			if err != nil {
				return set
			}
			role := map[string]string{"PartitionKey": "key", "SortKey": "sort", "TTL": "ttl"}[part[2]]
			return "use --attr " + wording.ShellWord(role+"="+name)
		case strings.HasPrefix(set, "leave"):
			return "leave sort out of --attr"
		}
		return "use --layout with one of them"
	})
}

// RecordLayout returns the record layout that --layout and --attr, or LEASEHOLD_LAYOUT,
// choose.
func (s *Settings) RecordLayout() (layout.Layout, error) {
	name := s.Layout.Value
	if !s.Layout.Given {
		v, err := s.Variable("LEASEHOLD_LAYOUT")
		if err != nil {
			return nil, err
		}
		name = cmp.Or(v, name)
	}
	l, err := layout.Parse(name)
	if err != nil {
		return nil, failure.Misusef("unknown layout %q: use one of %s", name, strings.Join(layout.Names(), ", "))
	}
	if l, err = s.Attributes.apply(l); err != nil {
		return nil, err
	}
	if _, err := records.Of(l); err != nil {
		return nil, failure.Misusef("--attr: %s", strings.ReplaceAll(err.Error(), "layout: "+name+": ", ""))
	}
	return l, nil
}

// maxSkewVariable is the environment variable for the clock error bound (Config.MaxSkew).
// There is no flag for it, because the clock belongs to the machine and not to a command.
const maxSkewVariable = "LEASEHOLD_MAX_SKEW"

// Records returns the record layout that the flags or the environment choose. It also returns the
// clock error bound from LEASEHOLD_MAX_SKEW: in the layout itself if its Go type has a field
// MaxSkew, and otherwise in r.MaxSkew.
func (s *Settings) Records() (r Records, err error) {
	if r.Layout, err = s.RecordLayout(); err != nil {
		return r, err
	}
	if r.MaxSkew, err = s.duration(maxSkewVariable, 0); err != nil {
		return r, err
	}
	_, r.skewSet = s.LookupEnv(maxSkewVariable)
	switch of := r.Layout.(type) {
	case layout.DynamoDLM:
		of.MaxSkew = r.MaxSkew
		r.Layout, r.MaxSkew = of, 0
	case layout.DyndbMutex:
		of.MaxSkew = r.MaxSkew
		r.Layout, r.MaxSkew = of, 0
	}
	r.Proto, err = records.WithMaxSkew(r.Layout, r.MaxSkew)
	if errors.Is(err, errors.ErrUnsupported) {
		err = failure.Misusef("%s: records of layout %s do not contain the end of a lease: leave it out, and a dead holder is observed for one lease, or use layout native", maxSkewVariable, r.Layout.Name())
	}
	return r, err
}
