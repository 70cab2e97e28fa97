package decide

import (
	"errors"
	"slices"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"
)

func cancelled(codes ...string) error {
	e := &types.TransactionCanceledException{}
	for _, code := range codes {
		e.CancellationReasons = append(e.CancellationReasons, types.CancellationReason{Code: aws.String(code)})
	}
	return response(400, e)
}

func TestCancelledTransactionIsClassifiedByMostSevereReason(t *testing.T) {
	for _, tc := range []struct {
		name   string
		err    error
		effect Effect
		cause  Cause
		causes []Cause
	}{
		{"success", nil, Applied, None, nil},
		{"a failed condition", cancelled("None", "ConditionalCheckFailed"), NotApplied, ConditionFailed, []Cause{None, ConditionFailed}},
		{"a conflict", cancelled("TransactionConflict", "None"), NotApplied, Conflict, []Cause{Conflict, None}},
		{"throttling", cancelled("ThrottlingError"), NotApplied, Busy, []Cause{Busy}},
		{"provisioned throughput", cancelled("None", "ProvisionedThroughputExceeded"), NotApplied, Busy, []Cause{None, Busy}},
		{"a failed condition beside a conflict", cancelled("TransactionConflict", "ConditionalCheckFailed"), NotApplied, ConditionFailed, []Cause{Conflict, ConditionFailed}},
		{"a conflict beside throttling", cancelled("ThrottlingError", "TransactionConflict"), NotApplied, Conflict, []Cause{Busy, Conflict}},
		{"what never fits", cancelled("ConditionalCheckFailed", "ValidationError"), NotApplied, Refused, []Cause{ConditionFailed, Refused}},
		{"a collection that is full", cancelled("ItemCollectionSizeLimitExceeded"), NotApplied, Refused, []Cause{Refused}},
		{"a code of later years", cancelled("SomethingNew"), NotApplied, Refused, []Cause{Refused}},
		{"no reason named", cancelled(), NotApplied, Busy, nil},
		{"no reason but None", cancelled("None"), NotApplied, Busy, []Cause{None}},
		{"a copy of the request is under way", response(400, &types.TransactionInProgressException{}), Unknown, Unreachable, nil},
		{"another request with its token", response(400, &types.IdempotentParameterMismatchException{}), NotApplied, Refused, nil},
		{"throttled as a whole", response(400, &smithy.GenericAPIError{Code: "ThrottlingException"}), NotApplied, Busy, nil},
		{"internal error", response(500, &types.InternalServerError{}), Unknown, Unreachable, nil},
		{"no reply", errors.New("reset"), Unknown, Unreachable, nil},
	} {
		got := ClassifyTransaction(tc.err)
		var causes []Cause
		for _, r := range got.Reasons {
			causes = append(causes, r.Cause)
		}
		if got.Effect != tc.effect || got.Cause != tc.cause || !slices.Equal(causes, tc.causes) {
			t.Errorf("%s: effect %v cause %v reasons %v, want %v %v %v", tc.name, got.Effect, got.Cause, causes, tc.effect, tc.cause, tc.causes)
		}
	}
}

func TestTransactionErrorShowsItemOfFailedCondition(t *testing.T) {
	old := map[string]types.AttributeValue{"key": &types.AttributeValueMemberS{Value: "a"}}
	got := ClassifyTransaction(response(400, &types.TransactionCanceledException{CancellationReasons: []types.CancellationReason{
		{Code: aws.String("None")}, {Code: aws.String("ConditionalCheckFailed"), Item: old},
	}}))
	if len(got.Reasons) != 2 || got.Reasons[0].Old != nil || got.Reasons[1].Old == nil {
		t.Errorf("reasons %+v", got.Reasons)
	}
}
