package table_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/leasehold-go/leasehold/table"
)

func TestTemplatesAreDeterministic(t *testing.T) {
	tags := map[string]string{}
	for i := range 50 { // maximum number of tags in AWS
		tags[fmt.Sprintf("tag-%02d", i)] = "value"
	}
	spec := table.Spec{Name: "locks", Tags: tags}
	for name, text := range map[string]func() string{"CloudFormation": spec.CloudFormation, "Terraform": spec.Terraform} {
		var lines []string
		for line := range strings.Lines(text()) {
			if strings.Contains(line, "tag-") {
				lines = append(lines, line)
			}
		}
		if len(lines) != len(tags) || !slices.IsSorted(lines) {
			t.Errorf("%s: tags are not in order: %q", name, lines)
		}
	}
}
