package failure

import (
	"context"
	"errors"
	"net"
	"net/url"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/aws/smithy-go"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/decide"
	"github.com/leasehold-go/leasehold/internal/lab"
)

func TestMessageShortensLongKeyExceptInSuggestedCommand(t *testing.T) {
	long := leasehold.Key{Partition: "tenant/" + strings.Repeat("0123456789", 204) + "/last"}
	record := leasehold.Record{Key: long, Owner: "me", Token: 7, Version: "v"}
	for name, err := range map[string]error{
		"held":    &leasehold.HeldError{Key: long, Table: "locks", Holder: record},
		"lost":    &leasehold.LostError{Key: long, Table: "locks", Reason: leasehold.LostExpired},
		"changed": &leasehold.ChangedError{Table: "locks", Now: record},
		"damaged": &leasehold.RecordError{Key: long, Table: "locks", Attribute: "ownerName", Problem: "is missing"},
		"failed":  &leasehold.OpError{Op: "break", Key: long, Table: "locks", Err: context.DeadlineExceeded},
	} {
		prose, command, _ := strings.Cut(Text(err, "here"), "leasehold ")
		lab.WantRange(t, name+": characters", utf8.RuneCountInString(prose), 1, 400)
		lab.WantParts(t, name, prose, "tenant/", "/last")
		if name == "damaged" && !strings.Contains(command, long.Partition) {
			t.Errorf("%s: the command contains another key: %s", name, command)
		}
	}
	short := leasehold.Key{Partition: "tenants/0b1c2d3e-4f50-6172-8394-a5b6c7d8e9f0/imports/2026-11-23/part-007"}
	lab.Want(t, "a key of 68 characters", short.String(), short.Partition)
}

func TestTimeoutErrorTextContainsOnlyAdviceAboutItsCause(t *testing.T) {
	answer := func(code string, fault smithy.ErrorFault) error {
		return &smithy.OperationError{ServiceID: "DynamoDB", OperationName: "UpdateItem", Err: &smithy.GenericAPIError{Code: code, Fault: fault}}
	}
	noConnection := &url.Error{Op: "Post", URL: "http://127.0.0.1:1", Err: &net.OpError{Op: "dial", Err: errors.New("refused")}}
	type variant struct {
		err    error
		advice string
	}
	lab.Variants(t, map[string]variant{
		"throttled":     {answer("ThrottlingException", smithy.FaultClient), decide.RaiseCapacity},
		"server error":  {answer("InternalServerError", smithy.FaultServer), "try again later"},
		"denied":        {answer("AccessDeniedException", smithy.FaultClient), "IAM policy"},
		"no connection": {&smithy.OperationError{ServiceID: "DynamoDB", OperationName: "UpdateItem", Err: noConnection}, decide.CheckConnection},
		"no answer":     {nil, decide.CheckConnection},
	}, func(t *testing.T, tc variant) {
		err := &leasehold.OpError{Op: "release", Key: leasehold.Key{Partition: "k"}, Err: errors.Join(context.DeadlineExceeded, tc.err)}
		text := Text(err, "table locks")
		advices := 0
		for _, advice := range []string{decide.RaiseCapacity, "try again later", "IAM policy", decide.CheckConnection} {
			advices += strings.Count(text, advice)
		}
		lab.Want(t, "pieces of advice", advices, 1)
		lab.WantParts(t, "the text", text, tc.advice)
	})
}

func TestHeldErrorTextNamesHolderAndWhyRequestFailed(t *testing.T) {
	key := leasehold.Key{Partition: "job"}
	sdk := &smithy.OperationError{ServiceID: "DynamoDB", OperationName: "GetItem", Err: &smithy.GenericAPIError{Code: "ExpiredTokenException", Message: "it has expired"}}
	err := &leasehold.HeldError{Key: key, Table: "locks", Holder: leasehold.Record{Key: key, Owner: "me", Version: "v"},
		Err: errors.Join(&WaitedError{Wait: 5 * time.Second}, &leasehold.OpError{Op: "acquire", Key: key, Table: "locks", Err: sdk})}
	const want = "job is held by me: waited 5s: the credentials have expired: renew them: ExpiredTokenException: it has expired"
	lab.Want(t, "text", Text(err, "here"), want)
	if kind, no := Kind(err); !NotGranted(err) || kind != "held" || !no {
		t.Errorf("the kind is %s", kind)
	}
}

func TestErrorTextDropsPrefixLeasehold(t *testing.T) {
	for text, want := range map[string]string{
		"acquire k in table leasehold: the key is not UTF-8": "acquire k in table leasehold: the key is not UTF-8",
		"no place: boltstore: leasehold: the file is gone":   "no place: the file is gone",
		"leasehold: the file is gone":                        "the file is gone",
	} {
		lab.Want(t, "text", Plain(text), want)
	}
}
