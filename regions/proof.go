package regions

import (
	"fmt"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/leasehold-go/leasehold/internal/decide"
)

// verdict is the answer to the question whether requests to a table may leave the home Region.
type verdict struct {
	known  bool
	strong bool   // the table is strongly consistent across Regions, so it has no transactions
	why    string // reason why requests may not leave home; empty if they may
}

func (v verdict) mayLeave() bool { return v.known && v.why == "" }

// with returns the verdict of v and of one more Region. One by which requests may leave home
// outweighs all others, which may be older or come from a Region that is cut off.
func (v verdict) with(another verdict) verdict {
	strong := v.strong || another.strong
	if another.known && !v.mayLeave() {
		v = another
	}
	v.strong = strong
	return v
}

// judge returns the verdict that the answer of one Region to DescribeTable gives about a
// table in these Regions. If that Region has no answer or no table, the verdict is unknown.
func judge(region string, answer *dynamodb.DescribeTableOutput, err error, regions []string) verdict {
	switch {
	case err != nil && decide.Classify(err).Cause == decide.Refused:
		return verdict{known: true, why: fmt.Sprintf("DescribeTable in %s: %v", region, err)}
	case err != nil || answer.Table == nil:
		return verdict{}
	case answer.Table.MultiRegionConsistency != types.MultiRegionConsistencyStrong:
		return verdict{known: true, why: "it is no global table with multi-Region strong consistency"}
	}
	for _, other := range regions {
		isActive := func(r types.ReplicaDescription) bool {
			return aws.ToString(r.RegionName) == other && r.ReplicaStatus == types.ReplicaStatusActive
		}
		if other != region && !slices.ContainsFunc(answer.Table.Replicas, isActive) {
			return verdict{known: true, strong: true, why: "it has no active replica in " + other}
		}
	}
	return verdict{known: true, strong: true}
}
