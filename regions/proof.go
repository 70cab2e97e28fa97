package regions

import (
	"fmt"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/leasehold-go/leasehold/internal/decide"
)

// verdict says whether requests to a table may leave the home Region.
type verdict struct {
	known  bool
	strong bool   // whether the table is strongly consistent across Regions, and so has no transactions
	why    string // reason why requests may not leave the home Region; empty if they may
	final  bool   // whether another reply to DescribeTable cannot change the verdict
}

func (v verdict) mayLeave() bool { return v.known && v.why == "" }

// The method "with" adds the verdict from one more Region to v, and returns the result. One verdict
// that lets requests leave the home Region is enough: the other may come from an older reply, or
// from a Region that is cut off.
func (v verdict) with(another verdict) verdict {
	strong := v.strong || another.strong
	if another.known && !v.mayLeave() {
		v = another
	}
	v.strong = strong
	return v
}

// judge returns the verdict from one Region's reply to DescribeTable. The parameter "regions"
// contains all Regions to which requests may go. If the Region did not reply, the verdict is
// unknown. If AWS refused the request, as for a missing table, requests must stay in the home
// Region for now.
func judge(region string, answer *dynamodb.DescribeTableOutput, err error, regions []string) verdict {
	switch {
	case err != nil && decide.Classify(err).Cause == decide.Refused:
		return verdict{known: true, why: fmt.Sprintf("DescribeTable in %s: %v", region, err)}
	case err != nil || answer.Table == nil:
		return verdict{}
	case answer.Table.MultiRegionConsistency != types.MultiRegionConsistencyStrong:
		return verdict{known: true, final: true, why: "it is no global table with multi-Region strong consistency"}
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
