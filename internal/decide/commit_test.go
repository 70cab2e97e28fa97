package decide

import (
	"errors"
	"slices"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"
)

func TestFailedCommitIsClassifiedByMostSevereReason(t *testing.T) {
	const failed, conflict = "ConditionalCheckFailed", "TransactionConflict"
	for _, tc := range []struct {
		name string
		// err is the error of a transaction with three items: two writes, and then a guard.
		err    error
		effect Effect
		cause  Cause
	}{
		{"success", nil, Applied, None},
		{"the guard fails", cancelled("None", "None", failed), NotApplied, GuardFailed},
		{"a write fails", cancelled("None", failed, "None"), NotApplied, WriteFailed},
		{"both fail", cancelled(failed, "None", failed), NotApplied, GuardFailed},
		{"a write conflicts", cancelled(conflict, "None", "None"), NotApplied, Busy},
		{"the guard conflicts", cancelled("None", "None", conflict), NotApplied, Busy},
		{"a write conflicts, the guard fails", cancelled(conflict, "None", failed), NotApplied, GuardFailed},
		{"the guard conflicts, a write fails", cancelled("None", failed, conflict), NotApplied, WriteFailed},
		{"a write is throttled", cancelled("ThrottlingError", "None", "None"), NotApplied, Busy},
		{"a table has no units left", cancelled("None", "ProvisionedThroughputExceeded", "None"), NotApplied, Busy},
		{"an item collection is full", cancelled("ItemCollectionSizeLimitExceeded", "None", "None"), NotApplied, WriteFailed},
		{"a write is invalid", cancelled("None", "ValidationError", conflict), NotApplied, WriteFailed},
		{"a reason to come", cancelled("SomethingNew", "None", "None"), NotApplied, WriteFailed},
		{"the guard is invalid", cancelled("None", "None", "ValidationError"), NotApplied, Refused},
		{"the guard is invalid, a write fails", cancelled(failed, "None", "ValidationError"), NotApplied, Refused},
		{"cancelled for no reason", cancelled("None", "None", "None"), NotApplied, Refused},
		{"reasons of who knows what", cancelled(failed), NotApplied, Refused},
		{"no reasons", cancelled(), NotApplied, Refused},
		{"an earlier attempt is under way", response(400, &types.TransactionInProgressException{}), Unknown, Busy},
		{"the token is another's", response(400, &types.IdempotentParameterMismatchException{}), NotApplied, TokenTaken},
		{"throttling", response(400, &smithy.GenericAPIError{Code: "ThrottlingException"}), NotApplied, Busy},
		{"validation", response(400, &smithy.GenericAPIError{Code: "ValidationException"}), NotApplied, Refused},
		{"internal error", response(500, &types.InternalServerError{}), Unknown, Unreachable},
		{"a wrapper's own error", errors.New("dax: node is gone"), Unknown, Unreachable},
	} {
		got := ClassifyCommit(tc.err, 3, 1)
		if got.Effect != tc.effect || got.Cause != tc.cause {
			t.Errorf("%s: effect %v cause %v, want %v %v", tc.name, got.Effect, got.Cause, tc.effect, tc.cause)
		}
		if told := tc.cause == GuardFailed || tc.cause == WriteFailed; told != (len(got.Reasons) == 3) {
			t.Errorf("%s: reasons %v", tc.name, got.Reasons)
		}
	}
}

func TestFailedGuardTakesPrecedenceOverOtherCancelReasons(t *testing.T) {
	for _, other := range []string{"ValidationError", "TransactionConflict", "None"} {
		for _, err := range []error{cancelled("ConditionalCheckFailed", "ConditionalCheckFailed", other), cancelled("ConditionalCheckFailed", other, "ConditionalCheckFailed")} {
			if got := ClassifyCommit(err, 3, 2); got.Cause != GuardFailed || len(got.Failed) != 1 {
				t.Errorf("%v: cause %v, guards %v", err, got.Cause, got.Failed)
			}
		}
	}
}

func TestTransactionErrorNamesEveryFailedGuard(t *testing.T) {
	got := ClassifyCommit(cancelled("None", "ConditionalCheckFailed", "None", "ConditionalCheckFailed"), 4, 3)
	if len(got.Failed) != 2 || got.Failed[0] != 0 || got.Failed[1] != 2 {
		t.Errorf("guards %v failed", got.Failed)
	}
}

func TestCommitThatMayStillBeAppliedIsNotReportedAsFailed(t *testing.T) {
	answers := map[string]CommitReply{
		"applied":     {Effect: Applied},
		"guard":       {Effect: NotApplied, Cause: GuardFailed},
		"write":       {Effect: NotApplied, Cause: WriteFailed},
		"busy":        {Effect: NotApplied, Cause: Busy},
		"refused":     {Effect: NotApplied, Cause: Refused},
		"taken":       {Effect: NotApplied, Cause: TokenTaken},
		"in progress": {Effect: Unknown, Cause: Busy},
		"silence":     {Effect: Unknown, Cause: Unreachable},
	}
	trusted, open := Course{Trusted: true}, Course{Trusted: true, Unanswered: true}
	untrusted, stopped, left := Course{}, Course{Trusted: true, Stopped: true}, Course{Trusted: true, Unanswered: true, Stopped: true}
	at := func(s Stage, c Course) Course { c.Stage = s; return c }
	late := Course{Unanswered: true} // in this course the lock is no longer trusted, and a request has had no answer
	for _, tc := range []struct {
		name   string
		course Course
		want   map[string]Step
	}{
		{"all answered", trusted, map[string]Step{
			"applied": Committed, "guard": NotHeld, "write": Cancelled, "busy": Again, "refused": Rejected, "taken": Rejected}},
		{"one without an answer", open, map[string]Step{
			"applied": Committed, "guard": NotHeld, "write": Void, "busy": Again, "refused": Doubtful, "taken": Doubtful,
			"in progress": Again, "silence": Again}},
		{"all answered, trust has ended", untrusted, map[string]Step{
			"applied": Committed, "guard": NotHeld, "write": Cancelled, "busy": GiveUp, "refused": Rejected}},
		{"one without an answer, trust has ended", late, map[string]Step{
			"applied": Committed, "guard": NotHeld, "write": Void, "busy": Again, "silence": Again, "refused": Doubtful}},
		{"all answered, stopped", stopped, map[string]Step{
			"applied": Committed, "guard": NotHeld, "write": Cancelled, "busy": GiveUp, "refused": Rejected}},
		{"one without an answer, stopped", left, map[string]Step{
			"applied": Committed, "guard": NotHeld, "write": Doubtful, "busy": Doubtful, "in progress": Doubtful,
			"silence": Doubtful, "refused": Doubtful, "taken": Doubtful}},
		{"voiding", at(Voiding, open), map[string]Step{
			"applied": Cancelled, "guard": NotHeld, "busy": Again, "in progress": Again, "silence": Again,
			"taken": Reread, "refused": Doubtful}},
		{"voiding, stopped", at(Voiding, left), map[string]Step{
			"applied": Cancelled, "guard": NotHeld, "busy": Doubtful, "silence": Doubtful, "taken": Doubtful}},
		{"rereading", at(Rereading, open), map[string]Step{
			"applied": Committed, "guard": NotHeld, "write": Doubtful, "busy": Again, "silence": Again,
			"taken": Doubtful, "refused": Doubtful}},
		{"rereading, stopped", at(Rereading, left), map[string]Step{
			"applied": Committed, "write": Doubtful, "busy": Doubtful, "silence": Doubtful}},
	} {
		for answer, want := range tc.want {
			if got := NextCommit(answers[answer], tc.course); got != want {
				t.Errorf("%s, %s: step %v, want %v", tc.name, answer, got, want)
			}
		}
	}
}

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
