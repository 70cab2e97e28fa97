package localdynamo_test

import (
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/leasehold-go/leasehold/localdynamo"
)

const turnOn = `{"TableName":"locks","TimeToLiveSpecification":{"AttributeName":"expiresAt","Enabled":true}}`

func hasItems(t *testing.T, client *dynamodb.Client, n int64) {
	t.Helper()
	described, err := client.DescribeTable(t.Context(), &dynamodb.DescribeTableInput{TableName: aws.String("locks")})
	if err != nil || *described.Table.ItemCount != n {
		t.Errorf("after the sweep the table has %d items, want %d, %v", *described.Table.ItemCount, n, err)
	}
}

func TestTTLDeletesItemOneHourAfterExpiry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := localdynamo.New()
		client := newTable(t, e)
		putExpiring := func(id string, expires types.AttributeValue) {
			put(t, client, id, map[string]types.AttributeValue{"expiresAt": expires})
		}
		now := int(time.Now().Unix())
		putExpiring("before", number(now+60)) // this item is written before TTL is turned on
		call(t, e, "UpdateTimeToLive", turnOn)
		putExpiring("free", number(now+60))
		putExpiring("held", number(now+60))
		putExpiring("text", text(strconv.Itoa(now+60)))
		putExpiring("ancient", number(now-6*365*24*3600))

		time.Sleep(time.Hour)
		if get(t, client, "free") == nil {
			t.Error("an item is gone less than an hour after its time")
		}
		put(t, client, "held", nil) // the new item has no TTL attribute
		time.Sleep(2 * time.Minute)
		for id, want := range map[string]bool{"before": false, "free": false, "held": true, "text": true, "ancient": true} {
			if got := get(t, client, id) != nil; got != want {
				t.Errorf("%s is there: %v, want %v", id, got, want)
			}
		}
		put(t, client, "free", nil)
		put(t, client, "any", nil)
		out, err := client.Scan(t.Context(), &dynamodb.ScanInput{TableName: aws.String("locks")})
		if err != nil || out.Count != 5 {
			t.Errorf("a scan sees %d items, %v", out.Count, err)
		}
		want(t, e, "DescribeTimeToLive", `{"TableName":"locks"}`, `{"TimeToLiveDescription":{"TimeToLiveStatus":"ENABLED","AttributeName":"expiresAt"}}`)
		hasItems(t, client, 5)
	})
}

func TestTTLSweepKeepsItemThatReplacedExpiredItem(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := localdynamo.New()
		client := newTable(t, e)
		call(t, e, "UpdateTimeToLive", turnOn)
		const crowd = 90 // more expired items than the engine deletes during three writes
		for i := range crowd {
			put(t, client, strconv.Itoa(i), map[string]types.AttributeValue{"expiresAt": number(int(time.Now().Unix()) + i)})
		}
		time.Sleep(2 * time.Hour)
		last := strconv.Itoa(crowd - 1)
		put(t, client, last, nil) // a new item replaces an expired item that TTL has not deleted yet
		for range 4 {
			put(t, client, "other", nil)
		}
		if get(t, client, last) == nil {
			t.Error("the sweep took a new item for an expired one")
		}
		hasItems(t, client, 2)
	})
}
