package localdynamo

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"time"
)

// The operations on tables use encoding/json, because they are rare and need no speed.

// readInput decodes the body of a request with encoding/json.
func readInput(body string, input any) error {
	err := json.Unmarshal([]byte(body), input)
	var wrong *json.UnmarshalTypeError
	switch {
	case errors.As(err, &wrong):
		return malformed(wrong.Field + " has the wrong type: " + wrong.Value)
	case err != nil:
		return malformed(err.Error())
	}
	return nil
}

func (t *table) setTag(tag tag) {
	if t.Tags == nil {
		t.Tags = map[string]string{}
	}
	t.Tags[tag.Key] = tag.Value
}

const arnPrefix = "arn:aws:dynamodb:local:000000000000:table/"

// describe returns the TableDescription of a table that has the given number of items, with the
// given size in bytes.
func (t *table) describe(items, size int) map[string]any {
	definitions := []attributeDefinition{}
	for _, key := range t.keyAttributes() {
		definitions = append(definitions, attributeDefinition{key.Name, key.Type})
	}
	schema := []keySchema{{t.Hash.Name, "HASH"}}
	if t.Range != nil {
		schema = append(schema, keySchema{t.Range.Name, "RANGE"})
	}
	description := map[string]any{
		"TableName":            t.Name,
		"TableId":              t.ID,
		"TableArn":             arnPrefix + t.Name,
		"TableStatus":          "ACTIVE",
		"CreationDateTime":     float64(t.Created.UnixMilli()) / 1000,
		"AttributeDefinitions": definitions,
		"KeySchema":            schema,
		"ItemCount":            items,
		"TableSizeBytes":       size,
		"ProvisionedThroughput": map[string]any{
			"ReadCapacityUnits":      t.ReadUnits,
			"WriteCapacityUnits":     t.WriteUnits,
			"NumberOfDecreasesToday": 0,
		},
		"DeletionProtectionEnabled": t.Protected,
	}
	if t.Billing == "PAY_PER_REQUEST" {
		description["BillingModeSummary"] = map[string]any{"BillingMode": t.Billing}
	}
	if t.Class != "" {
		description["TableClassSummary"] = map[string]any{"TableClass": t.Class}
	}
	return description
}

type tableInput struct{ TableName string }

// namedTable is like Engine.table, but its error for a table that does not exist contains the
// table's name.
func (e *Engine) namedTable(tx Tx, name string) (*table, error) {
	t, err := e.table(tx, name)
	var refused *apiError
	if errors.As(err, &refused) {
		return nil, newError(typeNotFound, "Requested resource not found: Table: "+name+" not found")
	}
	return t, err
}

// readTable decodes a body that contains the name of a table, and returns the description of
// that table.
func (e *Engine) readTable(ctx context.Context, body string) (*table, error) {
	var in tableInput
	if err := readInput(body, &in); err != nil {
		return nil, err
	}
	name := tableName(in.TableName)
	if err := checkTableName(name); err != nil {
		return nil, err
	}
	var t *table
	return t, e.view(ctx, func(tx Tx) (err error) {
		t, err = e.namedTable(tx, name)
		return err
	})
}

// describeTable implements DescribeTable. The item count and the size in its reply are exact.
func (e *Engine) describeTable(ctx context.Context, body string) ([]byte, error) {
	t, err := e.readTable(ctx, body)
	if err != nil {
		return nil, err
	}
	var items, size int
	err = e.view(ctx, func(tx Tx) (err error) {
		items, size, err = t.count(tx, time.Now())
		return err
	})
	if err != nil {
		return nil, err
	}
	return encode(map[string]any{"Table": t.describe(items, size)}), nil
}

// count returns the number of items in the table, and the total size of the items in bytes. It
// ignores the items that count as deleted by TTL at the time "now".
func (t *table) count(tx Tx, now time.Time) (items, size int, err error) {
	whole := appendTablePrefix(nil, prefixItem, t.Name)
	for _, stored := range tx.Range(whole, after(whole)) {
		it, err := readItem(stored)
		if err != nil {
			return 0, 0, err
		}
		if t.swept(it, now) {
			continue
		}
		items++
		size += it.size()
	}
	return items, size, nil
}

// changeTable calls fn with a copy of a table's description, in a transaction that may write. It
// returns this copy. If fn changes the copy, fn must also save it in the Store.
func (e *Engine) changeTable(ctx context.Context, name string, fn func(Tx, *table) error) (*table, error) {
	name = tableName(name)
	if err := checkTableName(name); err != nil {
		return nil, err
	}
	var changed table
	return &changed, e.change(ctx, func(tx Tx) error {
		t, err := e.namedTable(tx, name)
		if err != nil {
			return err
		}
		changed = *t
		changed.Tags = maps.Clone(t.Tags)
		return fn(tx, &changed)
	})
}

// deleteTable implements DeleteTable. It removes the table immediately.
func (e *Engine) deleteTable(ctx context.Context, body string) ([]byte, error) {
	var in tableInput
	if err := readInput(body, &in); err != nil {
		return nil, err
	}
	gone, err := e.changeTable(ctx, in.TableName, func(tx Tx, t *table) error {
		if t.Protected {
			return invalid("Resource cannot be deleted as it is currently protected against deletion. Disable deletion protection first.")
		}
		for _, prefix := range []byte{prefixItem, prefixExpiry} {
			if err := deleteAll(tx, appendTablePrefix(nil, prefix, t.Name)); err != nil {
				return err
			}
		}
		return tx.Delete(tableKey(t.Name))
	})
	if err != nil {
		return nil, err
	}
	description := gone.describe(0, 0)
	description["TableStatus"] = "DELETING"
	return encode(map[string]any{"TableDescription": description}), nil
}

// updateTable implements UpdateTable for the billing mode, the table class and deletion
// protection. The change takes effect immediately.
func (e *Engine) updateTable(ctx context.Context, body string) ([]byte, error) {
	var in struct {
		TableName                   string
		BillingMode                 string
		ProvisionedThroughput       *throughput
		TableClass                  string
		DeletionProtectionEnabled   *bool
		GlobalSecondaryIndexUpdates []json.RawMessage
		ReplicaUpdates              []json.RawMessage
		StreamSpecification         struct{ StreamEnabled bool }
	}
	if err := readInput(body, &in); err != nil {
		return nil, err
	}
	if len(in.GlobalSecondaryIndexUpdates)+len(in.ReplicaUpdates) > 0 || in.StreamSpecification.StreamEnabled {
		return nil, invalid("localdynamo does not support secondary indexes, replicas or streams: use DynamoDB Local")
	}
	t, err := e.changeTable(ctx, in.TableName, func(tx Tx, t *table) error {
		if in.BillingMode == "" && in.ProvisionedThroughput == nil && in.TableClass == "" && in.DeletionProtectionEnabled == nil {
			return invalid("At least one of ProvisionedThroughput, BillingMode, UpdateStreamEnabled, GlobalSecondaryIndexUpdates or SSESpecification or ReplicaUpdates is required")
		}
		if in.BillingMode != "" || in.ProvisionedThroughput != nil {
			mode := in.BillingMode
			if mode == "" {
				mode = t.Billing
			}
			if err := t.setBilling(mode, in.ProvisionedThroughput); err != nil {
				return err
			}
		}
		if in.TableClass != "" {
			t.Class = in.TableClass
		}
		if in.DeletionProtectionEnabled != nil {
			t.Protected = *in.DeletionProtectionEnabled
		}
		return t.save(tx)
	})
	if err != nil {
		return nil, err
	}
	return encode(map[string]any{"TableDescription": t.describe(0, 0)}), nil
}

// deleteAll deletes every Store key that begins with prefix.
func deleteAll(tx Tx, prefix []byte) error {
	var keys [][]byte
	for key := range tx.Range(prefix, after(prefix)) {
		keys = append(keys, slices.Clone(key))
	}
	for _, key := range keys {
		if err := tx.Delete(key); err != nil {
			return err
		}
	}
	return nil
}

const maxListed = 100

// listTables implements ListTables.
func (e *Engine) listTables(ctx context.Context, body string) ([]byte, error) {
	var in struct {
		ExclusiveStartTableName string
		Limit                   *int
	}
	if err := readInput(body, &in); err != nil {
		return nil, err
	}
	limit := maxListed
	if in.Limit != nil {
		limit = *in.Limit
		if limit < 1 || limit > maxListed {
			return nil, invalidf("1 validation error detected: Value '%d' at 'limit' failed to satisfy constraint: Member must have value between 1 and %d", limit, maxListed)
		}
	}
	names, last := []string{}, ""
	err := e.view(ctx, func(tx Tx) error {
		from := tableKey(in.ExclusiveStartTableName)
		if in.ExclusiveStartTableName != "" {
			from = append(from, 0)
		}
		for key := range tx.Range(from, after([]byte{prefixTable})) {
			if len(names) == limit {
				last = names[limit-1]
				return nil
			}
			names = append(names, string(key[1:]))
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	reply := map[string]any{"TableNames": names}
	if last != "" {
		reply["LastEvaluatedTableName"] = last
	}
	return encode(reply), nil
}
