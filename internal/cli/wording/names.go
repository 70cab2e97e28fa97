package wording

import (
	"fmt"
	"slices"
	"strings"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/protocol"
	"github.com/leasehold-go/leasehold/internal/visible"
)

// MostNamed is how many of many a message names.
const MostNamed = 5

// FirstNames names the first few in one line: a, b, and 9 more.
func FirstNames(names []string) string {
	if more := len(names) - MostNamed; more > 0 {
		names = append(slices.Clip(names[:MostNamed]), fmt.Sprintf("and %d more", more))
	}
	return strings.Join(names, ", ")
}

// Keys names keys in one line of a sentence: a; a and b; a, b and 9 more.
func Keys(keys []leasehold.Key) string {
	names := EachKey(keys)
	if more := len(names) - MostNamed; more > 0 {
		names = append(names[:MostNamed], fmt.Sprintf("%d more", more))
	}
	last := len(names) - 1
	if last == 0 {
		return names[0]
	}
	return strings.Join(names[:last], ", ") + " and " + names[last]
}

// EachKey is each key as it stands in a sentence.
func EachKey(keys []leasehold.Key) []string {
	names := make([]string, len(keys))
	for i, k := range keys {
		names[i] = visible.Name(k.String())
	}
	return names
}

// Owner returns an owner for people, with its client id shortened.
func Owner(owner string) string {
	if owner == "" {
		return "somebody"
	}
	return visible.Name(protocol.ShortOwner(owner))
}

// OwnerWithoutID returns an owner without the client id that a lock client appends.
func OwnerWithoutID(owner string) string {
	if !protocol.HasClientID(owner) {
		return owner
	}
	return owner[:strings.LastIndexByte(owner, '/')]
}

// Cell is a name as it stands in a cell: empty if there is none.
func Cell(name string) string {
	if name == "" {
		return ""
	}
	return visible.Name(name)
}
