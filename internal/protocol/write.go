package protocol

import (
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// Write is one conditional write of a lock record: an update, a delete, or a
// condition check that changes nothing. Every attribute name has a placeholder,
// because some of the peers' names are reserved words. What each operation writes is in
// package records.
type Write struct {
	key       Item
	verb      verb
	set       strings.Builder // clauses of the update expression
	remove    strings.Builder
	condition string
	names     map[string]string // by placeholder
	values    Item
}

type verb int

const (
	update verb = iota
	remove
	check
)

// NewUpdate returns an update of the record with that key.
func NewUpdate(key Item) *Write {
	return &Write{key: key, names: map[string]string{}, values: Item{}}
}

// NewDelete returns a delete of the record with that key.
func NewDelete(key Item) *Write {
	w := NewUpdate(key)
	w.verb = remove
	return w
}

// NewCheck returns a condition check of the record with that key. It can only be
// sent in a transaction.
func NewCheck(key Item) *Write {
	w := NewUpdate(key)
	w.verb = check
	return w
}

// Name returns the placeholder of an attribute name.
func (w *Write) Name(name string) string {
	for p, named := range w.names {
		if named == name {
			return p
		}
	}
	p := "#" + strconv.Itoa(len(w.names))
	w.names[p] = name
	return p
}

// Value returns a placeholder for v.
func (w *Write) Value(v types.AttributeValue) string {
	p := ":" + strconv.Itoa(len(w.values))
	w.values[p] = v
	return p
}

// Text returns a placeholder for a string.
func (w *Write) Text(s string) string { return w.Value(&types.AttributeValueMemberS{Value: s}) }

// Set sets an attribute.
func (w *Write) Set(name string, v types.AttributeValue) { w.SetTo(name, w.Value(v)) }

// SetTo sets an attribute to an operand of an update expression.
func (w *Write) SetTo(name, operand string) { w.SetPath(w.Name(name), operand) }

// Remove removes an attribute.
func (w *Write) Remove(name string) { w.RemovePath(w.Name(name)) }

// Path returns the path of an attribute inside maps.
func (w *Write) Path(names ...string) string {
	placeholders := make([]string, len(names))
	for i, name := range names {
		placeholders[i] = w.Name(name)
	}
	return strings.Join(placeholders, ".")
}

// SetPath sets the attribute at a path to an operand of an update expression. The
// map around it must exist.
func (w *Write) SetPath(path, operand string) { add(&w.set, "SET ", path, " = ", operand) }

// RemovePath removes the attribute at a path. The map around it must exist.
func (w *Write) RemovePath(path string) { add(&w.remove, "REMOVE ", path) }

// add adds an action to a clause of an update expression.
func add(clause *strings.Builder, keyword string, action ...string) {
	if clause.Len() == 0 {
		clause.WriteString(keyword)
	} else {
		clause.WriteString(", ")
	}
	for _, part := range action {
		clause.WriteString(part)
	}
}

// Where sets the condition.
func (w *Write) Where(condition string) { w.condition = condition }

// AndWhere adds to the condition.
func (w *Write) AndWhere(condition string) { w.condition = "(" + w.condition + ") AND " + condition }

// In returns the condition that the attribute has one of the values. Without
// values, it returns a condition that never holds.
func (w *Write) In(name string, values []string) string {
	if len(values) == 0 {
		// This never holds for an attribute of any type, even in a damaged record.
		n := w.Name(name)
		return "attribute_exists(" + n + ") AND attribute_not_exists(" + n + ")"
	}
	return w.PathIn(w.Name(name), values)
}

// PathIn returns the condition that the attribute at a path has one of the values.
// There must be at least one.
func (w *Write) PathIn(path string, values []string) string {
	operands := make([]string, len(values))
	for i, v := range values {
		operands[i] = w.Text(v)
	}
	return path + " IN (" + strings.Join(operands, ", ") + ")"
}

// IsDelete reports whether the write is a DeleteItem.
func (w *Write) IsDelete() bool { return w.verb == remove }

// Key returns the key written to.
func (w *Write) Key() Item { return w.key }

// operands are the values by placeholder; nil if there are none: DynamoDB refuses an
// empty map.
func (w *Write) operands() Item {
	if len(w.values) == 0 {
		return nil
	}
	return w.values
}

func (w *Write) expression() *string {
	return aws.String(strings.TrimSpace(w.set.String() + " " + w.remove.String()))
}

// UpdateItem returns the request. Its answer contains the new item or, if the
// condition failed, the old one.
func (w *Write) UpdateItem(table string) *dynamodb.UpdateItemInput {
	return &dynamodb.UpdateItemInput{
		TableName:                           aws.String(table),
		Key:                                 w.key,
		UpdateExpression:                    w.expression(),
		ConditionExpression:                 aws.String(w.condition),
		ExpressionAttributeNames:            w.names,
		ExpressionAttributeValues:           w.operands(),
		ReturnValues:                        types.ReturnValueAllNew,
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	}
}

// DeleteItem returns the request. Its answer contains the old item if the
// condition failed.
func (w *Write) DeleteItem(table string) *dynamodb.DeleteItemInput {
	return &dynamodb.DeleteItemInput{
		TableName:                           aws.String(table),
		Key:                                 w.key,
		ConditionExpression:                 aws.String(w.condition),
		ExpressionAttributeNames:            w.names,
		ExpressionAttributeValues:           w.operands(),
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	}
}

// TransactItem returns the write as part of a transaction. Its cancellation reason
// contains the old item if the condition failed.
func (w *Write) TransactItem(table string) types.TransactWriteItem {
	const old = types.ReturnValuesOnConditionCheckFailureAllOld
	switch w.verb {
	case remove:
		return types.TransactWriteItem{Delete: &types.Delete{
			TableName: aws.String(table), Key: w.key, ConditionExpression: aws.String(w.condition),
			ExpressionAttributeNames: w.names, ExpressionAttributeValues: w.operands(), ReturnValuesOnConditionCheckFailure: old,
		}}
	case check:
		return types.TransactWriteItem{ConditionCheck: &types.ConditionCheck{
			TableName: aws.String(table), Key: w.key, ConditionExpression: aws.String(w.condition),
			ExpressionAttributeNames: w.names, ExpressionAttributeValues: w.operands(), ReturnValuesOnConditionCheckFailure: old,
		}}
	default:
		return types.TransactWriteItem{Update: &types.Update{
			TableName: aws.String(table), Key: w.key, UpdateExpression: w.expression(), ConditionExpression: aws.String(w.condition),
			ExpressionAttributeNames: w.names, ExpressionAttributeValues: w.operands(), ReturnValuesOnConditionCheckFailure: old,
		}}
	}
}
