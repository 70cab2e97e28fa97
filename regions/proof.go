package regions

import (
	"fmt"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/leasehold-go/leasehold/internal/decide"
)

// verdict is what is known of a table.
type verdict int

const (
	unknown  verdict = iota // no Region has said
	proven                  // strongly consistent in all Regions
	unproven                // not that: requests stay home
)

// described is what DescribeTable has said in one Region.
type described struct {
	region string
	table  *types.TableDescription // nil if there is an error
	err    error
}

// judge returns what one Region says of a table in these Regions, and why it is unproven.
func (d described) judge(regions []string) (verdict, string) {
	switch {
	case d.err != nil && decide.Classify(d.err).Cause != decide.Refused:
		return unknown, ""
	case d.err != nil:
		return unproven, fmt.Sprintf("DescribeTable in %s: %v", d.region, d.err)
	case d.table.MultiRegionConsistency != types.MultiRegionConsistencyStrong:
		return unproven, "it is no global table with multi-Region strong consistency"
	}
	for _, region := range regions {
		isActive := func(r types.ReplicaDescription) bool {
			return aws.ToString(r.RegionName) == region && r.ReplicaStatus == types.ReplicaStatusActive
		}
		if region != d.region && !slices.ContainsFunc(d.table.Replicas, isActive) {
			return unproven, "it has no active replica in " + region
		}
	}
	return proven, ""
}

// judgeAll returns what all Regions together say of a table. One that proves it outweighs
// others: their answers may be older, or be those of a Region that is cut off.
func judgeAll(answers []described, regions []string) (verdict, string) {
	all, because := unknown, ""
	for _, d := range answers {
		switch v, why := d.judge(regions); v {
		case proven:
			return proven, ""
		case unproven:
			all, because = unproven, why
		}
	}
	return all, because
}

// canBeProven returns why a name cannot be that of a table in several Regions.
func canBeProven(table string) (verdict, string) {
	if strings.HasPrefix(table, "arn:") {
		return unproven, "its ARN names one Region: use the table's name"
	}
	return unknown, ""
}
