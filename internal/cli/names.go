package cli

import (
	"fmt"
	"slices"
	"strings"

	"github.com/leasehold-go/leasehold"
)

// maxNamed is how many of many a message names.
const maxNamed = 5

// firstNames names the first few in one line: a, b, and 9 more.
func firstNames(names []string) string {
	if more := len(names) - maxNamed; more > 0 {
		names = append(slices.Clip(names[:maxNamed]), fmt.Sprintf("and %d more", more))
	}
	return strings.Join(names, ", ")
}

// keyNames names keys in one line of a sentence: a; a and b; a, b and 9 more.
func keyNames(keys []leasehold.Key) string {
	names := printableKeys(keys)
	if more := len(names) - maxNamed; more > 0 {
		names = append(names[:maxNamed], fmt.Sprintf("%d more", more))
	}
	last := len(names) - 1
	if last == 0 {
		return names[0]
	}
	return strings.Join(names[:last], ", ") + " and " + names[last]
}

func printableKeys(keys []leasehold.Key) []string {
	names := make([]string, len(keys))
	for i, k := range keys {
		names[i] = printable(k.String())
	}
	return names
}
