package localdynamo_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/leasehold-go/leasehold/internal/lab"
	"github.com/leasehold-go/leasehold/localdynamo"
)

// newTable returns a client of the engine with a table "locks" whose key is the
// string "id". The engine is closed when the test ends.
func newTable(tb testing.TB, e *localdynamo.Engine) *dynamodb.Client {
	tb.Helper()
	tb.Cleanup(func() { lab.OK(tb, e.Close()) })
	client := e.Client()
	createTable(tb, client)
	return client
}

func createTable(tb testing.TB, client *dynamodb.Client) {
	tb.Helper()
	lab.Must(client.CreateTable(context.Background(), &dynamodb.CreateTableInput{
		TableName:            aws.String("locks"),
		AttributeDefinitions: []types.AttributeDefinition{{AttributeName: aws.String("id"), AttributeType: types.ScalarAttributeTypeS}},
		KeySchema:            []types.KeySchemaElement{{AttributeName: aws.String("id"), KeyType: types.KeyTypeHash}},
		BillingMode:          types.BillingModePayPerRequest,
	}))(tb)
}

func key(id string) map[string]types.AttributeValue {
	return map[string]types.AttributeValue{"id": text(id)}
}

func text(s string) types.AttributeValue { return &types.AttributeValueMemberS{Value: s} }

func number(n int) types.AttributeValue {
	return &types.AttributeValueMemberN{Value: strconv.Itoa(n)}
}

func get(t *testing.T, client *dynamodb.Client, id string) map[string]types.AttributeValue {
	t.Helper()
	in := &dynamodb.GetItemInput{TableName: aws.String("locks"), Key: key(id), ConsistentRead: aws.Bool(true)}
	return lab.Must(client.GetItem(t.Context(), in))(t).Item
}

// put stores an item with the given key and attributes.
func put(t *testing.T, client *dynamodb.Client, id string, attributes map[string]types.AttributeValue) {
	t.Helper()
	item := key(id)
	maps.Copy(item, attributes)
	lab.Must(client.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: aws.String("locks"), Item: item}))(t)
}

// call sends a request whose body is exactly the given text. It returns the status and the
// body of the reply.
func call(t *testing.T, e *localdynamo.Engine, operation, body string) (int, string) {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "http://localdynamo/", strings.NewReader(body))
	r.Header.Set("X-Amz-Target", "DynamoDB_20120810."+operation)
	reply, err := e.RoundTrip(r)
	if err != nil {
		t.Fatalf("%s %s: %v", operation, body, err)
	}
	defer func() { _ = reply.Body.Close() }()
	answer := lab.Must(io.ReadAll(reply.Body))(t)
	return reply.StatusCode, string(answer)
}

// want sends a request, and fails the test unless the reply is the given JSON.
func want(t *testing.T, e *localdynamo.Engine, operation, body, reply string) {
	t.Helper()
	_, got := call(t, e, operation, body)
	var a, b any
	if err := errors.Join(json.Unmarshal([]byte(got), &a), json.Unmarshal([]byte(reply), &b)); err != nil || !reflect.DeepEqual(a, b) {
		t.Errorf("%s %s\n got %s\nwant %s, %v", operation, body, got, reply, err)
	}
}
