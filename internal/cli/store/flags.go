package store

import (
	"regexp"
	"strconv"
	"strings"
	"sync"

	"github.com/leasehold-go/leasehold/internal/cli/wording"
)

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
