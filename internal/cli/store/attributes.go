package store

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"sync"

	"github.com/leasehold-go/leasehold/internal/cli/wording"
	"github.com/leasehold-go/leasehold/layout"
)

// Attributes contains the attribute names given by --attr. It is the value of that flag.
type Attributes struct{ key, sort, ttl string }

func (n *Attributes) String() string {
	var pairs []string
	for _, p := range [][2]string{{"key", n.key}, {"sort", n.sort}, {"ttl", n.ttl}} {
		if p[1] != "" {
			pairs = append(pairs, p[0]+"="+p[1])
		}
	}
	return strings.Join(pairs, ",")
}

// Type returns the name of the flag's values in the help.
func (*Attributes) Type() string { return "ROLE=NAME" }

// Set parses one pair or several, and refuses names that no table can have.
func (n *Attributes) Set(s string) error {
	for _, pair := range strings.Split(s, ",") {
		role, name, ok := strings.Cut(pair, "=")
		if !ok || name == "" {
			return errors.New("use ROLE=NAME, such as key=id")
		}
		if len(name) > 255 {
			return errors.New("names of attributes have at most 255 bytes")
		}
		switch role {
		case "key":
			n.key = name
		case "sort":
			n.sort = name
		case "ttl":
			n.ttl = name
		default:
			return fmt.Errorf("unknown role %q: use key, sort or ttl", role)
		}
	}
	return nil
}

// apply sets the names in a layout. It also returns the roles whose names are fixed in that
// layout.
func (n Attributes) apply(l layout.Layout) (named layout.Layout, fixed []string) {
	switch l := l.(type) {
	case layout.Native:
		l.PartitionKey, l.SortKey, l.TTL = n.key, n.sort, n.ttl
		return l, nil
	case layout.PythonDynamoDBLock:
		l.PartitionKey, l.SortKey, l.TTL = n.key, n.sort, n.ttl
		return l, nil
	case layout.AWSLabs:
		l.PartitionKey, l.SortKey = n.key, n.sort
		return l, []string{"ttl"}
	case layout.Dynamolock:
		l.PartitionKey, l.SortKey = n.key, n.sort
		return l, []string{"ttl"}
	case layout.DynamoDLM:
		if n.sort == noAttribute { // tables of dynamo-dlm 1.x have no slots
			l.NoSlots = true
			return l, []string{"key", "ttl"}
		}
		return l, []string{"key", "sort", "ttl"}
	default:
		return l, []string{"key", "sort", "ttl"}
	}
}

// noAttribute, used as a name, means that the table has no such attribute, as in
// layout.Native.
const noAttribute = "-"

// settingOf matches package table's advice to a Go program about a table that does not fit.
var settingOf = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`of layout (\S+): set Layout to it|set Layout to one of them|set (PartitionKey|SortKey|TTL) of the layout to ("(?:[^"\\]|\\.)*")|leave SortKey of the layout unset`)
})

// ByFlags replaces the fields of a layout in that advice by the command's flags.
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
