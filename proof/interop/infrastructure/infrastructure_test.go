package infrastructure

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"math/big"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/hashicorp/hcl/v2/hclwrite"
	"github.com/zclconf/go-cty/cty"
	"go.uber.org/goleak"
	"golang.org/x/text/unicode/norm"
	"gopkg.in/yaml.v3"
	"pgregory.net/rapid"

	"github.com/leasehold-go/leasehold/internal/lab"
	"github.com/leasehold-go/leasehold/layout"
	"github.com/leasehold-go/leasehold/localdynamo"
	"github.com/leasehold-go/leasehold/table"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// described is a table's description, read from a template or from the embedded engine.
type described struct {
	Name, Billing         string
	ReadUnits, WriteUnits int64
	Partition, Sort       string
	Types                 map[string]string // types of the key attributes
	TTL                   string
	Protected             bool
	Kept                  bool // the table remains if its resource is removed from the template
	Recovered             bool // the table has point-in-time recovery
	Tags                  map[string]string
}

// template is the part of the CloudFormation format that our templates use.
type template struct {
	Version     string `yaml:"AWSTemplateFormatVersion"`
	Description string `yaml:"Description"`
	Resources   map[string]struct {
		Type                string `yaml:"Type"`
		DeletionPolicy      string `yaml:"DeletionPolicy"`
		UpdateReplacePolicy string `yaml:"UpdateReplacePolicy"`
		Properties          struct {
			TableName             string `yaml:"TableName"`
			BillingMode           string `yaml:"BillingMode"`
			ProvisionedThroughput struct {
				Read  int64 `yaml:"ReadCapacityUnits"`
				Write int64 `yaml:"WriteCapacityUnits"`
			} `yaml:"ProvisionedThroughput"`
			AttributeDefinitions []struct {
				Name string `yaml:"AttributeName"`
				Type string `yaml:"AttributeType"`
			} `yaml:"AttributeDefinitions"`
			KeySchema []struct {
				Name string `yaml:"AttributeName"`
				Type string `yaml:"KeyType"`
			} `yaml:"KeySchema"`
			TTL struct {
				Name    string `yaml:"AttributeName"`
				Enabled bool   `yaml:"Enabled"`
			} `yaml:"TimeToLiveSpecification"`
			Protected bool `yaml:"DeletionProtectionEnabled"`
			Recovery  struct {
				Enabled bool `yaml:"PointInTimeRecoveryEnabled"`
			} `yaml:"PointInTimeRecoverySpecification"`
			Tags []struct {
				Key   string `yaml:"Key"`
				Value string `yaml:"Value"`
			} `yaml:"Tags"`
		} `yaml:"Properties"`
	} `yaml:"Resources"`
	Outputs map[string]any `yaml:"Outputs"`
}

// readTemplate returns the table that CloudFormation would create from a template.
func readTemplate(text string) (described, error) {
	decoder := yaml.NewDecoder(strings.NewReader(text))
	decoder.KnownFields(true)
	var t template
	if err := decoder.Decode(&t); err != nil {
		return described{}, fmt.Errorf("%w in\n%s", err, text)
	}
	r, ok := t.Resources["LockTable"]
	switch {
	case !ok || len(t.Resources) != 1 || r.Type != "AWS::DynamoDB::Table" || t.Version != "2010-09-09":
		return described{}, fmt.Errorf("not a template of one table:\n%s", text)
	case r.DeletionPolicy != r.UpdateReplacePolicy || r.DeletionPolicy != "Retain" && r.DeletionPolicy != "Delete":
		return described{}, fmt.Errorf("the policies differ, or are neither Retain nor Delete:\n%s", text)
	case !reflect.DeepEqual(t.Outputs["LockTableArn"].(map[string]any)["Value"], map[string]any{"Fn::GetAtt": []any{"LockTable", "Arn"}}):
		return described{}, fmt.Errorf("the template has no output for the ARN:\n%s", text)
	}
	p := r.Properties
	d := described{
		Name: p.TableName, Billing: p.BillingMode, ReadUnits: p.ProvisionedThroughput.Read, WriteUnits: p.ProvisionedThroughput.Write,
		Types: map[string]string{}, Protected: p.Protected, Kept: r.DeletionPolicy == "Retain", Recovered: p.Recovery.Enabled, Tags: map[string]string{},
	}
	for _, a := range p.AttributeDefinitions {
		d.Types[a.Name] = a.Type
	}
	for _, k := range p.KeySchema {
		switch k.Type {
		case "HASH":
			d.Partition = k.Name
		case "RANGE":
			d.Sort = k.Name
		}
	}
	if p.TTL.Enabled {
		d.TTL = p.TTL.Name
	}
	for _, tag := range p.Tags {
		d.Tags[tag.Key] = tag.Value
	}
	return d, nil
}

// readHCL returns the table that Terraform would create from a resource.
func readHCL(text string) (described, error) {
	file, problems := hclsyntax.ParseConfig([]byte(text), "locks.tf", hcl.InitialPos)
	if problems.HasErrors() {
		return described{}, fmt.Errorf("%w in\n%s", problems, text)
	}
	blocks := file.Body.(*hclsyntax.Body).Blocks
	if len(blocks) != 1 || blocks[0].Type != "resource" || !slices.Equal(blocks[0].Labels, []string{"aws_dynamodb_table", "locks"}) {
		return described{}, fmt.Errorf("not one resource:\n%s", text)
	}
	var errs []error
	value := func(body *hclsyntax.Body, name string) cty.Value {
		a, ok := body.Attributes[name]
		if !ok {
			return cty.NilVal
		}
		v, problems := a.Expr.Value(nil)
		if problems.HasErrors() {
			errs = append(errs, problems)
			return cty.NilVal
		}
		return v
	}
	str := func(body *hclsyntax.Body, name string) string {
		if v := value(body, name); v != cty.NilVal {
			return v.AsString()
		}
		return ""
	}
	num := func(body *hclsyntax.Body, name string) int64 {
		if v := value(body, name); v != cty.NilVal {
			n, accuracy := v.AsBigFloat().Int64()
			if accuracy != big.Exact {
				errs = append(errs, fmt.Errorf("%s is %v", name, v))
			}
			return n
		}
		return 0
	}
	is := func(body *hclsyntax.Body, name string) bool {
		v := value(body, name)
		return v != cty.NilVal && v.True()
	}
	body := blocks[0].Body
	for name := range body.Attributes {
		if !slices.Contains([]string{"name", "billing_mode", "read_capacity", "write_capacity", "hash_key", "range_key", "deletion_protection_enabled", "tags"}, name) {
			errs = append(errs, fmt.Errorf("unexpected argument %s", name))
		}
	}
	d := described{
		Name: str(body, "name"), Billing: str(body, "billing_mode"),
		ReadUnits: num(body, "read_capacity"), WriteUnits: num(body, "write_capacity"),
		Partition: str(body, "hash_key"), Sort: str(body, "range_key"),
		Types: map[string]string{}, Protected: is(body, "deletion_protection_enabled"), Tags: map[string]string{},
	}
	for _, b := range body.Blocks {
		switch b.Type {
		case "attribute":
			d.Types[str(b.Body, "name")] = str(b.Body, "type")
		case "ttl":
			if is(b.Body, "enabled") {
				d.TTL = str(b.Body, "attribute_name")
			}
		case "lifecycle":
			d.Kept = is(b.Body, "prevent_destroy")
		case "point_in_time_recovery":
			d.Recovered = is(b.Body, "enabled")
		default:
			errs = append(errs, fmt.Errorf("unexpected block %s", b.Type))
		}
	}
	if tags := value(body, "tags"); tags != cty.NilVal {
		for name, v := range tags.AsValueMap() {
			d.Tags[name] = v.AsString()
		}
	}
	return d, errors.Join(errs...)
}

// readers contains a function for CloudFormation and one for Terraform. Each function generates a
// table's template for that program, and parses the template.
var readers = map[string]func(table.Spec) (described, error){
	"CloudFormation": func(s table.Spec) (described, error) { return readTemplate(s.CloudFormation()) },
	"Terraform":      func(s table.Spec) (described, error) { return readHCL(s.Terraform()) },
}

// created creates the table in the embedded engine, and returns its description.
func created(t *testing.T, s table.Spec) described {
	t.Helper()
	engine := localdynamo.New()
	t.Cleanup(func() { _ = engine.Close() })
	db, ctx := engine.Client(), t.Context()
	lab.OK(t, table.Create(ctx, db, s))
	is := lab.Must(db.DescribeTable(ctx, &dynamodb.DescribeTableInput{TableName: aws.String(s.Name)}))(t).Table
	d := described{
		Name: aws.ToString(is.TableName), Billing: string(types.BillingModeProvisioned),
		Types: map[string]string{}, Protected: aws.ToBool(is.DeletionProtectionEnabled), Tags: map[string]string{},
	}
	if b := is.BillingModeSummary; b != nil {
		d.Billing = string(b.BillingMode)
	}
	if p := is.ProvisionedThroughput; p != nil {
		d.ReadUnits, d.WriteUnits = aws.ToInt64(p.ReadCapacityUnits), aws.ToInt64(p.WriteCapacityUnits)
	}
	for _, a := range is.AttributeDefinitions {
		d.Types[aws.ToString(a.AttributeName)] = string(a.AttributeType)
	}
	for _, k := range is.KeySchema {
		if k.KeyType == types.KeyTypeHash {
			d.Partition = aws.ToString(k.AttributeName)
		} else {
			d.Sort = aws.ToString(k.AttributeName)
		}
	}
	ttl := lab.Must(db.DescribeTimeToLive(ctx, &dynamodb.DescribeTimeToLiveInput{TableName: aws.String(s.Name)}))(t)
	if ttl.TimeToLiveDescription.TimeToLiveStatus == types.TimeToLiveStatusEnabled {
		d.TTL = aws.ToString(ttl.TimeToLiveDescription.AttributeName)
	}
	for _, tag := range lab.Must(db.ListTagsOfResource(ctx, &dynamodb.ListTagsOfResourceInput{ResourceArn: is.TableArn}))(t).Tags {
		d.Tags[aws.ToString(tag.Key)] = aws.ToString(tag.Value)
	}
	return d
}

func TestTemplatesDifferFromCreatedTableOnlyInDataProtection(t *testing.T) {
	specs := map[string]table.Spec{
		"defaults":                 {Name: "locks"},
		"with a sort key":          {Name: "locks", Layout: layout.Native{PartitionKey: "id", SortKey: "range", TTL: "gone"}},
		"without TTL":              {Name: "locks", Layout: layout.Native{TTL: "-"}},
		"provisioned":              {Name: "locks", ReadUnits: 5, WriteUnits: 7},
		"protected":                {Name: "locks", DeletionProtection: true},
		"disposable":               {Name: "locks", Disposable: true},
		"disposable and protected": {Name: "locks", Disposable: true, DeletionProtection: true},
		"with tags":                {Name: "locks", Tags: map[string]string{"team": "billing", "cost-centre": "4711", "empty": ""}},
		"all settings":             {Name: "a.b_c-9", Layout: layout.Native{SortKey: "s"}, ReadUnits: 1, WriteUnits: 1, DeletionProtection: true, Tags: map[string]string{"a": "b"}},
		"names like YAML values":   {Name: "true", Layout: layout.Native{PartitionKey: "null", SortKey: "on", TTL: "1e3"}, Tags: map[string]string{"no": "yes", "0x1": "~"}},
	}
	for _, name := range layout.Names() {
		l := lab.Must(layout.Parse(name))(t)
		specs["layout "+name] = table.Spec{Name: "locks", Layout: l}
	}
	for name, spec := range specs {
		if text := []byte(spec.Terraform()); !bytes.Equal(hclwrite.Format(text), text) {
			t.Errorf("%s: terraform fmt would write\n%s\ninstead of\n%s", name, hclwrite.Format(text), text)
		}
		want := created(t, spec)
		if !spec.Disposable { // the templates protect the table and its data in these three ways, but table.Create does not
			want.Protected, want.Kept, want.Recovered = true, true, true
		}
		for program, read := range readers {
			t.Run(name+"/"+program, func(t *testing.T) {
				lab.Want(t, "table of the template, compared with Create's", lab.Must(read(spec))(t), want)
			})
		}
	}
}

func TestTemplatesPreserveSpecialCharacters(t *testing.T) {
	odd := rapid.Custom(func(t *rapid.T) string {
		parts := rapid.SliceOfN(rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{
			"$", "{", "}", "%", "${", "%{", "$${", "%%{", "~}", `"`, "'", `\`, "\n", "\r\n", "\t", " ", "#", "//", "/*", ":", "- ", "---",
			"<<EOF", "!Ref x", "&a", "*a", "\x00", "\x7f", "\u0085", "\u00a0", "\u2028", "\ufeff", "\ufffe", "\U0001f512", "\U000e0001", "é",
		})), 0, 6).Draw(t, "parts")
		// The test uses only texts in the Unicode form NFC, because an HCL parser converts other
		// texts to NFC (HCL syntax-agnostic specification, "String Values").
		return norm.NFC.String(strings.ToValidUTF8(strings.Join(parts, ""), "?"))
	})
	names := rapid.StringMatching(`[a-z"$%{}\\ é]{1,8}`)
	rapid.Check(t, func(t *rapid.T) {
		spec := table.Spec{
			Name: odd.Filter(func(s string) bool { return s != "" }).Draw(t, "name"), Disposable: rapid.Bool().Draw(t, "disposable"),
			Layout: layout.Native{PartitionKey: "k" + names.Draw(t, "key"), SortKey: "s" + names.Draw(t, "sort"), TTL: "t" + names.Draw(t, "ttl")},
			Tags:   rapid.MapOf(odd, odd).Draw(t, "tags"),
		}
		l := spec.Layout.(layout.Native)
		want := described{
			Name: spec.Name, Billing: "PAY_PER_REQUEST", Partition: l.PartitionKey, Sort: l.SortKey,
			Types: map[string]string{l.PartitionKey: "S", l.SortKey: "S"}, TTL: l.TTL, Tags: maps.Clone(spec.Tags),
			Protected: !spec.Disposable, Kept: !spec.Disposable, Recovered: !spec.Disposable,
		}
		for program, read := range readers {
			got, err := read(spec)
			if err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(got, want) {
				t.Fatalf("%s: %#v\nwant\n%#v", program, got, want)
			}
		}
	})
}

func TestInvalidSpecYieldsErrorMessageInsteadOfTemplate(t *testing.T) {
	for _, spec := range []table.Spec{
		{}, {Name: "locks", ReadUnits: 1}, {Name: "locks", Layout: layout.Native{PartitionKey: "a", SortKey: "a"}},
		{Layout: layout.Native{PartitionKey: "a", SortKey: "a"}},
	} {
		for program, read := range readers {
			lab.WantFailed(t, fmt.Sprintf("%s of %+v", program, spec), lab.ErrorOf(read(spec)))
		}
		if text := spec.Terraform(); !strings.HasPrefix(text, "error: table: ") && !strings.HasPrefix(text, "error: layout: ") || strings.Count(text, "\n") != 1 {
			t.Errorf("the text of %+v: %s", spec, text)
		}
	}
}
