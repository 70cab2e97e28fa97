package leaseholdotel_test

import (
	"errors"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/regions"
)

func TestGaugeCountsClientsByRegion(t *testing.T) {
	rig := newRig(t)
	db := regions.New(dynamodb.New(dynamodb.Options{Region: "us-east-1"}), dynamodb.New(dynamodb.Options{Region: "us-east-2"}))
	c, err := leasehold.New(db, leasehold.Config{Table: "locks"})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close(t.Context())
	if err := rig.Watch(c); err != nil {
		t.Fatal(err)
	}
	want(t, samples(t, rig.reader), map[string]sample{"leasehold.region_clients{us-east-1}": {value: 1}})
}

func TestTelemetryCountsMovesBetweenRegions(t *testing.T) {
	rig := newRig(t)
	rig.OnEvent(t.Context(), leasehold.Event{Kind: leasehold.EventRegion, Region: "us-east-2", Err: errors.New("no such host")})
	rig.OnEvent(t.Context(), leasehold.Event{Kind: leasehold.EventRegion, Region: "us-east-1"})
	want(t, samples(t, rig.reader), map[string]sample{"leasehold.region_moves": {value: 2}})
}
