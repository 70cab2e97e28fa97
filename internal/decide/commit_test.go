package decide

import (
	"errors"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"
	"pgregory.net/rapid"
)

func TestClassifyCommitReturnsEffectAndCauseOfCommitError(t *testing.T) {
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
		{"throughput exceeded", cancelled("None", "ProvisionedThroughputExceeded", "None"), NotApplied, Busy},
		{"an item collection is full", cancelled("ItemCollectionSizeLimitExceeded", "None", "None"), NotApplied, WriteFailed},
		{"a write is invalid", cancelled("None", "ValidationError", conflict), NotApplied, WriteFailed},
		{"an unknown reason", cancelled("SomethingNew", "None", "None"), NotApplied, WriteFailed},
		{"the guard is invalid", cancelled("None", "None", "ValidationError"), NotApplied, Refused},
		{"the guard is invalid, a write fails", cancelled(failed, "None", "ValidationError"), NotApplied, Refused},
		{"cancelled for no reason", cancelled("None", "None", "None"), NotApplied, Refused},
		{"fewer reasons than items", cancelled(failed), NotApplied, Refused},
		{"no reasons", cancelled(), NotApplied, Refused},
		{"an earlier attempt in flight", response(400, &types.TransactionInProgressException{}), Unknown, Busy},
		{"the token is used already", response(400, &types.IdempotentParameterMismatchException{}), NotApplied, TokenTaken},
		{"throttling", response(400, &smithy.GenericAPIError{Code: "ThrottlingException"}), NotApplied, Busy},
		{"validation", response(400, &smithy.GenericAPIError{Code: "ValidationException"}), NotApplied, Refused},
		{"internal error", response(500, &types.InternalServerError{}), Unknown, Unreachable},
		{"a wrapper's own error", errors.New("dax: node is gone"), Unknown, Unreachable},
	} {
		got := ClassifyCommit(tc.err, 3, 1)
		if got.Effect != tc.effect || got.Cause != tc.cause {
			t.Errorf("%s: effect %v cause %v, want %v %v", tc.name, got.Effect, got.Cause, tc.effect, tc.cause)
		}
		if told := tc.cause == WriteFailed; told != (len(got.Writes) == 2) {
			t.Errorf("%s: reasons %v", tc.name, got.Writes)
		}
	}
}

func TestClassifyCommitReturnsGuardFailedIfOneGuardHasFailed(t *testing.T) {
	for _, other := range []string{"ValidationError", "TransactionConflict", "None"} {
		for _, err := range []error{cancelled("ConditionalCheckFailed", "ConditionalCheckFailed", other), cancelled("ConditionalCheckFailed", other, "ConditionalCheckFailed")} {
			if got := ClassifyCommit(err, 3, 2); got.Cause != GuardFailed || len(got.Failed) != 1 {
				t.Errorf("%v: cause %v, guards %v", err, got.Cause, got.Failed)
			}
		}
	}
}

func TestClassifyCommitReturnsPositionsOfAllFailedGuards(t *testing.T) {
	got := ClassifyCommit(cancelled("None", "ConditionalCheckFailed", "None", "ConditionalCheckFailed"), 4, 3)
	if failed := slices.Sorted(maps.Keys(got.Failed)); !slices.Equal(failed, []int{0, 2}) {
		t.Errorf("guards %v failed", failed)
	}
}

func TestCommitReportsFailureOnlyIfItsWritesAreNeverApplied(t *testing.T) {
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
	late := Course{Unanswered: true} // the lock is no longer trusted, and a request has had no answer
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

func TestCancelledReadReportsPermanentRatherThanTemporaryCause(t *testing.T) {
	for _, tc := range []struct {
		name  string
		err   error
		cause Cause
	}{
		{"success", nil, None},
		{"a failed condition", cancelled("None", "ConditionalCheckFailed"), ConditionFailed},
		{"a conflict", cancelled("TransactionConflict", "None"), Conflict},
		{"throttling", cancelled("ThrottlingError"), Busy},
		{"provisioned throughput", cancelled("None", "ProvisionedThroughputExceeded"), Busy},
		{"a failed condition beside a conflict", cancelled("TransactionConflict", "ConditionalCheckFailed"), ConditionFailed},
		{"a conflict beside throttling", cancelled("ThrottlingError", "TransactionConflict"), Conflict},
		{"a failed validation", cancelled("ConditionalCheckFailed", "ValidationError"), Refused},
		{"a full item collection", cancelled("ItemCollectionSizeLimitExceeded"), Refused},
		{"an unknown code", cancelled("SomethingNew"), Refused},
		{"no reasons", cancelled(), Busy},
		{"only the reason None", cancelled("None"), Busy},
		{"the token is used already", response(400, &types.IdempotentParameterMismatchException{}), Refused},
		{"throttled as a whole", response(400, &smithy.GenericAPIError{Code: "ThrottlingException"}), Busy},
		{"internal error", response(500, &types.InternalServerError{}), Unreachable},
		{"no reply", errors.New("reset"), Unreachable},
	} {
		if got := ReadCause(tc.err); got != tc.cause {
			t.Errorf("%s: cause %v, want %v", tc.name, got, tc.cause)
		}
	}
}

func TestRenewalRequestTimesOutWhileHolderStillTrustsLock(t *testing.T) {
	for _, tc := range []struct{ left, want time.Duration }{
		{18 * time.Second, 2 * time.Second},
		{4 * time.Second, time.Second},
		{600 * time.Millisecond, 250 * time.Millisecond},
		{100 * time.Millisecond, 100 * time.Millisecond}, // an attempt must end while the lock is still trusted
	} {
		if got := RenewalDeadline(tc.left); got != tc.want {
			t.Errorf("with %v left: %v, want %v", tc.left, got, tc.want)
		}
	}
}

func TestRenewalIsDueOnePeriodAfterLastRenewal(t *testing.T) {
	const second = time.Second
	for _, tc := range []struct {
		name      string
		took      time.Duration
		left      time.Duration
		displaced bool
		u         float64
		want      time.Duration
	}{
		{"one period", 0, 18 * second, false, 0.5, 5 * second},
		{"period counted from the request", 2 * second, 16 * second, false, 0.5, 3 * second},
		{"little trust left", 0, 3 * second, false, 0.5, second},
		{"no trust left", 0, -second, false, 0.5, 0},
		{"displaced renewal", 0, 18 * second, true, 0.25, 1250 * time.Millisecond},
		{"reply after half a period", 3 * second, 15 * second, false, 0.5, 2500 * time.Millisecond},
	} {
		if got := NextRenewal(5*second, tc.took, tc.left, tc.displaced, tc.u); got != tc.want {
			t.Errorf("%s: %v, want %v", tc.name, got, tc.want)
		}
	}
}

func TestFirstRenewalIsSentInSecondHalfOfRenewalPeriod(t *testing.T) {
	for _, tc := range []struct {
		left     time.Duration
		from, to time.Duration
	}{
		{18 * time.Second, 2500 * time.Millisecond, 5 * time.Second},
		{300 * time.Millisecond, 50 * time.Millisecond, 100 * time.Millisecond},
		{-time.Second, 0, 0},
	} {
		if from, to := FirstRenewal(5*time.Second, tc.left, 0), FirstRenewal(5*time.Second, tc.left, 1); from != tc.from || to != tc.to {
			t.Errorf("with %v left: %v to %v, want %v to %v", tc.left, from, to, tc.from, tc.to)
		}
	}
}

func TestPauseBeforeRenewalRetryIsShorterIfLockExpiresSoon(t *testing.T) {
	for _, tc := range []struct {
		n          int
		left, want time.Duration
	}{
		{0, 18 * time.Second, 50 * time.Millisecond},
		{1, 18 * time.Second, 100 * time.Millisecond},
		{9, 18 * time.Second, 1250 * time.Millisecond}, // the longest pause is a quarter of the renewal period, which is 5 s
		{9, time.Second, 500 * time.Millisecond},
		{9, 10 * time.Millisecond, 50 * time.Millisecond}, // the shortest pause, because half of 10 ms would be almost no pause
		{9, -time.Second, 1250 * time.Millisecond},        // the lock is no longer trusted, but the client may hold it through an outage and retry
	} {
		if got := RenewalRetry(tc.n, 5*time.Second, tc.left, 1); got != tc.want {
			t.Errorf("attempt %d with %v left: up to %v, want %v", tc.n, tc.left, got, tc.want)
		}
	}
}

func TestRenewalRateFallsDuringThrottling(t *testing.T) {
	var d Demand
	for range 1000 {
		d = d.Add(5*time.Second, 18*time.Second)
	}
	const ms, s = time.Millisecond, time.Second
	p := Pace{}
	for i, step := range []struct {
		what      string
		throttled bool
		sent, now time.Duration
		want      float64
	}{
		{"no limit before throttling", false, 0, 0, 0},
		{"first throttling lowers the usual rate", true, 0, 0, 160},
		{"throttled again at once", true, 100 * ms, 300 * ms, 160},
		{"throttled again later", true, 250 * ms, 300 * ms, 128},
		{"success raises the rate", false, 800 * ms, 800 * ms, 133},
		{"a lull counts as one second", false, 60 * s, 60 * s, 143},
		{"throttled down to the lowest rate", true, 61 * s, 61 * s, 114.4},
		{"", true, 62 * s, 62 * s, 91.52},
		{"", true, 63 * s, 63 * s, 1000. / 18 * 1.5},
		{"", true, 64 * s, 64 * s, 1000. / 18 * 1.5},
	} {
		if step.throttled {
			p = p.Throttled(d, step.sent, step.now)
		} else {
			p = p.Succeeded(d, step.now)
		}
		if diff := p.PerSecond - step.want; diff > 1e-6 || diff < -1e-6 {
			t.Fatalf("step %d, %s: %v renewals a second, want %v", i, step.what, p.PerSecond, step.want)
		}
	}
	for now := 65 * s; p != (Pace{}); now += s {
		if p = p.Succeeded(d, now); now > 100*s {
			t.Fatalf("still limited after 35 s: %v renewals a second", p.PerSecond)
		}
	}
}

func TestRenewalRateDuringThrottlingSufficesForAllLeases(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var d Demand
		least := 0.0
		for range rapid.IntRange(1, 100).Draw(t, "leases") {
			trust := time.Duration(rapid.Int64Range(int64(500*time.Millisecond), int64(time.Hour)).Draw(t, "trust"))
			d = d.Add(trust/3, trust)
			least += 1 / trust.Seconds()
		}
		var p Pace
		now := time.Duration(0)
		for _, throttled := range rapid.SliceOf(rapid.Bool()).Draw(t, "replies") {
			now += time.Second
			if throttled {
				p = p.Throttled(d, now, now)
			} else {
				p = p.Succeeded(d, now)
			}
			if p != (Pace{}) && p.PerSecond < least {
				t.Fatalf("%v renewals a second, the leases need %v", p.PerSecond, least)
			}
		}
	})
}

func TestFirstRenewalAfterHandOverIsSentWithinTenthOfLease(t *testing.T) {
	for _, tc := range []struct{ lease, left, want time.Duration }{
		{10 * time.Second, 9 * time.Second, time.Second},
		{3 * time.Second, 2 * time.Second, 300 * time.Millisecond},
		// If MaxSkew is nearly as long as the lease, the new holder trusts the lock only briefly.
		// So its first renewal comes early.
		{10 * time.Second, 1200 * time.Millisecond, 400 * time.Millisecond},
		{time.Second, 0, 1},
		{time.Second, -time.Second, 1},
	} {
		if got := FirstRenewalOfHandOver(tc.lease, tc.left); got != tc.want {
			t.Errorf("lease %v, %v left: %v, want %v", tc.lease, tc.left, got, tc.want)
		}
	}
}
