package store

import (
	"cmp"
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/cli/failure"
	"github.com/leasehold-go/leasehold/internal/cli/requests"
	"github.com/leasehold-go/leasehold/internal/cli/wording"
	"github.com/leasehold-go/leasehold/internal/lease"
	"github.com/leasehold-go/leasehold/internal/protocol"
	"github.com/leasehold-go/leasehold/internal/records"
	"github.com/leasehold-go/leasehold/layout"
)

// Target is the lock table of a command: where it is, and what its records look like.
type Target struct {
	Place
	Records
	Location string // region, URL or file, as shown in messages
}

// Server describes the server of the table, for reports about requests.
func (t Target) Server() requests.Server {
	return requests.Server{Location: t.Location, IsFile: t.File != ""}
}

// At returns where the table is: the file, the endpoint or the region.
func (t Target) At() string { return cmp.Or(t.File, t.Location) }

// Name returns the name that the user gave: the table or, for a local store, the file.
func (t Target) Name() string {
	if t.File != "" {
		return t.Location
	}
	return t.Table
}

// Where returns the location of the locks for messages: the file, or the DynamoDB table's
// name with its endpoint or Region.
func (t Target) Where() string {
	if t.File != "" {
		return t.Location
	}
	return "table " + t.Table + " in " + t.Location
}

// NotFound returns the error for a key without an item.
func (t Target) NotFound(key leasehold.Key) error {
	in := "table " + t.Table
	if t.File != "" {
		in = t.Location
	}
	return fmt.Errorf("%w: %s in %s", leasehold.ErrNotFound, wording.Key(key), in)
}

// Place is the location of the locks: a DynamoDB table or a local store.
type Place struct {
	Table   string
	File    string // the local store; empty for DynamoDB
	Unnamed bool   // the store is the default: no flag and no variable named a store
	Machine bool   // the store is shared by all users of the machine
	Despite string // setting that points to AWS, but is ignored because leasehold is on trial; empty if there is no such setting
}

// Scope describes the processes that share the locks of a default store.
func (p Place) Scope() string {
	if p.Machine {
		return "locks for this machine only"
	}
	return "locks for processes of user " + userName() + " on this machine only"
}

// Records describes the form of the records of a table. It also says how far this machine's
// clock can be trusted when records contain times.
type Records struct {
	Layout  layout.Layout
	Proto   protocol.Protocol // protocol of Layout
	MaxSkew time.Duration     // error bound of this machine's clock; zero if none is set or Layout contains it
	skewSet bool              // the bound was set through LEASEHOLD_MAX_SKEW; it is not the layout's default
}

// Key returns the key that records contain. If sort is empty, the key has the layout's
// default sort key.
func (r Records) Key(partition, sort string) leasehold.Key {
	return r.Proto.Complete(protocol.Key{Partition: partition, Sort: sort})
}

// RefuseShortLease returns an error if a lease is too short. A layout may allow for
// differences between clocks. A lease that is hardly longer than these differences would be
// trusted for too short a time.
func (r Records) RefuseShortLease(cmd *cobra.Command, length time.Duration) error {
	skew := r.Proto.Skew()
	least := lease.Shortest(skew)
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

// attributeRoles lists the roles that --attr names, with the field of a layout for the
// attribute's name. A layout without the field does not let users choose the name.
var attributeRoles = []struct{ role, field string }{{"key", "PartitionKey"}, {"sort", "SortKey"}, {"ttl", "TTL"}}

// Attributes contains the attribute names given by --attr, by role. It is the value of that
// flag.
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

// Type returns the name of the flag's values in the help.
func (*Attributes) Type() string { return "ROLE=NAME" }

// Set parses one ROLE=NAME pair or several. It refuses names that no attribute can have.
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

// apply returns a copy of a layout with the given attribute names. It refuses a name for an
// attribute whose name the layout does not let users choose.
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
		case r.role == "sort" && name == noAttribute && noSlots.IsValid(): // sort=- means a table of dynamo-dlm 1.x, which has no sort key
			noSlots.SetBool(true)
		default:
			return nil, failure.Misusef("--attr %s=%s: layout %s does not let you choose the name for %[1]s: leave it out, or use another layout", r.role, name, l.Name())
		}
	}
	return named.Interface().(layout.Layout), nil
}

// noAttribute, used as a name, means that the table has no such attribute, as in
// layout.Native.
const noAttribute = "-"

// settingOf matches parts of the advice that package table gives to Go programs whose table
// does not fit.
var settingOf = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`of layout (\S+): set Layout to it|set Layout to one of them|set (PartitionKey|SortKey|TTL) of the layout to ("(?:[^"\\]|\\.)*")|leave SortKey of the layout unset`)
})

// ByFlags rewrites advice from package table. The rewritten advice names the command's
// flags instead of the fields of a layout.
func ByFlags(problem string) string {
	return settingOf().ReplaceAllStringFunc(problem, func(set string) string {
		part := settingOf().FindStringSubmatch(set)
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

// RecordLayout returns the layout that the flags or the environment choose.
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

// maxSkewVariable is the environment variable for Config.MaxSkew. There is no flag for it: it
// describes the machine rather than a command.
const maxSkewVariable = "LEASEHOLD_MAX_SKEW"

// Records returns the layout that the flags or the environment choose. If the layout's
// records contain a lease, it also returns the error bound of this machine's clock. If the
// records contain an expiry time instead, the layout itself contains the bound.
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
