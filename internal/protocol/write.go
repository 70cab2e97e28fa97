package protocol

import (
	"slices"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// Write is one conditional write of a lock record: an update, a delete, or a condition
// check that changes nothing. Every attribute name has a placeholder, because some of the
// peers' names are reserved words. Package records makes the write of each operation.
type Write struct {
	key       Item
	verb      verb
	set       strings.Builder // clauses of the update expression
	remove    strings.Builder
	condition string
	names     []string // attribute names, by the number of their placeholder
	values    Item     // values by placeholder; nil if there are none, because DynamoDB refuses an empty map
}

type verb int

const (
	update verb = iota
	remove
	check
)

// These capacities are enough for most writes, so that no clause or slice has to grow.
const (
	usualOperands = 16  // number of names, or of values
	usualClause   = 128 // bytes of a clause
)

// NewUpdate returns an update of the record with that key.
func NewUpdate(key Item) *Write { return newWrite(update, key) }

// NewDelete returns a delete of the record with that key.
func NewDelete(key Item) *Write { return newWrite(remove, key) }

// NewCheck returns a condition check of the record with that key. It can only be
// sent in a transaction.
func NewCheck(key Item) *Write { return newWrite(check, key) }

func newWrite(verb verb, key Item) *Write {
	return &Write{key: key, verb: verb, names: make([]string, 0, usualOperands)}
}

// Name returns the placeholder of an attribute name.
func (w *Write) Name(name string) string {
	n := slices.Index(w.names, name)
	if n < 0 {
		n = len(w.names)
		w.names = append(w.names, name)
	}
	return ofNames.at(n)
}

// Value returns a placeholder for v.
func (w *Write) Value(v types.AttributeValue) string {
	if w.values == nil {
		w.values = Item{}
	}
	placeholder := ofValues.at(len(w.values))
	w.values[placeholder] = v
	return placeholder
}

// placeholders holds the placeholders of the numbers that most writes use. They are made
// only once.
type placeholders struct {
	prefix string
	ready  [usualOperands]string
}

var ofNames, ofValues = newPlaceholders("#"), newPlaceholders(":")

func newPlaceholders(prefix string) *placeholders {
	p := &placeholders{prefix: prefix}
	for n := range p.ready {
		p.ready[n] = prefix + strconv.Itoa(n)
	}
	return p
}

// at returns the placeholder of number n.
func (p *placeholders) at(n int) string {
	if n < len(p.ready) {
		return p.ready[n]
	}
	return p.prefix + strconv.Itoa(n)
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
		clause.Grow(usualClause)
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
		// This condition is false for an attribute of any type, even in a damaged record.
		n := w.Name(name)
		return "attribute_exists(" + n + ") AND attribute_not_exists(" + n + ")"
	}
	return w.PathIn(w.Name(name), values)
}

// PathIn returns the condition that the attribute at a path has one of the values. There
// must be at least one value.
func (w *Write) PathIn(path string, values []string) string {
	placeholders := make([]string, len(values))
	for i, v := range values {
		placeholders[i] = w.Text(v)
	}
	return path + " IN (" + strings.Join(placeholders, ", ") + ")"
}

// IsDelete reports whether the write is a DeleteItem.
func (w *Write) IsDelete() bool { return w.verb == remove }

// named returns the names by placeholder. There is at least one: the condition contains a
// name.
func (w *Write) named() map[string]string {
	named := make(map[string]string, len(w.names))
	for n, name := range w.names {
		named[ofNames.at(n)] = name
	}
	return named
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
		ConditionExpression:                 &w.condition,
		ExpressionAttributeNames:            w.named(),
		ExpressionAttributeValues:           w.values,
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
		ConditionExpression:                 &w.condition,
		ExpressionAttributeNames:            w.named(),
		ExpressionAttributeValues:           w.values,
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
			TableName: aws.String(table), Key: w.key, ConditionExpression: &w.condition,
			ExpressionAttributeNames: w.named(), ExpressionAttributeValues: w.values, ReturnValuesOnConditionCheckFailure: old,
		}}
	case check:
		return types.TransactWriteItem{ConditionCheck: &types.ConditionCheck{
			TableName: aws.String(table), Key: w.key, ConditionExpression: &w.condition,
			ExpressionAttributeNames: w.named(), ExpressionAttributeValues: w.values, ReturnValuesOnConditionCheckFailure: old,
		}}
	default:
		return types.TransactWriteItem{Update: &types.Update{
			TableName: aws.String(table), Key: w.key, UpdateExpression: w.expression(), ConditionExpression: &w.condition,
			ExpressionAttributeNames: w.named(), ExpressionAttributeValues: w.values, ReturnValuesOnConditionCheckFailure: old,
		}}
	}
}
