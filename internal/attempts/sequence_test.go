package attempts

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"
	"go.uber.org/goleak"

	"github.com/leasehold-go/leasehold/internal/decide"
	"github.com/leasehold-go/leasehold/internal/protocol"
	"github.com/leasehold-go/leasehold/localdynamo"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fate is what a simulated network does to one request.
type fate string

const (
	answered  fate = "applied and answered"
	lost      fate = "applied, reply lost"
	dropped   fate = "request lost"
	late      fate = "delivered after the next request"
	doubled   fate = "delivered twice"
	refused   fate = "refused"
	throttled fate = "throttled"
	conflict  fate = "in conflict"
	overtaken fate = "answered, after a write of another client"
)

var fates = []fate{answered, lost, dropped, late, doubled, refused, throttled, conflict, overtaken}

// network is a simulated network between a client and an engine. It gives each update
// of the client a fate.
type network struct {
	*dynamodb.Client
	fates []fate // fates of the next requests, in order; later requests are answered
	late  func() // delivers the attempt that is still in flight
	sent  int
	reads int
	blind bool // if set, the reply to a failed condition contains no item
	mute  bool // if set, reads receive no reply
}

var errReset = errors.New("connection reset")

func (n *network) UpdateItem(ctx context.Context, in *dynamodb.UpdateItemInput, opts ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error) {
	f := answered
	if len(n.fates) > 0 {
		f, n.fates = n.fates[0], n.fates[1:]
	}
	n.sent++
	arrives := n.late
	n.late = nil
	defer func() {
		if arrives != nil {
			arrives()
		}
	}()
	deliver := func() (*dynamodb.UpdateItemOutput, error) {
		if n.blind {
			in.ReturnValuesOnConditionCheckFailure = types.ReturnValuesOnConditionCheckFailureNone
		}
		return n.Client.UpdateItem(context.WithoutCancel(ctx), in, opts...)
	}
	switch f {
	case lost:
		_, _ = deliver()
		return nil, errReset
	case dropped:
		return nil, errReset
	case late:
		n.late = func() { _, _ = deliver() }
		return nil, errReset
	case doubled:
		_, _ = deliver()
	case refused:
		return nil, &smithy.GenericAPIError{Code: "AccessDeniedException", Fault: smithy.FaultClient}
	case throttled:
		return nil, &types.ProvisionedThroughputExceededException{}
	case conflict:
		return nil, &types.TransactionConflictException{}
	case overtaken:
		n.put("another's")
	}
	return deliver()
}

func (n *network) GetItem(ctx context.Context, in *dynamodb.GetItemInput, opts ...func(*dynamodb.Options)) (*dynamodb.GetItemOutput, error) {
	n.reads++
	if n.mute {
		return nil, errReset
	}
	return n.Client.GetItem(ctx, in, opts...)
}

func (n *network) put(version string) {
	_, err := n.PutItem(context.Background(), &dynamodb.PutItemInput{TableName: aws.String("locks"), Item: protocol.Item{
		"key": &types.AttributeValueMemberS{Value: "a"}, "v": &types.AttributeValueMemberS{Value: version}}})
	if err != nil {
		panic(err)
	}
}

func (n *network) version() string {
	out, err := n.Client.GetItem(context.Background(), &dynamodb.GetItemInput{TableName: aws.String("locks"), Key: keyItem, ConsistentRead: aws.Bool(true)})
	if err != nil {
		panic(err)
	}
	return versionOf(out.Item)
}

var keyItem = protocol.Item{"key": &types.AttributeValueMemberS{Value: "a"}}

type keys struct{}

func (keys) Key(protocol.Key) (protocol.Item, error) { return keyItem, nil }
func (keys) Schema() protocol.Schema                 { return protocol.Schema{Partition: "key"} }

func versionOf(item protocol.Item) string {
	if v, ok := item["v"].(*types.AttributeValueMemberS); ok {
		return v.Value
	}
	return ""
}

type numbered string

func (n numbered) ID() string { return string(n) }

// replacing returns an operation on the record "a". Each attempt of the operation has a
// number, and replaces the version "base" with that number.
func replacing(q *Sequence[numbered]) Operation[numbered] {
	n := 0
	return Operation[numbered]{
		Key: protocol.Key{Partition: "a"},
		Next: func() (numbered, *protocol.Write) {
			n++
			w := protocol.NewUpdate(keyItem)
			w.Set("v", &types.AttributeValueMemberS{Value: strconv.Itoa(n)})
			w.Where(w.In("v", append(q.Versions(), "base")))
			return numbered(strconv.Itoa(n)), w
		},
		Shows: func(item protocol.Item, sent []numbered) (numbered, bool) { return Find(sent, versionOf(item)) },
	}
}

func inBubble(t *testing.T, test func(t *testing.T, n *network, s *Sender)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		engine := localdynamo.New()
		defer func() { _ = engine.Close() }()
		n := &network{Client: engine.Client()}
		_, err := n.CreateTable(t.Context(), &dynamodb.CreateTableInput{
			TableName: aws.String("locks"), BillingMode: types.BillingModePayPerRequest,
			KeySchema:            []types.KeySchemaElement{{AttributeName: aws.String("key"), KeyType: types.KeyTypeHash}},
			AttributeDefinitions: []types.AttributeDefinition{{AttributeName: aws.String("key"), AttributeType: types.ScalarAttributeTypeS}},
		})
		if err != nil {
			t.Fatal(err)
		}
		test(t, n, &Sender{DB: n, Table: "locks", Keys: keys{}, Chance: func() float64 { return 0.5 }, Log: slog.New(slog.DiscardHandler)})
	})
}

// tries runs a sequence of attempts to replace the version "base". The first requests have the
// given fates.
func (n *network) tries(ctx, limit context.Context, s *Sender, fates ...fate) (*Sequence[numbered], Result[numbered]) {
	n.put("base")
	n.fates = fates
	var q Sequence[numbered]
	return &q, q.Run(ctx, limit, s, replacing(&q))
}

// This test runs a sequence for every combination of fates of the first three attempts. Later
// attempts are answered.
func TestSequenceOfRetriesNeverReportsWrongOutcome(t *testing.T) {
	inBubble(t, func(t *testing.T, n *network, s *Sender) {
		for _, blind := range []bool{false, true} {
			n.blind = blind
			for _, first := range fates {
				for _, second := range fates {
					for _, third := range fates {
						course := []fate{first, second, third}
						if problem := play(n, s, course); problem != "" {
							t.Errorf("%q, blind %v: %s", course, blind, problem)
						}
					}
				}
			}
		}
	})
}

// play runs one sequence, whose first requests have the given fates. If the result of the
// sequence is wrong, play describes the problem; otherwise it returns "".
func play(n *network, s *Sender, course []fate) string {
	n.put("base")
	n.fates, n.sent, n.late = slices.Clone(course), 0, nil
	var q Sequence[numbered]
	r := q.Run(context.Background(), context.Background(), s, replacing(&q))
	course = course[:min(n.sent, len(course))]
	shown := n.version()
	if n.late != nil {
		n.late()
	}
	after := n.version()
	has := func(fs ...fate) bool {
		return slices.ContainsFunc(course, func(f fate) bool { return slices.Contains(fs, f) })
	}
	silent := has(lost, dropped, late)
	ended := fmt.Sprintf("outcome %d, attempt %s, of %d; the record shows %s, in the end %s", r.Outcome, r.Attempt, n.sent, shown, after)
	switch r.Outcome {
	case Applied:
		if string(r.Attempt) != shown || after != shown {
			return "applied, but the record shows another version: " + ended
		}
	case Rejected:
		if versionOf(r.Item) != shown || after != shown || !has(overtaken) {
			return "rejected, but no other client has written: " + ended
		}
	case NotApplied:
		if !has(refused) || silent || after != "base" {
			return "not applied, but an attempt may have been applied: " + ended
		}
	case Unanswered:
		if !has(refused) || !silent {
			return "unanswered, but every attempt was answered: " + ended
		}
	default:
		return "unexpected outcome: " + ended
	}
	if r.Outcome != Applied && r.Outcome != Rejected && course[len(course)-1] != refused {
		return "the sequence ended too early: " + ended
	}
	return ""
}

func TestSequenceOfRetriesStopsAtLimitOfUnansweredAttempts(t *testing.T) {
	inBubble(t, func(t *testing.T, n *network, s *Sender) {
		q, r := n.tries(t.Context(), t.Context(), s, slices.Repeat([]fate{dropped}, 1000)...)
		if r.Outcome != Unanswered || n.sent != MostUnanswered || !errors.Is(r.Err, errReset) {
			t.Errorf("outcome %d after %d attempts: %v", r.Outcome, n.sent, r.Err)
		}
		if dropped := q.Keep(20); len(dropped) != 30 || dropped[0] != "1" || q.Versions()[0] != "31" {
			t.Errorf("dropped %v, left %v", dropped, q.Versions())
		}
	})
}

func TestSequenceOfRetriesStopsWhenItsTimeLimitPasses(t *testing.T) {
	for _, tc := range []struct {
		fate fate
		want Outcome
	}{{dropped, Unanswered}, {throttled, NotApplied}} {
		inBubble(t, func(t *testing.T, n *network, s *Sender) {
			limit, cancel := context.WithTimeout(t.Context(), 5*time.Second)
			defer cancel()
			began := time.Now()
			_, r := n.tries(t.Context(), limit, s, slices.Repeat([]fate{tc.fate}, 1000)...)
			if took := time.Since(began); r.Outcome != tc.want || took != 5*time.Second {
				t.Errorf("%s: outcome %d after %v", tc.fate, r.Outcome, took)
			}
		})
	}
}

func TestSequenceOfAttemptsEndsIfItsBeforeSendHookFails(t *testing.T) {
	errOver := errors.New("over")
	for name, tc := range map[string]struct {
		fates []fate // fates of the requests that are sent before BeforeSend returns an error
		want  Outcome
	}{
		"after requests without an answer": {[]fate{dropped, dropped}, Unanswered},
		"after throttled requests":         {[]fate{throttled, throttled}, NotApplied},
		"before the first request":         {nil, NotApplied},
	} {
		inBubble(t, func(t *testing.T, n *network, s *Sender) {
			n.put("base")
			n.fates = slices.Clone(tc.fates)
			var q Sequence[numbered]
			op := replacing(&q)
			left := 0
			op.BeforeSend = func() (func(), error) {
				if n.sent == len(tc.fates) {
					return nil, errOver
				}
				return func() { left++ }, nil
			}
			r := q.Run(t.Context(), t.Context(), s, op)
			if r.Outcome != tc.want || !errors.Is(r.Err, errOver) || left != n.sent || n.sent == 0 && r.Err.Error() != "over" {
				t.Errorf("%s: outcome %d, %v, %d calls of leave after %d requests", name, r.Outcome, r.Err, left, n.sent)
			}
		})
	}
}

func TestErrorOfRefusedAttemptOmitsErrorsOfEarlierAttempts(t *testing.T) {
	inBubble(t, func(t *testing.T, n *network, s *Sender) {
		if _, r := n.tries(t.Context(), t.Context(), s, dropped, throttled, refused); r.Outcome != Unanswered || !strings.Contains(r.Err.Error(), "AccessDenied") || errors.Is(r.Err, errReset) {
			t.Errorf("outcome %d, %v", r.Outcome, r.Err)
		}
	})
}

func TestFailedRequestIsLoggedButFailedConditionIsNot(t *testing.T) {
	for _, tc := range []struct {
		fate   fate
		base   string // version in the record before the sequence
		logged int
	}{{answered, "base", 0}, {answered, "another's", 0}, {dropped, "base", 1}, {throttled, "base", 1}, {refused, "base", 1}} {
		inBubble(t, func(t *testing.T, n *network, s *Sender) {
			var log bytes.Buffer
			s.Log = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
			n.put(tc.base)
			n.fates = []fate{tc.fate}
			var q Sequence[numbered]
			q.Try(t.Context(), s, replacing(&q))
			if got := strings.Count(log.String(), "request failed"); got != tc.logged {
				t.Errorf("%s, record at version %s: %d lines: %s", tc.fate, tc.base, got, &log)
			}
		})
	}
}

func TestRetrySequenceCallsHookOnThrottlingOrTransactionConflict(t *testing.T) {
	inBubble(t, func(t *testing.T, n *network, s *Sender) {
		n.put("base")
		n.fates = []fate{throttled, dropped, conflict}
		var q Sequence[numbered]
		op := replacing(&q)
		var told []error
		op.Throttled = func(err error) { told = append(told, err) }
		if r := q.Run(t.Context(), t.Context(), s, op); r.Outcome != Applied || len(told) != 2 {
			t.Errorf("outcome %d, Throttled was called with %v", r.Outcome, told)
		}
	})
}

func TestRecordIsReadIfReplyAboutFailedConditionHasNoItem(t *testing.T) {
	for blind, reads := range map[bool]int{false: 0, true: 1} {
		inBubble(t, func(t *testing.T, n *network, s *Sender) {
			n.blind = blind
			_, r := n.tries(t.Context(), t.Context(), s, doubled)
			// The network delivers the request of the attempt twice. The condition of the second
			// copy fails, but the record shows that the first copy was applied.
			if r.Outcome != Applied || r.Cause != decide.ConditionFailed || n.reads != reads {
				t.Errorf("blind %v: outcome %d, cause %d, %d reads", blind, r.Outcome, r.Cause, n.reads)
			}
		})
	}
}

func TestOutcomeIsUnknownIfConditionFailsAndReadOfRecordFails(t *testing.T) {
	inBubble(t, func(t *testing.T, n *network, s *Sender) {
		n.put("base")
		n.blind, n.mute, n.fates = true, true, []fate{doubled}
		var q Sequence[numbered]
		op := replacing(&q)
		if r := q.Try(t.Context(), s, op); r.Outcome != Unanswered || !slices.Equal(q.Versions(), []string{"1"}) || !errors.Is(r.Err, errReset) {
			t.Errorf("outcome %d, unanswered %v: %v", r.Outcome, q.Versions(), r.Err)
		}
		if r := q.Try(t.Context(), s, op); r.Outcome != Applied {
			t.Errorf("second attempt: outcome %d", r.Outcome)
		}
	})
}

func TestAttemptWithFailedConditionIsNotListedAsUnanswered(t *testing.T) {
	inBubble(t, func(t *testing.T, n *network, s *Sender) {
		n.put("another's")
		var q Sequence[numbered]
		if r := q.Try(t.Context(), s, replacing(&q)); r.Outcome != Rejected || len(q.Versions()) != 0 {
			t.Errorf("outcome %d, unanswered %v", r.Outcome, q.Versions())
		}
	})
}

func TestAttemptWithLostReplyStaysUnansweredUntilSettleIsCalled(t *testing.T) {
	inBubble(t, func(t *testing.T, n *network, s *Sender) {
		n.put("base")
		var q Sequence[numbered]
		op := replacing(&q)
		op.Shows = func(_ protocol.Item, sent []numbered) (numbered, bool) { return sent[len(sent)-1], true }
		n.fates = []fate{lost}
		if r := q.Try(t.Context(), s, op); r.Outcome != Unanswered || len(q.Versions()) != 1 {
			t.Fatalf("outcome %d, unanswered %v", r.Outcome, q.Versions())
		}
		if r := q.Try(t.Context(), s, op); r.Outcome != Applied || !slices.Equal(q.Versions(), []string{"1"}) {
			t.Errorf("outcome %d, unanswered %v", r.Outcome, q.Versions())
		}
		q.Settle("1")
		if got := q.Versions(); len(got) != 0 {
			t.Errorf("unanswered %v", got)
		}
	})
}

func TestCredentialErrorIsTemporaryIfEarlierRequestWasAccepted(t *testing.T) {
	api := func(code string) error { return &smithy.GenericAPIError{Code: code, Fault: smithy.FaultClient} }
	refusals := map[string]error{
		"missing":       &smithy.OperationError{ServiceID: "DynamoDB", OperationName: "GetItem", Err: errors.New("get identity: none")},
		"expired":       api("ExpiredTokenException"),
		"unknown":       api("UnrecognizedClientException"),
		"bad signature": api("InvalidSignatureException"),
	}
	fails := func(code string) func(context.Context, *network, *Sender) {
		return func(ctx context.Context, _ *network, s *Sender) { _ = s.classify(ctx, api(code)) }
	}
	for name, tc := range map[string]struct {
		answers func(ctx context.Context, n *network, s *Sender)
		want    decide.Cause
	}{
		"no request": {func(context.Context, *network, *Sender) {}, decide.Refused},
		"without an answer": {func(ctx context.Context, n *network, s *Sender) {
			n.mute = true
			_, _ = s.Read(ctx, protocol.Key{Partition: "a"})
		}, decide.Refused},
		"a read": {func(ctx context.Context, _ *network, s *Sender) { _, _ = s.Read(ctx, protocol.Key{Partition: "a"}) }, decide.Unreachable},
		"a write": {func(ctx context.Context, _ *network, s *Sender) {
			var q Sequence[numbered]
			q.Try(ctx, s, replacing(&q))
		}, decide.Unreachable},
		"throttled":     {fails("ThrottlingException"), decide.Unreachable},
		"no such table": {fails("ResourceNotFoundException"), decide.Unreachable},
		"denied":        {fails("AccessDeniedException"), decide.Refused},
		"refused":       {fails("ExpiredTokenException"), decide.Refused},
	} {
		for refusal, err := range refusals {
			t.Run(name+"/"+refusal, func(t *testing.T) {
				inBubble(t, func(t *testing.T, n *network, s *Sender) {
					n.put("base")
					tc.answers(t.Context(), n, s)
					f := FailureOf(s.classify(t.Context(), err))
					if f.Cause != tc.want {
						t.Errorf("cause %v, %v", f.Cause, f.Err)
					}
					if without := (*UnsignedError)(nil); errors.As(f.Err, &without) != (refusal == "missing" && tc.want == decide.Unreachable) {
						t.Errorf("%v", f.Err)
					}
				})
			})
		}
	}
}

func TestAccessDenialIsTemporaryOnlyIfDynamoDBAnsweredBefore(t *testing.T) {
	denied := &Failure{Cause: decide.Refused, Err: fmt.Errorf("leasehold: %w", &smithy.GenericAPIError{Code: "AccessDeniedException"})}
	invalid := &Failure{Cause: decide.Refused, Err: &smithy.GenericAPIError{Code: "ValidationException"}}
	for _, tc := range []struct {
		name     string
		failure  *Failure
		answered bool
		want     decide.Cause
	}{
		{"denied first", denied, false, decide.Refused},
		{"denied after an answer", denied, true, decide.Unreachable},
		{"invalid after an answer", invalid, true, decide.Refused},
	} {
		if got := tc.failure.After(tc.answered); got.Cause != tc.want || !errors.Is(got, tc.failure.Err) {
			t.Errorf("%s: cause %v, %v", tc.name, got.Cause, got)
		}
	}
	if (*Failure)(nil).After(true) != nil {
		t.Error("After of a nil Failure returned a Failure")
	}
}

func TestRequestIsRepeatedUntilItSucceedsOrAccessIsDenied(t *testing.T) {
	inBubble(t, func(t *testing.T, n *network, s *Sender) {
		n.put("base")
		asked := 0
		err := s.Repeat(t.Context(), func() error {
			asked++
			if asked < 4 {
				return s.classify(t.Context(), errReset)
			}
			_, err := s.Read(t.Context(), protocol.Key{Partition: "a"})
			return err
		}, func(*Failure) error { return nil })
		if err != nil || asked != 4 {
			t.Errorf("%d calls of send: %v", asked, err)
		}
		err = s.Repeat(t.Context(), func() error {
			return s.classify(t.Context(), &smithy.GenericAPIError{Code: "AccessDeniedException", Fault: smithy.FaultClient})
		}, func(*Failure) error { return nil })
		if f := FailureOf(err); f == nil || f.Cause != decide.Refused {
			t.Errorf("refused: %v", err)
		}
	})
}
