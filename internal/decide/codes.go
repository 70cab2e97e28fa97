package decide

import (
	"strings"

	"github.com/aws/smithy-go"
)

// Advice for people.
const (
	RaiseCapacity   = "raise the table's capacity, or make it pay per request"
	CheckConnection = "check the network, the region and the endpoint"
	NotDynamoDB     = "the answer is not DynamoDB's: check proxies and the endpoint"
	OtherSchema     = "the table's key does not fit the layout: run leasehold table check"
)

// meaning is the interpretation of an error code.
type meaning struct {
	cause  Cause  // None: the status of the answer tells
	advice string // what is wrong, for people, and what to do
}

var (
	throttled  = meaning{Busy, "throttled: " + RaiseCapacity}
	inConflict = meaning{Conflict, "in conflict with other writes: try again"}
	denied     = meaning{None, "access denied: allow it in the caller's IAM policy (leasehold table policy --prefix PREFIX prints one)"}
	expired    = meaning{Unidentified, "the credentials have expired: renew them"}
	refused    = meaning{Unidentified, "the credentials were refused: check them, the region and this machine's clock"}
)

// codes are the error codes that say more than the status of the answer (DynamoDB API
// reference, "Error handling with DynamoDB").
var codes = map[string]meaning{
	"ProvisionedThroughputExceededException":   throttled,
	"RequestLimitExceeded":                     throttled,
	"ThrottlingException":                      throttled,
	"Throttling":                               throttled,
	"TransactionConflictException":             inConflict,
	"ReplicatedWriteConflictException":         inConflict,
	"AccessDeniedException":                    denied,
	"AccessDenied":                             denied,
	"ExpiredTokenException":                    expired,
	"ExpiredToken":                             expired,
	"RequestExpired":                           expired,
	"UnrecognizedClientException":              refused,
	"InvalidClientTokenId":                     refused,
	"InvalidSignatureException":                refused,
	"IncompleteSignatureException":             refused,
	"IncompleteSignature":                      refused,
	"MissingAuthenticationTokenException":      refused,
	"MissingAuthenticationToken":               refused,
	"ItemCollectionSizeLimitExceededException": {None, "the table has a local secondary index, which is full: use a lock table without one"},
	"LimitExceededException":                   {None, "a limit of the AWS account is reached: try again later, or ask AWS for more"},
	"UnknownError":                             {Unreachable, NotDynamoDB}, // the SDK's code for it
}

// Advice describes the problem of a request that was answered, for people, and what to do
// about it. Empty: only the answer tells.
func Advice(err error) string {
	switch api, ok := as[smithy.APIError](err); {
	case Throttled(err):
		return throttled.advice
	case refusedAs(inConflict, err):
		return inConflict.advice
	case !ok:
		return ""
	case strings.HasPrefix(api.ErrorMessage(), "KMS "):
		return "the KMS key that encrypts the table cannot be used: enable it, and allow its use in the key's policy"
	case codes[api.ErrorCode()].advice != "":
		return codes[api.ErrorCode()].advice
	case api.ErrorCode() == "ValidationException" && strings.Contains(api.ErrorMessage(), "schema"):
		return OtherSchema
	case Classify(err).Outage:
		return "DynamoDB has failed: try again later"
	}
	return ""
}
