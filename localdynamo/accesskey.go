package localdynamo

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"slices"
	"strconv"
	"strings"
)

// WithAccessKey makes ServeHTTP execute only requests that are signed with this access key by
// Signature Version 4, as every SDK does. Requests of other users of the machine, who do not know
// the key, get DynamoDB's errors for missing or unknown credentials. RoundTrip and Client need no
// key.
//
// The time in a signature is not checked, so that programs also work if their clock differs from
// the machine's clock. A recorded request can therefore be sent again.
func WithAccessKey(id, secret string) Option {
	return func(e *Engine) { e.key = &accessKey{id, secret} }
}

// accessKey is the access key with which clients must sign requests to ServeHTTP.
type accessKey struct{ id, secret string }

const algorithm = "AWS4-HMAC-SHA256"

// keyAdvice is the last part of the error message for a request that is not signed with the access
// key. The server "leasehold local" reads this key from its environment. If the environment
// contains none, the server makes a key, and prints it or passes it to the command that it starts.
const keyAdvice = ": sign with the AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY of this server: from its environment, or else the pair that it has made"

// signature contains the parts of a request's Authorization header.
type signature struct {
	scope   []string // credential scope: date, Region, service, "aws4_request"
	headers []string // names of the signed headers
	mac     string
}

// claimed parses the Authorization header of a request, which must be well-formed and contain k.id.
// It does not need the body, so the server reads only the bodies of clients that know the id. The
// caller must verify the signature with isOf.
func (k *accessKey) claimed(r *http.Request) (*signature, *apiError) {
	given := r.Header.Get("Authorization")
	if given == "" {
		return nil, newError(typeNoToken, "Request is missing Authentication Token"+keyAdvice)
	}
	fields, ok := strings.CutPrefix(given, algorithm+" ")
	parts := map[string]string{}
	for field := range strings.SplitSeq(fields, ",") {
		name, value, _ := strings.Cut(strings.TrimSpace(field), "=")
		parts[name] = value
	}
	credential := strings.Split(parts["Credential"], "/")
	s := &signature{scope: credential[1:], headers: strings.Split(parts["SignedHeaders"], ";"), mac: parts["Signature"]}
	if !ok || len(s.scope) != 4 || s.scope[3] != "aws4_request" || !slices.Contains(s.headers, "host") || !slices.Contains(s.headers, "x-amz-target") {
		return nil, newError(typeIncomplete, "The header Authorization is not a signature of version 4 that has the headers Host and X-Amz-Target in it"+keyAdvice)
	}
	if !hmac.Equal([]byte(credential[0]), []byte(k.id)) {
		return nil, newError(typeUnrecognized, "The security token included in the request is invalid"+keyAdvice)
	}
	return s, nil
}

// isOf reports whether the signature was made with the given access key for the given request
// and body.
func (s *signature) isOf(r *http.Request, body string, k *accessKey) bool {
	canonical := []string{r.Method, r.URL.EscapedPath(), r.URL.RawQuery}
	for _, name := range s.headers {
		canonical = append(canonical, name+":"+signedValue(r, name))
	}
	canonical = append(canonical, "", strings.Join(s.headers, ";"), hexSum(body))
	date := r.Header.Get("X-Amz-Date")
	text := strings.Join([]string{algorithm, date, strings.Join(s.scope, "/"), hexSum(strings.Join(canonical, "\n"))}, "\n")
	key := []byte("AWS4" + k.secret)
	for _, part := range append(slices.Clone(s.scope), text) {
		mac := hmac.New(sha256.New, key)
		_, _ = mac.Write([]byte(part)) // the error is ignored, because a hash never fails to write
		key = mac.Sum(nil)
	}
	return hmac.Equal([]byte(hex.EncodeToString(key)), []byte(s.mac))
}

// signedValue returns the value of a header as the signature uses it. The values of Host and
// Content-Length are not in r.Header, because Go's server stores them in fields of r.
func signedValue(r *http.Request, name string) string {
	values := slices.Clone(r.Header.Values(name))
	switch name {
	case "host":
		values = []string{r.Host}
	case "content-length":
		values = []string{strconv.FormatInt(r.ContentLength, 10)}
	}
	for i, v := range values {
		values[i] = strings.Join(strings.Fields(v), " ")
	}
	return strings.Join(values, ",")
}

func hexSum(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:])
}
