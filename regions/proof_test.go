package regions

import (
	"errors"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
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
	for name, c := range map[string]struct {
		answers []described
		known   bool
		why     string
	}{
		"strong":                       {[]described{{"a", global(strong, "b", "c"), nil}}, true, ""},
		"strong, and shows itself too": {[]described{{"a", global(strong, "a", "b", "c"), nil}}, true, ""},
		"eventual":                     {[]described{{"a", global(types.MultiRegionConsistencyEventual, "b", "c"), nil}}, true, "it is no global table with multi-Region strong consistency"},
		"in one Region":                {[]described{{"a", &types.TableDescription{}, nil}}, true, "it is no global table with multi-Region strong consistency"},
		"one Region missing":           {[]described{{"a", global(strong, "b"), nil}}, true, "it has no active replica in c"},
		"one Region not ready":         {[]described{{"a", creating, nil}}, true, "it has no active replica in c"},
		"denied":                       {[]described{{"a", nil, denied}}, true, "DescribeTable in a: " + denied.Error()},
		"home is out":                  {[]described{{"a", nil, outage}, {"b", global(strong, "a", "c"), nil}}, true, ""},
		"home denies":                  {[]described{{"a", nil, denied}, {"b", global(strong, "a", "c"), nil}}, true, ""},
		"home proves, another denies":  {[]described{{"a", global(strong, "b", "c"), nil}, {"b", nil, denied}}, true, ""},
		"an answer of no DynamoDB":     {[]described{{"a", nil, nil}}, false, ""},
		"all are out":                  {[]described{{"a", nil, outage}, {"b", nil, outage}, {"c", nil, outage}}, false, ""},
		"home is out, another denies":  {[]described{{"a", nil, outage}, {"b", nil, denied}}, true, "DescribeTable in b: " + denied.Error()},
	} {
		t.Run(name, func(t *testing.T) {
			if got, want := judge(c.answers, []string{"a", "b", "c"}), (verdict{c.known, c.why}); got != want {
				t.Errorf("%+v, want %+v", got, want)
			}
		})
	}
}
