package regions

import (
	"fmt"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/leasehold-go/leasehold/internal/decide"
)

// verdict is the answer to the question whether requests to a table may leave the home Region.
type verdict struct {
	known bool
	why   string // reason why requests may not leave home; empty if they may
}

func (v verdict) mayLeave() bool { return v.known && v.why == "" }

// described is the result of DescribeTable in one Region.
type described struct {
	region string
	table  *types.TableDescription // description of the table; nil if there is none
	err    error
}

// isStrong reports whether a table is strongly consistent across Regions. It returns false
// for nil.
func isStrong(t *types.TableDescription) bool {
	return t != nil && t.MultiRegionConsistency == types.MultiRegionConsistencyStrong
}

// judge returns the verdict that one Region's description gives about a table in these
// Regions.
func (d described) judge(regions []string) verdict {
	switch {
	case d.err != nil && decide.Classify(d.err).Cause == decide.Refused:
		return verdict{true, fmt.Sprintf("DescribeTable in %s: %v", d.region, d.err)}
	case d.table == nil:
		return verdict{}
	case !isStrong(d.table):
		return verdict{true, "it is no global table with multi-Region strong consistency"}
	}
	for _, region := range regions {
		isActive := func(r types.ReplicaDescription) bool {
			return aws.ToString(r.RegionName) == region && r.ReplicaStatus == types.ReplicaStatusActive
		}
		if region != d.region && !slices.ContainsFunc(d.table.Replicas, isActive) {
			return verdict{true, "it has no active replica in " + region}
		}
	}
	return verdict{known: true}
}

// judge returns the verdict of all Regions on a table. One answer that proves the table
// outweighs all others, which may be older or come from a Region that is cut off.
func judge(answers []described, regions []string) (all verdict) {
	for _, d := range answers {
		v := d.judge(regions)
		if v.mayLeave() {
			return v
		}
		if v.known {
			all = v
		}
	}
	return all
}
