package localdynamo_test

import (
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/leasehold-go/leasehold/internal/lab"
	"github.com/leasehold-go/leasehold/localdynamo"
)

func TestTTLDeletesItemHourAfterExpiry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := localdynamo.New()
		client := newTable(t, e)
		put := func(id string, attributes map[string]types.AttributeValue) {
			for name, v := range key(id) {
				attributes[name] = v
			}
			lab.Must(client.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: aws.String("locks"), Item: attributes}))(t)
		}
		now := int(time.Now().Unix())
		put("before", map[string]types.AttributeValue{"expiresAt": number(now + 60)}) // written before TTL is turned on
		lab.Must(client.UpdateTimeToLive(t.Context(), &dynamodb.UpdateTimeToLiveInput{
			TableName:               aws.String("locks"),
			TimeToLiveSpecification: &types.TimeToLiveSpecification{AttributeName: aws.String("expiresAt"), Enabled: aws.Bool(true)},
		}))(t)
		put("free", map[string]types.AttributeValue{"expiresAt": number(now + 60)})
		put("held", map[string]types.AttributeValue{"expiresAt": number(now + 60)})
		put("text", map[string]types.AttributeValue{"expiresAt": text(strconv.Itoa(now + 60))})
		put("ancient", map[string]types.AttributeValue{"expiresAt": number(now - 6*365*24*3600)})

		time.Sleep(time.Hour)
		if get(t, client, "free") == nil {
			t.Error("an item is gone less than an hour after its time")
		}
		put("held", map[string]types.AttributeValue{}) // removes the TTL attribute
		time.Sleep(2 * time.Minute)
		for id, want := range map[string]bool{"before": false, "free": false, "held": true, "text": true, "ancient": true} {
			if got := get(t, client, id) != nil; got != want {
				t.Errorf("%s is there: %v, want %v", id, got, want)
			}
		}
		put("free", map[string]types.AttributeValue{})
		put("any", map[string]types.AttributeValue{})
		out, err := client.Scan(t.Context(), &dynamodb.ScanInput{TableName: aws.String("locks")})
		if err != nil || out.Count != 5 {
			t.Errorf("a scan sees %d items, %v", out.Count, err)
		}
		want(t, e, "DescribeTimeToLive", `{"TableName":"locks"}`, `{"TimeToLiveDescription":{"TimeToLiveStatus":"ENABLED","AttributeName":"expiresAt"}}`)
		described, err := client.DescribeTable(t.Context(), &dynamodb.DescribeTableInput{TableName: aws.String("locks")})
		if err != nil || *described.Table.ItemCount != 5 {
			t.Errorf("after the sweep the table has %d items, %v", *described.Table.ItemCount, err)
		}
	})
}

func TestTTLSweepKeepsItemThatReplacedExpiredItem(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := newTable(t, localdynamo.New())
		lab.Must(client.UpdateTimeToLive(t.Context(), &dynamodb.UpdateTimeToLiveInput{
			TableName:               aws.String("locks"),
			TimeToLiveSpecification: &types.TimeToLiveSpecification{AttributeName: aws.String("expiresAt"), Enabled: aws.Bool(true)},
		}))(t)
		put := func(i int, expires bool) {
			item := key(strconv.Itoa(i))
			if expires {
				item["expiresAt"] = number(int(time.Now().Unix()) + i)
			}
			lab.Must(client.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: aws.String("locks"), Item: item}))(t)
		}
		const crowd = 90 // more items than three writes can sweep
		for i := range crowd {
			put(i, true)
		}
		time.Sleep(2 * time.Hour)
		put(crowd-1, false) // replaces an expired item that has not been swept yet
		for range 4 {
			put(crowd, false)
		}
		if get(t, client, strconv.Itoa(crowd-1)) == nil {
			t.Error("the sweep took a new item for an expired one")
		}
		described, err := client.DescribeTable(t.Context(), &dynamodb.DescribeTableInput{TableName: aws.String("locks")})
		if err != nil || *described.Table.ItemCount != 2 {
			t.Errorf("after the sweep the table has %d items, %v", *described.Table.ItemCount, err)
		}
	})
}
