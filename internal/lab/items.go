package lab

import (
	"context"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/leasehold-go/leasehold"
)

// Item returns the record of a key, or nil if the table has no such record.
func (w *World) Item(key string) map[string]types.AttributeValue {
	w.T.Helper()
	out, err := w.DB.GetItem(context.WithoutCancel(w.T.Context()), &dynamodb.GetItemInput{
		TableName: aws.String("locks"), Key: Key(key), ConsistentRead: aws.Bool(true),
	})
	if err != nil {
		w.T.Fatal(err)
	}
	return out.Item
}

// Scan returns every item of the lock table, undecoded.
func (w *World) Scan() []map[string]types.AttributeValue {
	w.T.Helper()
	out, err := w.DB.Scan(context.WithoutCancel(w.T.Context()), &dynamodb.ScanInput{TableName: aws.String("locks")})
	if err != nil {
		w.T.Fatal(err)
	}
	return out.Items
}

// Put writes the given item, unchanged, to the lock table.
func (w *World) Put(item map[string]types.AttributeValue) {
	w.T.Helper()
	if _, err := w.DB.PutItem(w.T.Context(), &dynamodb.PutItemInput{TableName: aws.String("locks"), Item: item}); err != nil {
		w.T.Fatal(err)
	}
}

// Update changes attributes of a record. A nil value removes the attribute.
func (w *World) Update(key string, changes map[string]types.AttributeValue) {
	w.T.Helper()
	item := w.Item(key)
	for name, v := range changes {
		if v == nil {
			delete(item, name)
		} else {
			item[name] = v
		}
	}
	w.Put(item)
}

// Suspend marks the queue in a key's record as suspended for the duration d. Waiters that read the
// record do not join the queue in this time.
func (w *World) Suspend(key string, d time.Duration) {
	w.T.Helper()
	w.Update(key, map[string]types.AttributeValue{
		"noQueueUntil": &types.AttributeValueMemberN{Value: strconv.FormatInt(time.Now().Add(d).UnixMilli(), 10)},
	})
}

// Delete deletes the item of a key unconditionally.
func (w *World) Delete(key string) {
	w.T.Helper()
	if _, err := w.DB.DeleteItem(w.T.Context(), &dynamodb.DeleteItemInput{TableName: aws.String("locks"), Key: Key(key)}); err != nil {
		w.T.Fatal(err)
	}
}

// Key returns the primary key of a lock's record, in the form that the SDK expects.
func Key(key string) map[string]types.AttributeValue {
	return map[string]types.AttributeValue{"key": Str(key)}
}

// Str returns a string attribute value.
func Str(s string) types.AttributeValue { return &types.AttributeValueMemberS{Value: s} }

// Num returns a number attribute value.
func Num(s string) types.AttributeValue { return &types.AttributeValueMemberN{Value: s} }

// Text returns the value of a string attribute, or "" if the item has no such attribute.
func Text(item map[string]types.AttributeValue, name string) string {
	if s, ok := item[name].(*types.AttributeValueMemberS); ok {
		return s.Value
	}
	return ""
}

// Number returns the value of a number attribute, or "" if the item has no such attribute.
func Number(item map[string]types.AttributeValue, name string) string {
	if n, ok := item[name].(*types.AttributeValueMemberN); ok {
		return n.Value
	}
	return ""
}

// HeldAmong reads the record of each given key, and returns the keys that are held.
func (w *World) HeldAmong(keys []leasehold.Key) []string {
	var held []string
	for _, key := range keys {
		if item := w.Item(key.Partition); item != nil && Text(item, "isReleased") == "" {
			held = append(held, key.Partition)
		}
	}
	return held
}

// Steal changes the record of key so that another client is the holder. It does so even if the old
// holder still trusts its lock.
func (w *World) Steal(key string) {
	w.T.Helper()
	w.Update(key, map[string]types.AttributeValue{
		"ownerName": Str("thief/00000000000000000000000000000000"), "grantId": Str("theirs"), "recordVersionNumber": Str("theirs"),
		"fencingToken": Num("9000000000000000"),
	})
}

// MarkDead marks a session as dead, as a client does after it has observed that the session is not
// renewed. The parameter "row" is the key of the session's row.
func (w *World) MarkDead(row string) {
	w.T.Helper()
	w.Update(row, map[string]types.AttributeValue{"dead": Str("1"), "recordVersionNumber": Str("v")})
}
