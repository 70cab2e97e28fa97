package requests

import (
	"testing"

	"github.com/aws/smithy-go"

	"github.com/leasehold-go/leasehold/internal/decide"
)

func TestTheCommandCallsThrottlingWhatTheLibraryDoes(t *testing.T) {
	for _, code := range []string{
		"ProvisionedThroughputExceededException", "ThrottlingException", "RequestLimitExceeded", "Throttling",
		"TransactionConflictException", "ValidationException", "",
	} {
		err := &smithy.GenericAPIError{Code: code}
		if got := usedBy(Request{Err: err, Reply: Reply{Code: 400}}).Throttled == 1; got != decide.Throttled(err) {
			t.Errorf("%q: throttled %v", code, got)
		}
	}
}
