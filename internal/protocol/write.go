package protocol

import (
	"slices"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// Write is one conditional write of a lock record: an update, a delete, or a condition check that
// changes nothing. It uses placeholders for all attribute names, because some are reserved words of
// DynamoDB. Package records builds the writes.
type Write struct {
	key       Item
	verb      verb
	set       strings.Builder // SET clause of the update expression; "remove" is the REMOVE clause
	remove    strings.Builder
	condition string
	names     []string // attribute names; the index of a name is the number in its placeholder
	values    Item     // values by placeholder; nil if the write has no values, because DynamoDB refuses an empty map
}

type verb int

const (
	update verb = iota
	remove
	check
)

// Initial capacities in a Write: of its list of names, and of its clauses. They usually suffice.
const (
	usualOperands = 16  // number of attribute names, and number of values
	usualClause   = 128 // bytes in the SET clause, and in the REMOVE clause
)

// NewUpdate returns an update of the record with the given key attributes.
func NewUpdate(key Item) *Write { return newWrite(update, key) }

// NewDelete returns a delete of the record with the given key attributes.
func NewDelete(key Item) *Write { return newWrite(remove, key) }

// NewCheck returns a condition check of the record with the given key attributes. It can be
// sent only in a transaction.
func NewCheck(key Item) *Write { return newWrite(check, key) }

func newWrite(verb verb, key Item) *Write {
	return &Write{key: key, verb: verb, names: make([]string, 0, usualOperands)}
}

// Name returns the placeholder for an attribute name in expressions of w.
func (w *Write) Name(name string) string {
	n := slices.Index(w.names, name)
	if n < 0 {
		n = len(w.names)
		w.names = append(w.names, name)
	}
	return ofNames.at(n)
}

// Value returns a new placeholder for the value v in expressions of w.
func (w *Write) Value(v types.AttributeValue) string {
	if w.values == nil {
		w.values = Item{}
	}
	placeholder := ofValues.at(len(w.values))
	w.values[placeholder] = v
	return placeholder
}

// placeholders is the source of the placeholders with one prefix, such as #0 and #1. It contains
// the first few, so that most writes need not format any.
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

// The method "at" returns the placeholder with the number n.
func (p *placeholders) at(n int) string {
	if n < len(p.ready) {
		return p.ready[n]
	}
	return p.prefix + strconv.Itoa(n)
}

// Text returns a new placeholder for the string value s in expressions of w.
func (w *Write) Text(s string) string { return w.Value(&types.AttributeValueMemberS{Value: s}) }

// Set makes the update assign the value v to the attribute with the given name.
func (w *Write) Set(name string, v types.AttributeValue) { w.SetTo(name, w.Value(v)) }

// SetTo makes the update assign the value of an operand to the attribute with the given name.
// The operand has the syntax of update expressions.
func (w *Write) SetTo(name, operand string) { w.SetPath(w.Name(name), operand) }

// Remove makes the update remove the attribute with the given name.
func (w *Write) Remove(name string) { w.RemovePath(w.Name(name)) }

// Path returns the path to an attribute inside a map, with a placeholder for each of the two names.
func (w *Write) Path(inMap, name string) string { return w.Name(inMap) + "." + w.Name(name) }

// SetPath makes the update assign the value of an operand to the attribute at the given path.
// DynamoDB rejects the update if a map in the path does not exist.
func (w *Write) SetPath(path, operand string) { add(&w.set, "SET ", path, " = ", operand) }

// RemovePath makes the update remove the attribute at the given path. DynamoDB rejects the
// update if a map in the path does not exist.
func (w *Write) RemovePath(path string) { add(&w.remove, "REMOVE ", path) }

// add appends an action to a clause of an update expression. If the clause is empty, add
// writes the keyword before the action.
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

// Where sets the condition of the write.
func (w *Write) Where(condition string) { w.condition = condition }

// AndWhere adds a condition: DynamoDB applies the write only if both the earlier condition
// and this condition are true.
func (w *Write) AndWhere(condition string) { w.condition = "(" + w.condition + ") AND " + condition }

// In returns the condition that the attribute with the given name has one of the values. If
// there are no values, In returns a condition that is never true.
func (w *Write) In(name string, values []string) string {
	n := w.Name(name)
	if len(values) == 0 {
		// This condition is always false, whether or not the attribute exists, and whatever
		// its type.
		return "attribute_exists(" + n + ") AND attribute_not_exists(" + n + ")"
	}
	placeholders := make([]string, len(values))
	for i, v := range values {
		placeholders[i] = w.Text(v)
	}
	return n + " IN (" + strings.Join(placeholders, ", ") + ")"
}

// IsDelete reports whether the write is a DeleteItem.
func (w *Write) IsDelete() bool { return w.verb == remove }

// named returns a map from each placeholder to its attribute name. The map is never empty, as every
// condition contains a name.
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

// UpdateItem returns the write as an UpdateItem request. DynamoDB's answer contains the new
// item or, if the condition failed, the old item.
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

// DeleteItem returns the write as a DeleteItem request. DynamoDB's answer contains the old
// item if the condition failed.
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

// TransactItem returns the write as one item of a TransactWriteItems request. If the condition
// of the write failed, the cancellation reason for the item contains the old item.
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
