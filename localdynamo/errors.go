package localdynamo

import (
	"fmt"
	"net/http"

	"github.com/leasehold-go/leasehold/internal/filefault"
)

// Types of errors, in the form that SDKs decode.
const (
	typeValidation     = "com.amazon.coral.validate#ValidationException"
	typeSerialization  = "com.amazon.coral.service#SerializationException"
	typeUnknown        = "com.amazon.coral.service#UnknownOperationException"
	typeDenied         = "com.amazon.coral.service#AccessDeniedException"
	typeInternal       = "com.amazon.coral.service#InternalServerError"
	typeUnrecognized   = "com.amazon.coral.service#UnrecognizedClientException"
	typeNoToken        = "com.amazon.coral.service#MissingAuthenticationTokenException"
	typeIncomplete     = "com.amazon.coral.service#IncompleteSignatureException"
	typeSignature      = "com.amazon.coral.service#InvalidSignatureException"
	typeUnusable       = "com.amazon.coral.service#" + filefault.Code
	typeConditionFails = "com.amazonaws.dynamodb.v20120810#ConditionalCheckFailedException"
	typeNotFound       = "com.amazonaws.dynamodb.v20120810#ResourceNotFoundException"
	typeInUse          = "com.amazonaws.dynamodb.v20120810#ResourceInUseException"
	typeCanceled       = "com.amazonaws.dynamodb.v20120810#TransactionCanceledException"
	typeMismatch       = "com.amazonaws.dynamodb.v20120810#IdempotentParameterMismatchException"
)

// apiError is an error of the DynamoDB API.
type apiError struct {
	status  int
	kind    string // type of the error: one of the constants above
	message string
	// Item for which the condition is false; set only if the request asked for it.
	item item
	// One reason for each action; set only if a transaction was cancelled.
	reasons []reason
}

// reason is the cancellation reason of one action in a cancelled transaction. If the action did
// not fail, the code is "None".
type reason struct {
	code    string
	message string
	item    item
}

// Error returns the type and the message of the error.
func (e *apiError) Error() string { return e.kind + ": " + e.message }

func newError(kind, message string) *apiError {
	return &apiError{status: http.StatusBadRequest, kind: kind, message: message}
}

// invalid returns an apiError of the type ValidationException with the given message.
func invalid(message string) *apiError { return newError(typeValidation, message) }

func invalidf(format string, args ...any) *apiError {
	return invalid(fmt.Sprintf(format, args...))
}

// malformed returns the error for a request body that is JSON but has the wrong structure.
func malformed(message string) *apiError { return newError(typeSerialization, message) }

// internalError returns the error for a request that failed inside the engine.
func internalError(message string) *apiError {
	return &apiError{status: http.StatusInternalServerError, kind: typeInternal, message: message}
}

var (
	errTooLarge = &apiError{status: http.StatusRequestEntityTooLarge, kind: typeSerialization, message: "the request is larger than 16 MB"}
	errNoRoom   = internalError("too many large requests are under way: try again") // SDKs retry this error, because its status is 500
)

// conditionFailed returns the error for a condition that is false. The error contains the old
// item. The caller passes nil if the request did not ask for the old item.
func conditionFailed(old item) *apiError {
	e := newError(typeConditionFails, "The conditional request failed")
	e.item = old
	return e
}

func notFound() *apiError { return newError(typeNotFound, "Requested resource not found") }
