package store_test

import (
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/cli/failure"
	"github.com/leasehold-go/leasehold/internal/cli/requests"
	"github.com/leasehold-go/leasehold/internal/cli/store"
	"github.com/leasehold-go/leasehold/internal/cli/wording"
	"github.com/leasehold-go/leasehold/internal/decide"
	"github.com/leasehold-go/leasehold/internal/filefault"
	"github.com/leasehold-go/leasehold/internal/lab"
	"github.com/leasehold-go/leasehold/layout"
	"github.com/leasehold-go/leasehold/localdynamo"
	"github.com/leasehold-go/leasehold/localdynamo/boltstore"
	"github.com/leasehold-go/leasehold/table"
)

// failingStore is a store whose writes fail with err, unless err is nil.
type failingStore struct {
	localdynamo.Store
	err error
}

func (s *failingStore) Update(fn func(localdynamo.Tx) error) error {
	if s.err != nil {
		return s.err
	}
	return s.Store.Update(fn)
}

func TestErrorAboutStoreFileStatesCauseAndRemedy(t *testing.T) {
	for errno, want := range map[syscall.Errno]string{
		syscall.ENOSPC: "the disk is full: free some space there",
		syscall.EDQUOT: "this user's disk quota is used up: free some space there",
		syscall.EIO:    "the disk has failed: look in the kernel's log",
		syscall.EFBIG:  "the file is as large as it may be: raise the limit of ulimit -f",
		syscall.EROFS:  "the file system is read-only: mount it for writing",
		syscall.EMFILE: "this process can open no more files: raise the limit of ulimit -n",
		syscall.ENFILE: "this machine can open no more files: end programs",
	} {
		bolt := lab.Must(boltstore.Open(filepath.Join(t.TempDir(), "locks.db")))(t)
		synctest.Test(t, func(t *testing.T) {
			file := &failingStore{Store: bolt}
			s := &store.Store{Target: store.Target{Place: store.Place{Table: "locks", File: "/locks.db"}, Records: store.Records{Layout: layout.Native{}}, Location: "/locks.db"}}
			engine := localdynamo.New(localdynamo.WithStore(file))
			s.Home = engine.Client(requests.Watch{Health: &s.Health}.Client)
			lab.OK(t, table.Create(t.Context(), s.Home, table.Spec{Name: s.Table}))
			file.err = fmt.Errorf("boltstore: %w", &fs.PathError{Op: "write", Path: "/locks.db", Err: errno})
			fault, _ := filefault.Of(errno)
			if !fault.Passes() {
				file.err = filefault.Lasting(file.err)
			}
			began := time.Now()
			once := func(o *dynamodb.Options) { o.RetryMaxAttempts = 1 }
			_, err := s.Home.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: aws.String("locks"), Item: map[string]types.AttributeValue{
				"key": &types.AttributeValueMemberS{Value: "k"},
			}}, once)
			if err == nil {
				t.Fatal("the write succeeded despite the fault")
			}
			time.Sleep(3 * time.Second)
			lab.Want(t, fmt.Sprintf("%v: the request is refused", errno), decide.Classify(err).Cause == decide.Refused, !fault.Passes())
			line := s.Health.Trouble(s.Server()).News().Line
			if fault.Passes() && (!strings.HasPrefix(line, "/locks.db could not be written for "+wording.Age(time.Since(began))+": still trying: "+want) || strings.Contains(line, "fuser")) {
				t.Errorf("%v: the wait reports: %s", errno, line)
			}
			for _, err := range []error{err, &leasehold.OpError{Op: "acquire", Key: leasehold.Key{Partition: "k"}, Table: "locks", Err: err}} {
				text := failure.Text(err, s.Where())
				lab.WantParts(t, errno.Error(), text, ": "+want)
				lab.WantNoPart(t, errno.Error(), text, "DynamoDB", "network", "try again later")
			}
		})
	}
}
