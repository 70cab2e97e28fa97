package leaseholdprom_test

import (
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/contrib/leaseholdprom"
	"github.com/leasehold-go/leasehold/regions"
)

func TestCounterOfRegionMovesHasNoGroupLabel(t *testing.T) {
	reg := prometheus.NewPedanticRegistry()
	m := leaseholdprom.New(reg, func(k leasehold.Key) string { return k.Partition[:4] })
	for range 2 {
		m.OnEvent(t.Context(), leasehold.Event{Kind: leasehold.EventRegion, Region: "us-east-2"})
	}
	want(t, samples(t, reg), map[string]sample{"leasehold_region_moves_total{}": {value: 2}})
}

func TestGaugeCountsClientsByRegion(t *testing.T) {
	reg := prometheus.NewPedanticRegistry()
	m := leaseholdprom.New(reg, nil)
	db := regions.New(dynamodb.New(dynamodb.Options{Region: "us-east-1"}), dynamodb.New(dynamodb.Options{Region: "us-east-2"}))
	for range 2 {
		c, err := leasehold.New(db, leasehold.Config{Table: "locks"})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close(t.Context())
		m.Watch(c)
	}
	want(t, samples(t, reg), map[string]sample{"leasehold_region_clients{us-east-1}": {value: 2}})
}
