package lab

import (
	"context"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// Work adds a table for an application's data to the World. The table's name is "work", and its
// key attribute is "id".
func (w *World) Work() *World {
	w.T.Helper()
	w.createTable("work", "id")
	return w
}

// WorkKey returns the primary key of an item in the table named "work".
func WorkKey(id string) map[string]types.AttributeValue {
	return map[string]types.AttributeValue{"id": Str(id)}
}

// Note returns a write that appends value to the list "log" of an item in the table "work". The SDK
// encodes the placeholders of the write in random order, so two requests with the same write may
// differ.
func Note(id, value string) types.TransactWriteItem {
	return types.TransactWriteItem{Update: &types.Update{
		TableName:                aws.String("work"),
		Key:                      WorkKey(id),
		UpdateExpression:         aws.String("SET #l = list_append(if_not_exists(#l, :none), :v), #a = :v, #b = :none"),
		ExpressionAttributeNames: map[string]string{"#l": "log", "#a": "last", "#b": "first"},
		ExpressionAttributeValues: map[string]types.AttributeValue{
			":v": &types.AttributeValueMemberL{Value: []types.AttributeValue{Str(value)}}, ":none": &types.AttributeValueMemberL{},
		},
	}}
}

// NoteIf returns the same write as Note, with an added condition: the item must be open (see
// World.Open).
func NoteIf(id, value string) types.TransactWriteItem {
	w := Note(id, value)
	w.Update.ConditionExpression = aws.String("attribute_exists(#o)")
	w.Update.ExpressionAttributeNames["#o"] = "open"
	w.Update.ReturnValuesOnConditionCheckFailure = types.ReturnValuesOnConditionCheckFailureAllOld
	return w
}

// Open marks an item in the table "work" as open, so that the condition of NoteIf is true for that
// item.
func (w *World) Open(id string) {
	w.T.Helper()
	item := w.WorkItem(id)
	if item == nil {
		item = WorkKey(id)
	}
	item["open"] = Str("yes")
	if _, err := w.DB.PutItem(context.WithoutCancel(w.T.Context()), &dynamodb.PutItemInput{TableName: aws.String("work"), Item: item}); err != nil {
		w.T.Fatal(err)
	}
}

// WorkItem returns an item of the table "work", or nil if the item does not exist.
func (w *World) WorkItem(id string) map[string]types.AttributeValue {
	w.T.Helper()
	out, err := w.DB.GetItem(context.WithoutCancel(w.T.Context()), &dynamodb.GetItemInput{
		TableName: aws.String("work"), Key: WorkKey(id), ConsistentRead: aws.Bool(true),
	})
	if err != nil {
		w.T.Fatal(err)
	}
	return out.Item
}

// Log returns the values that writes of Note have appended to an item of the table "work".
func (w *World) Log(id string) []string {
	w.T.Helper()
	return Log(w.WorkItem(id))
}

// Get returns an element for TransactGetItems that reads an item of the table "work".
func Get(id string) types.TransactGetItem {
	return types.TransactGetItem{Get: &types.Get{TableName: aws.String("work"), Key: WorkKey(id)}}
}

// Log returns the values that writes of Note have appended to item.
func Log(item map[string]types.AttributeValue) []string {
	var out []string
	if list, ok := item["log"].(*types.AttributeValueMemberL); ok {
		for _, v := range list.Value {
			out = append(out, v.(*types.AttributeValueMemberS).Value)
		}
	}
	return out
}

// WantLog fails the test unless exactly the given values were appended to item "a" of the table
// "work".
func (w *World) WantLog(want ...string) {
	w.T.Helper()
	if got := w.Log("a"); !slices.Equal(got, want) {
		w.T.Errorf("written %q, want %q", got, want)
	}
}

// Writes returns its arguments as a slice, for a commit.
func Writes(w ...types.TransactWriteItem) []types.TransactWriteItem { return w }

// Transact sends the given writes in one transaction, without a lock client.
func (w *World) Transact(items ...types.TransactWriteItem) error {
	_, err := w.DB.TransactWriteItems(w.T.Context(), &dynamodb.TransactWriteItemsInput{TransactItems: items})
	return err
}
