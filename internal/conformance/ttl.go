package conformance

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// setTTL is an UpdateTimeToLive request.
type setTTL struct {
	attribute string
	enabled   bool
}

func (r setTTL) send(ctx context.Context, to target) (Reply, error) {
	out, err := to.client.UpdateTimeToLive(ctx, &dynamodb.UpdateTimeToLiveInput{
		TableName:               &to.table,
		TimeToLiveSpecification: &types.TimeToLiveSpecification{AttributeName: &r.attribute, Enabled: &r.enabled},
	})
	if err != nil {
		return Reply{}, err
	}
	s := out.TimeToLiveSpecification
	return Reply{Detail: fmt.Sprint(aws.ToString(s.AttributeName), " ", aws.ToBool(s.Enabled))}, nil
}

// describeTTL is a DescribeTimeToLive request. In its Reply, a change that is still in progress
// counts as complete.
type describeTTL struct{}

func (describeTTL) send(ctx context.Context, to target) (Reply, error) {
	out, err := to.client.DescribeTimeToLive(ctx, &dynamodb.DescribeTimeToLiveInput{TableName: &to.table})
	if err != nil {
		return Reply{}, err
	}
	d := out.TimeToLiveDescription
	switch d.TimeToLiveStatus {
	case types.TimeToLiveStatusEnabling:
		d.TimeToLiveStatus = types.TimeToLiveStatusEnabled
	case types.TimeToLiveStatusDisabling:
		d.TimeToLiveStatus = types.TimeToLiveStatusDisabled
	case types.TimeToLiveStatusEnabled, types.TimeToLiveStatusDisabled:
	}
	return Reply{Detail: string(d.TimeToLiveStatus) + " " + aws.ToString(d.AttributeName)}, nil
}

// ttlCases returns the cases for the TTL settings of a table. AWS promises only that an expired
// item is deleted "within a few days", so no case tests the deletion.
func ttlCases() []Case {
	later := strconv.FormatInt(time.Now().Add(time.Hour).Unix(), 10)
	return []Case{
		{
			Name: "TTL is off at first",
			When: describeTTL{},
			Want: Reply{Detail: "DISABLED "},
		},
		{
			Name: "turning TTL on returns the new setting",
			When: setTTL{"expires", true},
			Want: Reply{Detail: "expires true"},
		},
		{
			Name:   "DescribeTimeToLive shows that TTL is on",
			Before: []Request{setTTL{"expires", true}},
			When:   describeTTL{},
			Want:   Reply{Detail: "ENABLED expires"},
		},
		{
			Name:   "turning TTL on twice",
			Before: []Request{setTTL{"expires", true}},
			When:   setTTL{"expires", true},
			Want:   invalid("TimeToLive is already enabled"),
		},
		{
			Name:   "turning TTL on for another attribute",
			Before: []Request{setTTL{"expires", true}},
			When:   setTTL{"other", true},
			Want:   invalid("TimeToLive is active on a different AttributeName: current AttributeName is expires"),
		},
		{
			Name: "turning TTL off when it is off",
			When: setTTL{"expires", false},
			Want: invalid("TimeToLive is already disabled"),
		},
		Case{
			Name: "TTL of an unknown table",
			When: describeTTL{},
			Want: notFound("Requested resource not found: Table: {table}-none not found"),
		}.elsewhere(),
		{
			Name:   "an item that has not expired stays",
			Before: []Request{setTTL{"expires", true}, Put{Item: item(Item{"expires": num(later)})}},
			When:   Get{},
			Want:   Reply{Item: item(Item{"expires": num(later)})},
		},
		{
			Name:   "an item without the attribute stays",
			Before: []Request{setTTL{"expires", true}, Put{Item: item(Item{"x": num("1")})}},
			When:   Get{},
			Want:   Reply{Item: item(Item{"x": num("1")})},
		},
		{
			Name:   "an item whose attribute is not a number stays",
			Before: []Request{setTTL{"expires", true}, Put{Item: item(Item{"expires": str("1")})}},
			When:   Get{},
			Want:   Reply{Item: item(Item{"expires": str("1")})},
		},
		{
			Name:   "an item that expired over five years ago stays",
			Before: []Request{setTTL{"expires", true}, Put{Item: item(Item{"expires": num("1000000000")})}},
			When:   Get{},
			Want:   Reply{Item: item(Item{"expires": num("1000000000")})},
		},
	}
}
