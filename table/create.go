package table

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/attempts"
	"github.com/leasehold-go/leasehold/internal/protocol"
	"github.com/leasehold-go/leasehold/internal/visible"
)

// createTimeout is the maximum wait for a new table. DynamoDB usually takes a few seconds.
const createTimeout = 5 * time.Minute

// Create creates the table, waits until it is active and turns on TTL. If the table exists and fits
// the spec, Create only turns TTL on. If the table does not fit, Create changes nothing, and its
// error lists the fatal problems (see Check). Concurrent calls for one table are allowed.
func Create(ctx context.Context, db DB, spec Spec) error {
	want, err := spec.complete()
	if err != nil {
		return err
	}
	found, err := describe(ctx, db, spec.Name)
	if errors.Is(err, leasehold.ErrTableNotFound) {
		_, err = db.CreateTable(ctx, spec.request(want), attempts.Bounded)
		// Another caller may have created the table after the check above.
		if exists := (*types.ResourceInUseException)(nil); err != nil && !errors.As(err, &exists) {
			return fmt.Errorf("table: create %s: %w", spec.Name, visible.Error(err))
		}
	} else if err != nil {
		return err
	}
	if found == nil || found.TableStatus == types.TableStatusCreating {
		if found, err = wait(ctx, db, spec.Name); err != nil {
			return err
		}
	}
	// Check the table before turning on TTL. A table that does not fit is probably not a lock table,
	// and DynamoDB would delete its items if they have the TTL attribute.
	var fatal []string
	for _, p := range append(checkStatus(found), checkKeys(found, spec, want)...) { // all these problems are fatal
		fatal = append(fatal, visible.Line(p.What))
	}
	if len(fatal) > 0 {
		return fmt.Errorf("table: %s does not fit: %s", spec.Name, strings.Join(fatal, "; "))
	}
	if want.TTL == "" || isStrong(found) {
		return nil
	}
	return turnTTLOn(ctx, db, spec.Name, want.TTL)
}

func (s Spec) request(want protocol.Schema) *dynamodb.CreateTableInput {
	in := &dynamodb.CreateTableInput{
		TableName:            aws.String(s.Name),
		BillingMode:          types.BillingModePayPerRequest,
		KeySchema:            []types.KeySchemaElement{{AttributeName: aws.String(want.Partition), KeyType: types.KeyTypeHash}},
		AttributeDefinitions: []types.AttributeDefinition{{AttributeName: aws.String(want.Partition), AttributeType: types.ScalarAttributeTypeS}},
	}
	if want.Sort != "" {
		in.KeySchema = append(in.KeySchema, types.KeySchemaElement{AttributeName: aws.String(want.Sort), KeyType: types.KeyTypeRange})
		in.AttributeDefinitions = append(in.AttributeDefinitions,
			types.AttributeDefinition{AttributeName: aws.String(want.Sort), AttributeType: sortType(want)})
	}
	if s.ReadUnits > 0 {
		in.BillingMode = types.BillingModeProvisioned
		in.ProvisionedThroughput = &types.ProvisionedThroughput{ReadCapacityUnits: aws.Int64(s.ReadUnits), WriteCapacityUnits: aws.Int64(s.WriteUnits)}
	}
	if s.DeletionProtection {
		in.DeletionProtectionEnabled = aws.Bool(true)
	}
	for _, name := range slices.Sorted(maps.Keys(s.Tags)) {
		in.Tags = append(in.Tags, types.Tag{Key: aws.String(name), Value: aws.String(s.Tags[name])})
	}
	return in
}

func sortType(s protocol.Schema) types.ScalarAttributeType {
	if s.SortNumber {
		return types.ScalarAttributeTypeN
	}
	return types.ScalarAttributeTypeS
}

func wait(ctx context.Context, db DB, name string) (*types.TableDescription, error) {
	waiter := dynamodb.NewTableExistsWaiter(db, func(o *dynamodb.TableExistsWaiterOptions) {
		o.MinDelay, o.MaxDelay = 250*time.Millisecond, 5*time.Second
		o.ClientOptions = append(o.ClientOptions, attempts.Bounded)
	})
	out, err := waiter.WaitForOutput(ctx, &dynamodb.DescribeTableInput{TableName: aws.String(name)}, createTimeout)
	if err != nil {
		return nil, fmt.Errorf("table: waiting for %s to become active: %w", name, visible.Error(err))
	}
	return out.Table, nil
}

// turnTTLOn turns on TTL for the attribute. If TTL is already on, even for another attribute,
// turnTTLOn changes nothing. Check reports TTL for another attribute as a problem.
func turnTTLOn(ctx context.Context, db DB, name, attribute string) error {
	isOn := func() (bool, error) {
		ttl, err := describeTTL(ctx, db, name)
		return ttlIsOn(ttl), err
	}
	if on, err := isOn(); on || err != nil {
		return err
	}
	_, refused := db.UpdateTimeToLive(ctx, &dynamodb.UpdateTimeToLiveInput{
		TableName: aws.String(name),
		TimeToLiveSpecification: &types.TimeToLiveSpecification{
			AttributeName: aws.String(attribute), Enabled: aws.Bool(true),
		},
	}, attempts.Bounded)
	if refused == nil {
		return nil
	}
	// DynamoDB refuses to turn on TTL if it is already on. So the error does not matter if
	// another caller has turned on TTL in the meantime.
	if on, err := isOn(); on && err == nil {
		return nil
	}
	return fmt.Errorf("table: turn on TTL of %s for %q: %w", name, attribute, visible.Error(refused))
}
