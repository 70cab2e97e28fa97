package lab

import (
	"io"
	"net/http"
	"slices"
	"strings"
)

// Refusal returns an HTTP response with the given status and DynamoDB error code.
func Refusal(status int, code string) *http.Response {
	body := `{"__type":"com.amazonaws.dynamodb.v20120810#` + code + `","message":"` + code + `"}`
	return &http.Response{
		StatusCode: status, Status: http.StatusText(status), ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{"Content-Type": {"application/x-amz-json-1.0"}},
		Body:   io.NopCloser(strings.NewReader(body)), ContentLength: int64(len(body)),
	}
}

// Conflict returns DynamoDB's response to the request c if it conflicts with a transaction in
// progress on the same item.
func Conflict(c Call) *http.Response {
	if c.Op != "TransactWriteItems" {
		return Refusal(400, "TransactionConflictException")
	}
	codes := slices.Repeat([]string{"None"}, len(c.Parts()))
	codes[0] = "TransactionConflict"
	return Cancellation(codes...)
}

// Cancellation returns DynamoDB's response to a transaction that it cancels for the given
// reasons.
func Cancellation(codes ...string) *http.Response {
	reasons := make([]string, len(codes))
	for i, c := range codes {
		reasons[i] = `{"Code":"` + c + `"}`
	}
	body := `{"__type":"com.amazonaws.dynamodb.v20120810#TransactionCanceledException","Message":"cancelled","CancellationReasons":[` +
		strings.Join(reasons, ",") + `]}`
	res := Refusal(400, "TransactionCanceledException")
	res.Body, res.ContentLength = io.NopCloser(strings.NewReader(body)), int64(len(body))
	return res
}
