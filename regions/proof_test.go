package regions

import (
	"errors"
	"slices"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"
)

// global returns DescribeTable's answer for a global table in one Region.
func global(mode types.MultiRegionConsistency, others ...string) *types.TableDescription {
	d := &types.TableDescription{MultiRegionConsistency: mode}
	for _, name := range others {
		d.Replicas = append(d.Replicas, types.ReplicaDescription{RegionName: aws.String(name), ReplicaStatus: types.ReplicaStatusActive})
	}
	return d
}

func TestFailoverRequiresStrongTableInEveryRegion(t *testing.T) {
	strong := types.MultiRegionConsistencyStrong
	creating := global(strong, "b", "c")
	creating.Replicas[1].ReplicaStatus = types.ReplicaStatusCreating
	denied := &smithy.GenericAPIError{Code: "AccessDeniedException", Fault: smithy.FaultClient}
	outage := errors.New("no such host")
	type answer struct {
		region string
		table  *types.TableDescription
		err    error
	}
	for name, c := range map[string]struct {
		answers []answer
		known   bool
		why     string
	}{
		"strong":                       {[]answer{{"a", global(strong, "b", "c"), nil}}, true, ""},
		"strong, and shows itself too": {[]answer{{"a", global(strong, "a", "b", "c"), nil}}, true, ""},
		"eventual":                     {[]answer{{"a", global(types.MultiRegionConsistencyEventual, "b", "c"), nil}}, true, "it is no global table with multi-Region strong consistency"},
		"in one Region":                {[]answer{{"a", &types.TableDescription{}, nil}}, true, "it is no global table with multi-Region strong consistency"},
		"one Region missing":           {[]answer{{"a", global(strong, "b"), nil}}, true, "it has no active replica in c"},
		"one Region not ready":         {[]answer{{"a", creating, nil}}, true, "it has no active replica in c"},
		"denied":                       {[]answer{{"a", nil, denied}}, true, "DescribeTable in a: " + denied.Error()},
		"home is out":                  {[]answer{{"a", nil, outage}, {"b", global(strong, "a", "c"), nil}}, true, ""},
		"home denies":                  {[]answer{{"a", nil, denied}, {"b", global(strong, "a", "c"), nil}}, true, ""},
		"home proves, another denies":  {[]answer{{"a", global(strong, "b", "c"), nil}, {"b", nil, denied}}, true, ""},
		"an answer of no DynamoDB":     {[]answer{{"a", nil, nil}}, false, ""},
		"one is missing, home denies":  {[]answer{{"b", global(strong, "a"), nil}, {"a", nil, denied}}, true, "DescribeTable in a: " + denied.Error()},
		"all are out":                  {[]answer{{"a", nil, outage}, {"b", nil, outage}, {"c", nil, outage}}, false, ""},
		"home is out, another denies":  {[]answer{{"a", nil, outage}, {"b", nil, denied}}, true, "DescribeTable in b: " + denied.Error()},
	} {
		t.Run(name, func(t *testing.T) {
			var got verdict
			for _, a := range c.answers {
				got = got.with(judge(a.region, &dynamodb.DescribeTableOutput{Table: a.table}, a.err, []string{"a", "b", "c"}))
			}
			isStrong := slices.ContainsFunc(c.answers, func(a answer) bool {
				return a.table != nil && a.table.MultiRegionConsistency == strong
			})
			if want := (verdict{c.known, isStrong, c.why}); got != want {
				t.Errorf("%+v, want %+v", got, want)
			}
		})
	}
}
