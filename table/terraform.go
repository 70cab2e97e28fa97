package table

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Terraform returns the table's definition in HCL, as a resource of the AWS provider. With the
// definition, Terraform and DynamoDB refuse to delete the table, because the table contains the
// locks and their tokens. The definition also turns on point-in-time recovery. If Spec.Disposable
// is true, Terraform can delete the table, point-in-time recovery is off, and deletion protection
// is on only if Spec.DeletionProtection is true. If Create would refuse the spec, Terraform returns
// the text of the error, which is not valid HCL.
func (s Spec) Terraform() string {
	want, err := s.complete()
	if err != nil {
		return refused(err)
	}
	keys := keysOfSchema(want)
	var t text
	t.line(0, `resource "aws_dynamodb_table" "locks" {`)
	first := [][2]string{{"name", quoteHCL(s.Name)}}
	if s.ReadUnits > 0 {
		first = append(first, [2]string{"billing_mode", `"PROVISIONED"`},
			[2]string{"read_capacity", fmt.Sprint(s.ReadUnits)}, [2]string{"write_capacity", fmt.Sprint(s.WriteUnits)})
	} else {
		first = append(first, [2]string{"billing_mode", `"PAY_PER_REQUEST"`})
	}
	first = append(first, [2]string{"hash_key", quoteHCL(want.Partition)})
	if want.Sort != "" {
		first = append(first, [2]string{"range_key", quoteHCL(want.Sort)})
	}
	if s.DeletionProtection || !s.Disposable {
		first = append(first, [2]string{"deletion_protection_enabled", "true"})
	}
	t.assign(1, first)
	for _, k := range keys {
		t.line(0, "")
		t.line(1, "attribute {")
		t.assign(2, [][2]string{{"name", quoteHCL(k.name)}, {"type", quoteHCL(k.attribute)}})
		t.line(1, "}")
	}
	if want.TTL != "" {
		t.line(0, "")
		t.line(1, "ttl {")
		t.assign(2, [][2]string{{"attribute_name", quoteHCL(want.TTL)}, {"enabled", "true"}})
		t.line(1, "}")
	}
	if len(s.Tags) > 0 {
		t.line(0, "")
		t.line(1, "tags = {")
		var tags [][2]string
		for _, name := range slices.Sorted(maps.Keys(s.Tags)) {
			tags = append(tags, [2]string{quoteHCL(name), quoteHCL(s.Tags[name])})
		}
		t.assign(2, tags)
		t.line(1, "}")
	}
	if !s.Disposable {
		t.line(0, "")
		t.line(1, "point_in_time_recovery {")
		t.line(2, "enabled = true")
		t.line(1, "}")
		t.line(0, "")
		t.line(1, "lifecycle {")
		t.line(2, "prevent_destroy = true # its records are the locks")
		t.line(1, "}")
	}
	t.line(0, "}")
	return t.String()
}

// quoteHCL is like quote, but also escapes the interpolation sequences of HCL.
func quoteHCL(s string) string {
	return strings.NewReplacer("${", "$${", "%{", "%%{").Replace(quote(s))
}
