package records

import (
	"cmp"
	"fmt"
	"strconv"
	"unicode/utf8"

	"github.com/leasehold-go/leasehold/internal/protocol"
)

// DynamoDB's limits for key values, in bytes (AWS, Service quotas, "Partition
// keys and sort keys").
const (
	maxPartitionBytes = 2048
	maxSortBytes      = 1024
)

// schema describes the key attributes of a layout's table. Its methods check and encode
// keys for requests.
type schema struct {
	protocol.Schema
	sortValue string // sort key that is used if a call does not name one
}

func (s schema) Complete(k protocol.Key) protocol.Key {
	if s.Sort != "" {
		k.Sort = cmp.Or(k.Sort, s.sortValue)
	}
	return k
}

func (s schema) Key(k protocol.Key) (protocol.Item, error) {
	if err := s.CheckKey(k); err != nil {
		return nil, err
	}
	return s.mustKey(k), nil
}

func (s schema) CheckKey(k protocol.Key) error {
	if err := keyBytes("key", k.Partition, maxPartitionBytes); err != nil {
		return err
	}
	switch {
	case s.SortNumber:
		if n, err := strconv.ParseUint(k.Sort, 10, 31); err != nil || strconv.FormatUint(n, 10) != k.Sort {
			return fmt.Errorf("the sort key is %q: in this layout it must be the number of a slot, from 0", k.Sort)
		}
	case s.Sort != "":
		return keyBytes("sort key", k.Sort, maxSortBytes)
	}
	return nil
}

// mustKey returns the key attributes for a key that CheckKey has accepted.
func (s schema) mustKey(k protocol.Key) protocol.Item {
	item := protocol.Item{s.Partition: text(k.Partition)}
	switch {
	case s.SortNumber:
		item[s.Sort] = decimal(k.Sort)
	case s.Sort != "":
		item[s.Sort] = text(k.Sort)
	}
	return item
}

func keyBytes(what, s string, most int) error {
	switch {
	case s == "":
		return fmt.Errorf("the %s is empty", what)
	case len(s) > most:
		return fmt.Errorf("the %s has %d bytes: DynamoDB allows %d", what, len(s), most)
	case !utf8.ValidString(s):
		// The JSON encoder replaces invalid bytes, so two different keys would become the same.
		return fmt.Errorf("the %s is not UTF-8", what)
	}
	return nil
}

// names collects the attribute names that a layout is configured with, and an error for
// each name that is used twice.
type names struct {
	layout string
	taken  map[string]string
	errs   []error
}

func newNames(layout string, fixed []string) *names {
	n := &names{layout: layout, taken: map[string]string{}}
	for _, name := range fixed {
		n.taken[name] = "an attribute of the record"
	}
	return n
}

func (n *names) claim(role, name string) {
	if name == "" {
		return
	}
	if by, clash := n.taken[name]; clash {
		n.errs = append(n.errs, fmt.Errorf("layout: %s: %s %q is already used as %s: choose another name", n.layout, role, name, by))
	}
	n.taken[name] = "the " + role
}

// sortValue adds an error if the layout has a default value for the sort key, but no sort
// key.
func (n *names) sortValue(key, value string) {
	if value != "" && key == "" {
		n.errs = append(n.errs, fmt.Errorf("layout: %s: SortValue is set without SortKey, the attribute's name", n.layout))
	}
}
