package localdynamo_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/leasehold-go/leasehold/internal/lab"
	"github.com/leasehold-go/leasehold/localdynamo"
	"github.com/leasehold-go/leasehold/localdynamo/boltstore"
)

func TestRequestWithCancelledContextChangesNothing(t *testing.T) {
	store := lab.Must(boltstore.Open(filepath.Join(t.TempDir(), "locks.db")))(t)
	lab.Variants(t, map[string]*localdynamo.Engine{
		"memory": localdynamo.New(), "file": localdynamo.New(localdynamo.WithStore(store)),
	}, func(t *testing.T, e *localdynamo.Engine) {
		client := newTable(t, e)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		item := strings.NewReader(`{"TableName":"locks","Item":{"id":{"S":"k"}}}`)
		r := httptest.NewRequestWithContext(ctx, http.MethodPost, "http://localdynamo/", item)
		r.Header.Set("X-Amz-Target", "DynamoDB_20120810.PutItem")
		lab.WantErr(t, "RoundTrip", lab.ErrorOf(e.RoundTrip(r)), context.Canceled)
		lab.Want(t, "written item", get(t, client, "k"), nil)
	})
}

func TestClosedEngineRejectsRequests(t *testing.T) {
	e := localdynamo.New()
	client := newTable(t, e)
	lab.OK(t, e.Close())
	_, err := client.ListTables(t.Context(), &dynamodb.ListTablesInput{}, func(o *dynamodb.Options) { o.Retryer = aws.NopRetryer{} })
	lab.WantText(t, "ListTables", err, "closed")
}

func TestServeHTTPRepliesInDynamoDBWireFormat(t *testing.T) {
	e := localdynamo.New()
	newTable(t, e)
	for _, test := range []struct {
		target, body, want string
		status             int
	}{
		{"DynamoDB_20120810.ListTables", `{}`, `{"TableNames":["locks"]}`, http.StatusOK},
		{"DynamoDB_20120810.GetItem", `{"TableName":"nope","Key":{"id":{"S":"a"}}}`,
			`{"__type":"com.amazonaws.dynamodb.v20120810#ResourceNotFoundException","message":"Requested resource not found"}`, http.StatusBadRequest},
		{"", ``, `{"__type":"com.amazon.coral.service#UnknownOperationException","message":"no DynamoDB operation in the header X-Amz-Target"}`, http.StatusBadRequest},
		{"DynamoDB_20120810.Nope", ``, `{"__type":"com.amazon.coral.service#UnknownOperationException","message":"localdynamo does not know the operation Nope"}`, http.StatusBadRequest},
	} {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", strings.NewReader(test.body))
		r.Header.Set("X-Amz-Target", test.target)
		w := httptest.NewRecorder()
		e.ServeHTTP(w, r)
		lab.Want(t, test.target, [2]any{w.Code, w.Body.String()}, [2]any{test.status, test.want})
		if w.Header().Get("X-Amz-Crc32") == "" || w.Header().Get("Content-Type") != "application/x-amz-json-1.0" {
			t.Errorf("%s: headers %v", test.target, w.Header())
		}
	}
}

const turnOn = `{"TableName":"locks","TimeToLiveSpecification":{"AttributeName":"expiresAt","Enabled":true}}`

// newStore returns a store in a file, so that a test can look at the items in it.
func newStore(t *testing.T) localdynamo.Store {
	t.Helper()
	return lab.Must(boltstore.Open(filepath.Join(t.TempDir(), "locks.db")))(t)
}

// hasItems fails the test unless the store contains n items. It also counts items that TTL has
// deleted if the store still contains them.
func hasItems(t *testing.T, store localdynamo.Store, n int) {
	t.Helper()
	found := 0
	lab.OK(t, store.View(func(tx localdynamo.Tx) error {
		for range tx.Range([]byte("i"), []byte("j")) {
			found++
		}
		return nil
	}))
	lab.Want(t, "items in the store", found, n)
}

func TestTTLDeletesItemOneHourAfterExpiry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newStore(t)
		e := localdynamo.New(localdynamo.WithStore(store))
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
		lab.Want(t, "an item is deleted less than an hour after its expiry", get(t, client, "free") == nil, false)
		put(t, client, "held", nil) // the new item has no TTL attribute
		time.Sleep(2 * time.Minute)
		for id, want := range map[string]bool{"before": false, "free": false, "held": true, "text": true, "ancient": true} {
			lab.Want(t, id, get(t, client, id) != nil, want)
		}
		put(t, client, "free", nil)
		put(t, client, "any", nil)
		out := lab.Must(client.Scan(t.Context(), &dynamodb.ScanInput{TableName: aws.String("locks")}))(t)
		lab.Want(t, "items that a scan sees", out.Count, 5)
		want(t, e, "DescribeTimeToLive", `{"TableName":"locks"}`, `{"TimeToLiveDescription":{"TimeToLiveStatus":"ENABLED","AttributeName":"expiresAt"}}`)
		hasItems(t, store, 5)
	})
}

func TestTTLDeletionKeepsItemThatReplacedExpiredItem(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newStore(t)
		e := localdynamo.New(localdynamo.WithStore(store))
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
		lab.Want(t, "the new item is deleted", get(t, client, last) == nil, false)
		hasItems(t, store, 2)
	})
}

func TestItemDeletedByTTLStaysDeletedAfterTTLIsTurnedOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := localdynamo.New()
		client := newTable(t, e)
		call(t, e, "UpdateTimeToLive", turnOn)
		put(t, client, "expired", map[string]types.AttributeValue{"expiresAt": number(int(time.Now().Unix()))})
		time.Sleep(2 * time.Hour)
		lab.Want(t, "expired item", get(t, client, "expired"), nil)
		described := lab.Must(client.DescribeTable(t.Context(), &dynamodb.DescribeTableInput{TableName: aws.String("locks")}))(t)
		lab.Want(t, "ItemCount", *described.Table.ItemCount, 0)
		call(t, e, "UpdateTimeToLive", strings.Replace(turnOn, "true", "false", 1))
		lab.Want(t, "expired item", get(t, client, "expired"), nil)
	})
}

func TestErrorOfDamagedTableDescriptionIsPermanent(t *testing.T) {
	store := newStore(t)
	e := localdynamo.New(localdynamo.WithStore(store))
	newTable(t, e)
	lab.OK(t, store.Update(func(tx localdynamo.Tx) error { return tx.Put([]byte("tlocks"), []byte(`{"Name":`)) }))
	want(t, e, "GetItem", `{"TableName":"locks","Key":{"id":{"S":"a"}}}`,
		`{"__type":"com.amazon.coral.service#StoreUnusableException","message":"the description of a table cannot be read: the file is damaged or was written by a newer version"}`)
}
