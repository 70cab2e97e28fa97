package cli

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/protocol"
)

func TestALockWhoseSessionsRowIsGoneIsNotObservedForTheHourInItsRecord(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := t.Context()
		o := newChecked(t, leasehold.Config{SharedLease: true})
		lock := o.acquire("job")
		row := map[string]types.AttributeValue{"key": &types.AttributeValueMemberS{Value: "leasehold/session/" + protocol.ClientID(lock.Record().Owner)}}
		if _, err := o.db.DeleteItem(ctx, &dynamodb.DeleteItemInput{TableName: aws.String("locks"), Key: row}); err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		found := o.observe(ctx, []leasehold.Record{lock.Record()})[0]
		if took := time.Since(began); found.liveness != dead || !found.heartbeat.shared || took < 20*time.Second || took > 21*time.Second {
			t.Errorf("found %q by %+v after %v", found.liveness, found.heartbeat, took)
		}
		o.close()
	})
}
