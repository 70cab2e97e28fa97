package localdynamo

import (
	"fmt"
	"net/http"
)

// Error types by the names that SDKs decode.
const (
	typeValidation     = "com.amazon.coral.validate#ValidationException"
	typeSerialization  = "com.amazon.coral.service#SerializationException"
	typeUnknown        = "com.amazon.coral.service#UnknownOperationException"
	typeInternal       = "com.amazon.coral.service#InternalServerError"
	typeConditionFails = "com.amazonaws.dynamodb.v20120810#ConditionalCheckFailedException"
	typeNotFound       = "com.amazonaws.dynamodb.v20120810#ResourceNotFoundException"
	typeInUse          = "com.amazonaws.dynamodb.v20120810#ResourceInUseException"
	typeCanceled       = "com.amazonaws.dynamodb.v20120810#TransactionCanceledException"
	typeMismatch       = "com.amazonaws.dynamodb.v20120810#IdempotentParameterMismatchException"
)

// apiError is an error of the DynamoDB API: what a reply says instead of a
// result.
type apiError struct {
	status  int
	kind    string // one of the types above
	message string
	item    item     // the item that failed the condition, if it was asked for
	reasons []reason // of a cancelled transaction, one an action
}

// reason says what became of one action of a cancelled transaction.
type reason struct {
	code    string
	message string
	item    item
}

// Error returns the type and the message.
func (e *apiError) Error() string { return e.kind + ": " + e.message }

func newError(kind, message string) *apiError {
	return &apiError{status: http.StatusBadRequest, kind: kind, message: message}
}

// invalid is a ValidationException.
func invalid(message string) *apiError { return newError(typeValidation, message) }

func invalidf(format string, args ...any) *apiError {
	return invalid(fmt.Sprintf(format, args...))
}

// malformed is what a body gets that is JSON but not of the operation's shape.
func malformed(message string) *apiError { return newError(typeSerialization, message) }

// conditionFailed carries the item that was there, if it was asked for.
func conditionFailed(old item) *apiError {
	e := newError(typeConditionFails, "The conditional request failed")
	e.item = old
	return e
}

func notFound() *apiError { return newError(typeNotFound, "Requested resource not found") }
