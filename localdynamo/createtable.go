package localdynamo

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"slices"
	"time"
)

type keySchema struct{ AttributeName, KeyType string }

type attributeDefinition struct{ AttributeName, AttributeType string }

type throughput struct{ ReadCapacityUnits, WriteCapacityUnits int64 }

type tag struct{ Key, Value string }

type createTableInput struct {
	TableName                 string
	AttributeDefinitions      []attributeDefinition
	KeySchema                 []keySchema
	BillingMode               string
	ProvisionedThroughput     *throughput
	TableClass                string
	DeletionProtectionEnabled bool
	Tags                      []tag
	GlobalSecondaryIndexes    []json.RawMessage
	LocalSecondaryIndexes     []json.RawMessage
	StreamSpecification       struct{ StreamEnabled bool }
}

// createTable implements CreateTable. The new table is ACTIVE immediately.
func (e *Engine) createTable(ctx context.Context, body string) ([]byte, error) {
	var in createTableInput
	if err := readInput(body, &in); err != nil {
		return nil, err
	}
	t, err := newTable(&in)
	if err != nil {
		return nil, err
	}
	err = e.change(ctx, func(tx Tx) error {
		if tx.Get(tableKey(t.Name)) != nil {
			return newError(typeInUse, "Table already exists: "+t.Name)
		}
		return t.save(tx)
	})
	if err != nil {
		return nil, err
	}
	return encode(map[string]any{"TableDescription": t.describe(0, 0)}), nil
}

func newTable(in *createTableInput) (*table, error) {
	if err := checkTableName(in.TableName); err != nil {
		return nil, err
	}
	switch {
	case len(in.GlobalSecondaryIndexes)+len(in.LocalSecondaryIndexes) > 0:
		return nil, invalid("localdynamo does not support secondary indexes: create the table without them, or use DynamoDB Local")
	case in.StreamSpecification.StreamEnabled:
		return nil, invalid("localdynamo does not support streams: create the table without one, or use DynamoDB Local")
	}
	t := &table{
		Name:      in.TableName,
		ID:        rand.Text(),
		Created:   time.Now(),
		Class:     in.TableClass,
		Protected: in.DeletionProtectionEnabled,
	}
	if err := t.setKey(in.KeySchema, in.AttributeDefinitions); err != nil {
		return nil, err
	}
	if err := t.setBilling(in.BillingMode, in.ProvisionedThroughput); err != nil {
		return nil, err
	}
	for _, tag := range in.Tags {
		t.setTag(tag)
	}
	return t, nil
}

// setKey sets the table's key attributes from "schema", and their types from "definitions".
func (t *table) setKey(schema []keySchema, definitions []attributeDefinition) error {
	if len(schema) == 0 || len(schema) > 2 {
		return invalidf("1 validation error detected: Value at 'keySchema' failed to satisfy constraint: Member must have length between 1 and 2, not %d", len(schema))
	}
	if schema[0].KeyType != "HASH" {
		return invalid("Invalid KeySchema: The first KeySchemaElement is not a HASH key type")
	}
	if len(schema) == 2 && schema[1].KeyType != "RANGE" {
		return invalid("Invalid KeySchema: The second KeySchemaElement is not a RANGE key type")
	}
	if len(schema) == 2 && schema[0].AttributeName == schema[1].AttributeName {
		return invalid("Both the Hash Key and the Range Key element in the KeySchema have the same name")
	}
	for i, element := range schema {
		at := slices.IndexFunc(definitions, func(d attributeDefinition) bool { return d.AttributeName == element.AttributeName })
		if at < 0 {
			return invalidf("One or more parameter values were invalid: Some index key attributes are not defined in AttributeDefinitions. Keys: [%s], AttributeDefinitions: %s",
				element.AttributeName, definedNames(definitions))
		}
		key := keyAttribute{element.AttributeName, definitions[at].AttributeType}
		if key.Type != "S" && key.Type != "N" && key.Type != "B" {
			return notOneOf("attributeDefinitions.1.member.attributeType", key.Type, "[B, N, S]")
		}
		if i == 0 {
			t.Hash = key
		} else {
			t.Range = &key
		}
	}
	if len(definitions) != len(schema) {
		return invalid("One or more parameter values were invalid: Number of attributes in KeySchema does not exactly match number of attributes defined in AttributeDefinitions")
	}
	return nil
}

func definedNames(definitions []attributeDefinition) string {
	names := "["
	for i, d := range definitions {
		if i > 0 {
			names += ", "
		}
		names += d.AttributeName
	}
	return names + "]"
}

// setBilling sets the table's billing mode. For mode PROVISIONED, it also sets the provisioned
// capacity.
func (t *table) setBilling(mode string, provisioned *throughput) error {
	switch mode {
	case "PAY_PER_REQUEST":
		if provisioned != nil && *provisioned != (throughput{}) {
			return invalid("One or more parameter values were invalid: Neither ReadCapacityUnits nor WriteCapacityUnits can be specified when BillingMode is PAY_PER_REQUEST")
		}
		t.Billing, t.ReadUnits, t.WriteUnits = mode, 0, 0
	case "", "PROVISIONED":
		if provisioned == nil || provisioned.ReadCapacityUnits < 1 || provisioned.WriteCapacityUnits < 1 {
			return invalid("One or more parameter values were invalid: ReadCapacityUnits and WriteCapacityUnits must both be specified when BillingMode is PROVISIONED")
		}
		t.Billing, t.ReadUnits, t.WriteUnits = "PROVISIONED", provisioned.ReadCapacityUnits, provisioned.WriteCapacityUnits
	default:
		return notOneOf("billingMode", mode, "[PROVISIONED, PAY_PER_REQUEST]")
	}
	return nil
}
