package cli_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"
)

// liar is a server that passes the first requests to a localdynamo engine, and answers all
// later ones with a hostile reply (lie).
type liar struct {
	engine http.Handler

	mu    sync.Mutex
	lie   http.HandlerFunc // answer to later requests; nil if the server never lies
	after int              // number of requests that the engine answers before the server lies
}

// says sets the hostile reply. From now on the engine answers the next requests, as many as
// after says, and lie answers all later ones. If lie is nil, the engine answers all
// requests.
func (l *liar) says(lie http.HandlerFunc, after int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lie, l.after = lie, after
}

func (l *liar) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	l.mu.Lock()
	answer := l.lie
	if l.after > 0 {
		l.after--
		answer = nil
	}
	l.mu.Unlock()
	if answer != nil {
		answer(w, r)
		return
	}
	l.engine.ServeHTTP(w, r)
}

// refusals returns error replies that the client does not retry. Each part of an error
// reply that can contain a text contains the given text in one of them.
func refusals(text string) []http.HandlerFunc {
	refuse := func(of map[string]any, headers ...string) http.HandlerFunc {
		body, err := json.Marshal(of)
		if err != nil {
			panic(err)
		}
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/x-amz-json-1.0")
			for _, name := range headers {
				w.Header().Set(name, text)
			}
			w.WriteHeader(http.StatusBadRequest)
			_, _ = w.Write(body)
		}
	}
	const of = "com.amazonaws.dynamodb.v20120810#"
	return []http.HandlerFunc{
		refuse(map[string]any{"__type": of + "AccessDeniedException", "message": text}),
		refuse(map[string]any{"__type": of + text, "message": text}),
		refuse(map[string]any{"__type": text, "Message": text}),
		refuse(map[string]any{"__type": of + "AccessDeniedException", "message": text}, "X-Amzn-Requestid", "Server", "Date", "X-Amzn-Errortype"),
		refuse(map[string]any{"__type": of + "ValidationException", "message": "schema " + text}),
		refuse(map[string]any{"__type": of + "ResourceNotFoundException", "message": text}),
		refuse(map[string]any{"__type": of + "AccessDeniedException", "message": "KMS " + text}),
		refuse(map[string]any{"__type": of + "UnrecognizedClientException", "message": text}),
	}
}

// lies returns replies as from malicious servers and from servers that are not DynamoDB.
// Each reply contains the given text wherever a client may quote the reply.
func lies(text string) map[string]http.HandlerFunc {
	const dynamoDBs = "application/x-amz-json-1.0"
	write := func(contentType string, body func(op string) string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			_, op, _ := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
			w.Header().Set("Content-Type", contentType)
			_, _ = io.WriteString(w, body(op))
		}
	}
	always := func(body string) func(string) string { return func(string) string { return body } }
	quoted, _ := json.Marshal(text)
	row := fmt.Sprintf(`{"key":{"S":"k"},"ownerName":{"S":%s},"fencingToken":{"N":"1e200000000"},"leaseDuration":{"S":"1e200000000"}}`, quoted)
	var mu sync.Mutex
	pages := 0
	return map[string]http.HandlerFunc{
		"a page":                    write("text/html; "+strings.ReplaceAll(text, "\n", " "), always("<html>"+text)),
		"a page of DynamoDB's type": write(dynamoDBs, always("<html>"+text)),
		"another JSON":              write(dynamoDBs, always(fmt.Sprintf(`{"name":%s}`, quoted))),
		"nothing":                   write(dynamoDBs, always("")),
		"elsewhere": func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Location", "/"+strings.ReplaceAll(text, "\n", " "))
			w.WriteHeader(http.StatusTemporaryRedirect)
		},
		"a trickle": func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", dynamoDBs)
			second := time.NewTicker(time.Second)
			defer second.Stop()
			for {
				_, _ = io.WriteString(w, " ")
				_ = http.NewResponseController(w).Flush()
				select {
				case <-second.C:
				case <-r.Context().Done():
					return
				}
			}
		},
		"a huge number": write(dynamoDBs, func(op string) string {
			switch op {
			case "BatchGetItem":
				return `{"Responses":{"native":[` + row + `]},"UnprocessedKeys":{}}`
			case "TransactGetItems":
				return `{"Responses":[{"Item":` + row + `}]}`
			}
			return `{"Item":` + row + `,"Attributes":` + row + `,"Items":[` + row + `],"Count":1,"ScannedCount":1}`
		}),
		"a circle": write(dynamoDBs, func(string) string {
			mu.Lock()
			defer mu.Unlock()
			pages++
			return fmt.Sprintf(`{"Items":[],"Count":0,"ScannedCount":0,"LastEvaluatedKey":{"key":{"S":"%d"}}}`, pages%2)
		}),
	}
}
