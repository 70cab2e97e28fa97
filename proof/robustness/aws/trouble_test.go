package aws

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"syscall"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/lab"
)

// trouble is a simulated failure of AWS, of the network or of the credential provider, as
// the SDK reports it.
type trouble struct {
	name   string
	answer lab.Fault // answer that every request receives
	vault  error     // error of the credential provider, which prevents all requests

	writes  bool // this failure affects only writes and transactions
	cancels bool // this failure cancels a transaction because of one of its items

	passes bool    // the failure may be temporary: the client repeats the request until the call ends
	denies bool    // access is denied: the client repeats the request only if it waits for a key and received an answer before the failure
	silent bool    // the request may have been applied, although no answer arrived
	advice string  // advice that the resulting errors contain
	is     []error // sentinel errors that the resulting errors match
}

// says returns a fault that answers every request with the given error of DynamoDB.
func says(status int, kind, message string) lab.Fault {
	return func(*lab.Request) (*http.Response, error) { return reply(status, kind, message), nil }
}

func reply(status int, kind, message string) *http.Response {
	res := lab.Refusal(status, "")
	body, _ := json.Marshal(map[string]string{"__type": kind, "message": message}) // cannot fail, because the value is a map of strings
	res.Body, res.ContentLength = io.NopCloser(strings.NewReader(string(body))), int64(len(body))
	return res
}

// cancels returns a fault that cancels transactions, with the given reason code for the first item.
// The fault cancels each TransactWriteItems, and also each TransactGetItems if ofReads contains the
// code. All other requests get the fault "single".
func cancels(code string, single lab.Fault) lab.Fault {
	return func(r *lab.Request) (*http.Response, error) {
		if r.Op != "TransactWriteItems" && (r.Op != "TransactGetItems" || !ofReads[code]) {
			return single(r)
		}
		codes := make([]string, len(r.Parts()))
		for i := range codes {
			codes[i] = "None"
		}
		codes[0] = code
		return lab.Cancellation(codes...), nil
	}
}

// ofReads contains the reason codes with which DynamoDB may cancel a TransactGetItems.
var ofReads = map[string]bool{"ProvisionedThroughputExceeded": true, "ThrottlingError": true, "TransactionConflict": true}

// leavesUnread returns a fault for BatchGetItem: the answer is a success, but reports all keys
// as unprocessed. The parameter is the fault for all other requests.
func leavesUnread(rest lab.Fault) lab.Fault {
	return func(r *lab.Request) (*http.Response, error) {
		if r.Op != "BatchGetItem" {
			return rest(r)
		}
		var in struct{ RequestItems json.RawMessage }
		if err := json.Unmarshal(r.Body, &in); err != nil {
			return nil, err
		}
		body := fmt.Sprintf(`{"Responses":{},"UnprocessedKeys":%s}`, in.RequestItems)
		res := lab.Refusal(http.StatusOK, "")
		res.Body, res.ContentLength = io.NopCloser(strings.NewReader(body)), int64(len(body))
		return res, nil
	}
}

// onWrites returns a fault that affects all requests except plain reads (reads outside
// transactions). It is for errors that DynamoDB never returns for a plain read.
func onWrites(fault lab.Fault) lab.Fault {
	return func(r *lab.Request) (*http.Response, error) {
		if r.Reads() && r.Op != "TransactGetItems" || r.Op == "Scan" || r.Op == "Query" {
			return r.Send()
		}
		return fault(r)
	}
}

// broken returns a fault that makes the connection fail with err.
func broken(err error) lab.Fault {
	return func(*lab.Request) (*http.Response, error) { return nil, err }
}

// page returns a fault in which an HTTP proxy answers every request itself, with the given
// body, instead of passing the request to DynamoDB.
func page(kind, body string) lab.Fault {
	return func(*lab.Request) (*http.Response, error) {
		res := lab.Refusal(http.StatusForbidden, "")
		res.Header = http.Header{"Content-Type": {kind}}
		res.Body, res.ContentLength = io.NopCloser(strings.NewReader(body)), int64(len(body))
		return res, nil
	}
}

const (
	dynamo   = "com.amazonaws.dynamodb.v20120810#"
	service  = "com.amazon.coral.service#"
	validate = "com.amazon.coral.validate#"
	arn      = "arn:aws:dynamodb:eu-west-1:123456789012:table/locks"
	kmsKey   = "arn:aws:kms:eu-west-1:123456789012:key/5b40e09a-d91a-4e01-8216-4ddfbfa93aaa"
)

var (
	errSealed = errors.New("the vault is sealed")
	errNoHost = &net.OpError{Op: "dial", Net: "tcp", Err: &net.DNSError{Err: "no such host", Name: "dynamodb.eu-wset-1.amazonaws.com", IsNotFound: true}}
	errDown   = &net.OpError{Op: "dial", Net: "tcp", Addr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 8000}, Err: syscall.ECONNREFUSED}
)

const (
	throttledAdvice = "raise the table's capacity"
	refusedAdvice   = "the credentials were refused: check them, the region and this machine's clock"
	conflictAdvice  = "in conflict with other writes: try again"
	silentAdvice    = "no answer from DynamoDB: check the network"
	serverAdvice    = "DynamoDB has failed"
	tableAdvice     = "create it with leasehold table create, or check region and endpoint"
	kmsAdvice       = "the KMS key that encrypts the table"
)

// troubles lists all simulated failures in the order of the page docs/internals/aws-errors.md.
var troubles = []trouble{
	{name: "the table's provisioned throughput is used up", passes: true, advice: throttledAdvice,
		answer: cancels("ProvisionedThroughputExceeded", says(400, dynamo+"ProvisionedThroughputExceededException",
			"The level of configured provisioned throughput for the table was exceeded. Consider increasing your provisioning level with the UpdateTable API."))},
	{name: "one item, or a table on demand, is throttled", passes: true, advice: throttledAdvice,
		answer: leavesUnread(cancels("ThrottlingError", says(400, "com.amazon.coral.availability#ThrottlingException",
			"Throughput exceeds the current capacity of your table or index. DynamoDB is automatically scaling your table or index so please try again shortly.")))},
	{name: "the account's limit is reached", passes: true, advice: throttledAdvice,
		answer: says(400, dynamo+"RequestLimitExceeded", "Throughput exceeds the current throughput limit for your account. Please contact AWS Support to request a limit increase.")},
	{name: "in conflict with a transaction", passes: true, writes: true, advice: conflictAdvice,
		answer: onWrites(cancels("TransactionConflict", says(400, dynamo+"TransactionConflictException", "Transaction is ongoing for the item")))},
	{name: "in conflict with a write in another Region", passes: true, writes: true, advice: conflictAdvice,
		answer: onWrites(says(400, dynamo+"ReplicatedWriteConflictException", "One or more items in this request are being modified by a request in another Region."))},
	{name: "DynamoDB has failed, 500", passes: true, silent: true, advice: serverAdvice,
		answer: says(500, dynamo+"InternalServerError", "Internal server error")},
	{name: "DynamoDB is not available, 503", passes: true, silent: true, advice: serverAdvice,
		answer: says(503, service+"ServiceUnavailableException", "Service is unavailable")},
	{name: "no answer", passes: true, silent: true, advice: silentAdvice, answer: lab.Cut},
	{name: "the connection is reset", passes: true, silent: true, advice: silentAdvice, answer: broken(lab.ErrReset)},
	{name: "the endpoint is down", passes: true, silent: true, advice: silentAdvice, answer: broken(errDown)},
	{name: "there is no such endpoint", passes: true, silent: true, advice: silentAdvice, answer: broken(errNoHost)},
	{name: "a proxy answers with a page", passes: true, silent: true, advice: silentAdvice,
		answer: page("text/html", "<html><body>Blocked by the proxy</body></html>")},
	{name: "a proxy answers in JSON", passes: true, silent: true, advice: "the answer is not DynamoDB's: check proxies and the endpoint",
		answer: page("application/json", `{"reason":"blocked"}`)},
	{name: "the source of credentials fails", passes: true, vault: errSealed, is: []error{errSealed},
		advice: "nothing was sent: credentials that existed before are missing"},
	{name: "the credentials have expired", passes: true, advice: "the credentials have expired: renew them",
		answer: says(400, service+"ExpiredTokenException", "The security token included in the request is expired")},
	{name: "the credentials are unknown, or not of this Region", passes: true, advice: refusedAdvice,
		answer: says(400, service+"UnrecognizedClientException", "The security token included in the request is invalid.")},
	{name: "the secret key is wrong", passes: true, advice: refusedAdvice,
		answer: says(400, service+"InvalidSignatureException", "The request signature we calculated does not match the signature you provided. Check your AWS Secret Access Key and signing method.")},
	{name: "the clock is wrong, and DynamoDB does not say its own", passes: true, advice: refusedAdvice,
		answer: says(400, service+"InvalidSignatureException", "Signature expired: 20261122T111500Z is now earlier than 20261122T113000Z (20261122T113500Z - 5 min.)")},
	{name: "the signature is incomplete", passes: true, advice: refusedAdvice,
		answer: says(400, service+"IncompleteSignatureException", "The request signature does not conform to AWS standards.")},
	{name: "the request has no signature", passes: true, advice: refusedAdvice,
		answer: says(400, service+"MissingAuthenticationTokenException", "Request must contain either a valid (registered) AWS access key ID or X.509 certificate.")},
	{name: "access is denied", denies: true, advice: "access denied: allow it in the caller's IAM policy (leasehold table policy --prefix PREFIX prints one)",
		answer: func(r *lab.Request) (*http.Response, error) {
			return reply(400, service+"AccessDeniedException", "User: arn:aws:iam::123456789012:user/x is not authorized to perform: dynamodb:"+r.Op+
				" on resource: "+arn+" because no identity-based policy allows the dynamodb:"+r.Op+" action"), nil
		}},
	{name: "the table is deleted, being created, or in another Region", advice: tableAdvice, is: []error{leasehold.ErrTableNotFound},
		answer: says(400, dynamo+"ResourceNotFoundException", "Requested resource not found")},
	{name: "the table's KMS key is disabled", advice: kmsAdvice,
		answer: says(400, validate+"ValidationException", "KMS key disabled error: com.amazonaws.services.kms.model.DisabledException: "+kmsKey+
			" is disabled. (Service: AWSKMS; Status Code: 400; Error Code: DisabledException; Request ID: 0e35c348-57ef-4b0a-81e7-87e3fd0e4344; Proxy: null)")},
	{name: "the table's KMS key may not be used", denies: true, advice: kmsAdvice,
		answer: says(400, service+"AccessDeniedException", "KMS key access denied error: com.amazonaws.services.kms.model.AWSKMSException: The ciphertext refers to a customer master key that does not exist, "+
			"does not exist in this region, or you are not allowed to access. (Service: AWSKMS; Status Code: 400; Error Code: AccessDeniedException; Request ID: 0e35c348-57ef-4b0a-81e7-87e3fd0e4344; Proxy: null)")},
	{name: "the table has other keys", cancels: true, advice: "the table's key does not fit the layout: run leasehold table check",
		answer: cancels("ValidationError", says(400, validate+"ValidationException", "The provided key element does not match the schema"))},
	{name: "the item collection is too large", writes: true, cancels: true, advice: "the table has a local secondary index, which is full",
		answer: onWrites(cancels("ItemCollectionSizeLimitExceeded", says(400, dynamo+"ItemCollectionSizeLimitExceededException", "Collection size exceeded.")))},
	{name: "a limit of the account is reached", advice: "a limit of the AWS account is reached",
		answer: says(400, dynamo+"LimitExceededException", "Too many operations for a given subscriber.")},
}
