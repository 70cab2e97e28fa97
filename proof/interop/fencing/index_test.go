//go:build linux

package fencing

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/smithy-go"
	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/lab"
)

func TestS3RejectsStaleToken(t *testing.T) {
	server := newStore(t)
	db := server.client(http.DefaultTransport)
	stale, current := twoHolders(t)
	lab.OK(t, save(t, db, stale, "a")) // S3 accepts this stale write, because the later holder has not written yet
	server.has(t, stale, "a")
	lab.OK(t, save(t, db, current, "b"))
	lost(t, save(t, db, stale, "c"))
	server.has(t, current, "b")
	lab.OK(t, save(t, db, current, "d")) // the current holder may write again
	server.has(t, current, "d")
}

// S3 computes an ETag from the content alone. If the content did not include the token, a
// later holder could write equal content with an equal ETag. Then S3 would accept the stale
// holder's conditional write.
func TestS3RejectsStaleWriterThatReadBeforeNewerWrite(t *testing.T) {
	for name, c := range map[string]struct {
		before string // page that the stale holder has written; empty if the object does not exist yet
		newer  string // page that the later holder writes
	}{
		"object of the stale holder": {"a", "b"},
		"no object":                  {"", "b"},
		"equal content":              {"a", "a"},
	} {
		t.Run(name, func(t *testing.T) {
			server := newStore(t)
			db := server.client(http.DefaultTransport)
			stale, current := twoHolders(t)
			if c.before != "" {
				lab.OK(t, save(t, db, stale, c.before))
			}
			late := server.client(&between{next: func() { lab.OK(t, save(t, db, current, c.newer)) }})
			refused(t, save(t, late, stale, "c"))
			server.has(t, current, c.newer)
			lost(t, save(t, late, stale, "c")) // this call reads the object again, and finds the later holder's token
			server.has(t, current, c.newer)
		})
	}
}

func TestS3ObjectWithoutTokenIsNotOverwritten(t *testing.T) {
	server := newStore(t)
	db := server.client(http.DefaultTransport)
	_, current := twoHolders(t)
	lab.Must(db.PutObject(t.Context(), &s3.PutObjectInput{
		Bucket: aws.String("state"), Key: aws.String("index.json"), Body: strings.NewReader(`{"pages":["a"]}`),
	}))(t)
	if err := save(t, db, current, "b"); err == nil || !strings.Contains(err.Error(), "without a token") {
		t.Errorf("error %v, want it to say that there is no token", err)
	}
	if index, _ := server.index(t); !slices.Equal(index.Pages, []string{"a"}) {
		t.Errorf("the object has pages %q", index.Pages)
	}
}

// store is a server of the S3 API. It has one bucket, named state.
type store struct{ endpoint string }

func newStore(t *testing.T) store {
	t.Helper()
	server := httptest.NewServer(gofakes3.New(s3mem.New()).Server())
	t.Cleanup(server.Close)
	s := store{endpoint: server.URL}
	lab.Must(s.client(http.DefaultTransport).CreateBucket(t.Context(), &s3.CreateBucketInput{Bucket: aws.String("state")}))(t)
	return s
}

func (s store) client(transport http.RoundTripper) *s3.Client {
	return s3.New(s3.Options{
		BaseEndpoint: aws.String(s.endpoint),
		UsePathStyle: true,
		Region:       "local",
		Credentials:  credentials.NewStaticCredentialsProvider("local", "local", ""),
		HTTPClient:   &http.Client{Transport: transport},
	})
}

func (s store) index(t *testing.T) (index Index, fence string) {
	t.Helper()
	object := lab.Must(s.client(http.DefaultTransport).GetObject(t.Context(), &s3.GetObjectInput{
		Bucket: aws.String("state"), Key: aws.String("index.json"),
	}))(t)
	defer object.Body.Close()
	body := lab.Must(io.ReadAll(object.Body))(t)
	lab.OK(t, json.Unmarshal(body, &index))
	return index, object.Metadata["fence"]
}

func (s store) has(t *testing.T, by *leasehold.Lock, page string) {
	t.Helper()
	index, fence := s.index(t)
	token := strconv.FormatInt(by.Token(), 10)
	if !slices.Equal(index.Pages, []string{page}) || index.Fence != by.Token() || fence != token {
		t.Errorf("the object has pages %q by token %d (in the metadata %q), want %q by %s", index.Pages, index.Fence, fence, page, token)
	}
}

func save(t *testing.T, db *s3.Client, lock *leasehold.Lock, page string) error {
	t.Helper()
	return SaveIndex(t.Context(), db, lock, "state", "index.json", Index{Pages: []string{page}})
}

func refused(t *testing.T, err error) {
	t.Helper()
	var refusal smithy.APIError
	if !errors.As(err, &refusal) || refusal.ErrorCode() != "PreconditionFailed" {
		t.Errorf("error %v, want PreconditionFailed", err)
	}
}

// between is an HTTP transport that calls next once, immediately before it sends the first
// write. The read before this write has been answered by then.
type between struct {
	next func()
	once sync.Once
}

func (b *between) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method == http.MethodPut {
		b.once.Do(b.next)
	}
	return http.DefaultTransport.RoundTrip(r)
}
