package cli

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/protocol"
	"github.com/leasehold-go/leasehold/layout"
	"github.com/leasehold-go/leasehold/localdynamo"
	"github.com/leasehold-go/leasehold/table"
)

func TestALockWhoseSessionsRowIsGoneIsNotObservedForTheHourInItsRecord(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := t.Context()
		db := localdynamo.New().Client()
		if err := table.Create(ctx, db, table.Spec{Name: "locks"}); err != nil {
			t.Fatal(err)
		}
		holder, err := leasehold.New(db, leasehold.Config{Table: "locks", SharedLease: true})
		if err != nil {
			t.Fatal(err)
		}
		lock, err := holder.Acquire(ctx, "job")
		if err != nil {
			t.Fatal(err)
		}
		locks, err := leasehold.New(db, leasehold.Config{Table: "locks"})
		if err != nil {
			t.Fatal(err)
		}
		o, err := newObserver(&store{db: db, table: "locks", layout: layout.Native{}}, locks)
		if err != nil {
			t.Fatal(err)
		}
		row := map[string]types.AttributeValue{"key": &types.AttributeValueMemberS{Value: "leasehold/session/" + protocol.ClientID(lock.Record().Owner)}}
		if _, err := db.DeleteItem(ctx, &dynamodb.DeleteItemInput{TableName: aws.String("locks"), Key: row}); err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		found := o.observe(ctx, []leasehold.Record{lock.Record()})[0]
		if took := time.Since(began); found.liveness != dead || !found.heartbeat.shared || took < 20*time.Second || took > 21*time.Second {
			t.Errorf("found %q by %+v after %v", found.liveness, found.heartbeat, took)
		}
		_ = holder.Close(context.WithoutCancel(ctx))
	})
}
