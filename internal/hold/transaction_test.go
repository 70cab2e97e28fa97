package hold_test

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/lab"
)

func TestInvalidCommitIsRejectedBeforeAnyRequest(t *testing.T) {
	put := func(table string, item map[string]types.AttributeValue) types.TransactWriteItem {
		return types.TransactWriteItem{Put: &types.Put{TableName: aws.String(table), Item: item}}
	}
	both := lab.Note("a", "1")
	both.Delete = &types.Delete{TableName: aws.String("work"), Key: lab.WorkKey("b")}
	own := map[string]types.AttributeValue{"key": lab.Str("job"), "x": lab.Str("y")}
	const arn = "arn:aws:dynamodb:eu-west-1:123456789012:table/locks"
	lab.Each(t, map[string][]types.TransactWriteItem{
		"a hundred writes":       slices.Repeat(lab.Writes(lab.Note("a", "1")), 100),
		"no operation":           lab.Writes(lab.Note("a", "1"), types.TransactWriteItem{}),
		"two operations":         lab.Writes(both),
		"a put of the own row":   lab.Writes(put("locks", own)),
		"by ARN":                 lab.Writes(put(arn, own)),
		"an update of the own":   lab.Writes(types.TransactWriteItem{Update: &types.Update{TableName: aws.String("locks"), Key: lab.Key("job"), UpdateExpression: aws.String("SET x = :y")}}),
		"a delete of the own":    lab.Writes(types.TransactWriteItem{Delete: &types.Delete{TableName: aws.String("locks"), Key: lab.Key("job")}}),
		"a check of the own row": lab.Writes(types.TransactWriteItem{ConditionCheck: &types.ConditionCheck{TableName: aws.String("locks"), Key: lab.Key("job"), ConditionExpression: aws.String("attribute_exists(x)")}}),
	}, func(t *testing.T, w *lab.World, refused []types.TransactWriteItem) {
		_, wire, lock := w.Work().Holding(lab.Config())
		wire.Sent()
		lab.WantText(t, "commit", lock.Commit(t.Context(), refused), "job")
		lab.Want(t, "requests", len(wire.Sent()), 0)
		lab.WantErr(t, "lock", lock.Err(), nil)
		w.Release(lock)
	})
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		_, _, lock := w.Work().Holding(lab.Config())
		// This write is allowed: the key of its item is not the key of the lock.
		many := lab.Writes(put("locks", map[string]types.AttributeValue{"key": lab.Str("other"), "x": lab.Str("y")}))
		for i := range 98 {
			many = append(many, lab.Note(fmt.Sprint(i), "1"))
		}
		lab.WantErr(t, "99 writes", lock.Commit(t.Context(), many), nil)
		w.Release(lock)
	})
}

func TestCommitNamesNewHolderIfRejectionOmitsRecord(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		_, wire, lock := w.Work().Holding(lab.Config())
		w.Steal("job")
		wire.SetFault(lab.Respond(lab.Call.Commits, func() *http.Response { return lab.Cancellation("None", "ConditionalCheckFailed") }))
		var lost *leasehold.LostError
		if err := lock.Commit(t.Context(), lab.Writes(lab.Note("a", "1"))); !errors.As(err, &lost) || lost.Reason != leasehold.LostReplaced || lost.By == nil {
			t.Errorf("commit: %v", err)
		}
	})
}
