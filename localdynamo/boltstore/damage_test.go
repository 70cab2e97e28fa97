package boltstore_test

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"go.etcd.io/bbolt"

	"github.com/leasehold-go/leasehold/internal/filefault"
	"github.com/leasehold-go/leasehold/internal/lab"
	"github.com/leasehold-go/leasehold/localdynamo"
	"github.com/leasehold-go/leasehold/localdynamo/boltstore"
)

// filled returns the content of a store file. The table "locks" has forty items on more
// than one page, and some pages of the file are free.
func filled(t *testing.T) []byte {
	t.Helper()
	path, client := newFile(t)
	for n := range 40 {
		lab.Must(client.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: aws.String("locks"), Item: map[string]types.AttributeValue{
			"id":   &types.AttributeValueMemberS{Value: fmt.Sprintf("key-%02d", n)},
			"data": &types.AttributeValueMemberB{Value: bytes.Repeat([]byte{byte(n)}, 500)},
		}}))(t)
	}
	return lab.Must(os.ReadFile(path))(t)
}

// found opens the file and scans the table "locks". It returns the number of items, or the
// first error.
func found(t *testing.T, path string) (int, error) {
	t.Helper()
	store, err := boltstore.Open(path)
	if err != nil {
		return 0, err
	}
	engine := localdynamo.New(localdynamo.WithStore(store))
	defer engine.Close()
	client := engine.Client(func(o *dynamodb.Options) { o.Retryer = aws.NopRetryer{} })
	out, err := client.Scan(t.Context(), &dynamodb.ScanInput{TableName: aws.String("locks")})
	if err != nil {
		return 0, err
	}
	return len(out.Items), nil
}

// isRefused fails the test unless err contains the path of the file, or says that a stored item
// cannot be read. It also fails the test if err claims that the table does not exist.
func isRefused(t *testing.T, what, path string, err error) {
	t.Helper()
	said := err.Error()
	if !strings.Contains(said, path) && !strings.Contains(said, "a stored item cannot be read") {
		t.Errorf("%s: the error does not name the file: %v", what, err)
	}
	var none *types.ResourceNotFoundException
	if errors.As(err, &none) {
		t.Errorf("%s: the error claims that the table does not exist: %v", what, err)
	}
}

func TestTruncatedFileNeverLosesItemsSilently(t *testing.T) {
	whole := filled(t)
	refused := 0
	for size := len(whole) - 1; size >= 0; size = min(size-1, max(size-1-len(whole)/47, 0)) {
		path := filepath.Join(t.TempDir(), "locks.db")
		lab.OK(t, os.WriteFile(path, whole[:size], 0o600))
		what := fmt.Sprintf("%d of %d bytes", size, len(whole))
		n, err := found(t, path)
		switch {
		case err != nil:
			refused++
			isRefused(t, what, path, err)
		case n != 40:
			t.Errorf("%s: %d of 40 items", what, n)
		}
		checkFree(t, path)
	}
	lab.Want(t, "a truncated file was refused", refused > 0, true)
}

// checkFree fails the test if this process still has a lock on the file.
func checkFree(t *testing.T, path string) {
	t.Helper()
	f := lab.Must(os.OpenFile(path, os.O_RDWR, 0))(t)
	defer f.Close()
	lab.Want(t, path+" is free", isFree(f), true)
}

// A crash of leasehold cannot leave any of the files below. So each of them was damaged, or
// belongs to another program or version, and Open must not turn it into a store.
func TestOpenRefusesFileThatContainsNoStore(t *testing.T) {
	database := func(bucket string) func(t *testing.T, path string) {
		return func(t *testing.T, path string) {
			db := lab.Must(bbolt.Open(path, 0o600, nil))(t)
			if bucket != "" {
				lab.OK(t, db.Update(func(tx *bbolt.Tx) error { return lab.ErrorOf(tx.CreateBucket([]byte(bucket))) }))
			}
			lab.OK(t, db.Close())
		}
	}
	text := func(text string) func(t *testing.T, path string) {
		return func(t *testing.T, path string) { lab.OK(t, os.WriteFile(path, []byte(text), 0o600)) }
	}
	type variant struct {
		write func(t *testing.T, path string)
		says  []string // texts that the error contains in addition to the path
		is    error
	}
	lab.Variants(t, map[string]variant{
		"empty file":               {text(""), nil, boltstore.ErrEmpty},
		"text file":                {text(strings.Repeat("not a database ", 1000)), nil, nil},
		"database without buckets": {database(""), []string{" is damaged: "}, nil},
		"other format":             {database("localdynamo2"), []string{`"localdynamo1"`, `"localdynamo2"`, "use the version of leasehold"}, nil},
	}, func(t *testing.T, c variant) {
		path := filepath.Join(t.TempDir(), "locks.db")
		c.write(t, path)
		before := lab.Must(os.ReadFile(path))(t)
		_, err := boltstore.Open(path)
		if err == nil || c.is != nil && !errors.Is(err, c.is) {
			t.Fatalf("opened: %v", err)
		}
		lab.WantText(t, "Open", err, append(c.says, path)...)
		checkUnchanged(t, path, before)
	})
}

func TestPanicInTransactionChangesNothing(t *testing.T) {
	path, client := newFile(t)
	store := lab.Must(boltstore.Open(path))(t)
	defer store.Close()
	func() {
		defer func() {
			lab.Want(t, "recovered panic", recover(), "boom")
		}()
		_ = store.Update(func(tx localdynamo.Tx) error {
			lab.OK(t, tx.Put([]byte("half"), []byte("x")))
			panic("boom")
		})
	}()
	checkFree(t, path)
	lab.OK(t, store.View(func(tx localdynamo.Tx) error {
		lab.Want(t, "half of an update", tx.Get([]byte("half")), nil)
		return nil
	}))
	lab.Want(t, "n", stored(t, client, "k"), 0)
}

func TestErrorOfDamagedStoreFileIsPermanent(t *testing.T) {
	whole := filled(t)
	contents := map[string][]byte{
		"other content": bytes.Repeat([]byte("no store "), 2000), "empty": nil,
		"cut off": whole[:len(whole)/3], "one page": whole[:os.Getpagesize()],
	}
	lab.Variants(t, contents, func(t *testing.T, content []byte) {
		path, _ := newFile(t)
		store := lab.Must(boltstore.Open(path))(t)
		lab.OK(t, os.WriteFile(path, content, 0o600))
		err := store.View(func(localdynamo.Tx) error { return nil })
		lab.Want(t, fmt.Sprint("permanent: ", err), filefault.IsLasting(err), true)
	})
	path, _ := newFile(t)
	store := lab.Must(boltstore.Open(path))(t)
	boom := errors.New("boom")
	if err := store.Update(func(localdynamo.Tx) error { return boom }); err != boom { //nolint:errorlint // Update must return the error unchanged, not wrapped
		t.Errorf("the caller's own error is returned as %v", err)
	}
}

func TestStoreFileIsCreatedOnceByConcurrentCallsOfMakeAndOpen(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "locks.db")
	var made atomic.Int32
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() {
			if ours, err := boltstore.Make(path, nil); err != nil {
				t.Error(err)
			} else if ours {
				made.Add(1)
			}
		})
		wg.Go(func() {
			lab.OK(t, lab.ErrorOf(boltstore.Open(path)))
		})
	}
	wg.Wait()
	lab.WantRange(t, "made", made.Load(), 0, 1)
	lab.Want(t, "files left behind", len(lab.Must(os.ReadDir(dir))(t)), 1)
}

func TestErrorOfNewStoreStatesOnlyWhyItWasNotMade(t *testing.T) {
	spoil := func(f *os.File) error { return f.Truncate(100) }
	if _, err := boltstore.Make(filepath.Join(t.TempDir(), "locks.db"), spoil); err == nil || errors.Is(err, fs.ErrClosed) {
		t.Errorf("the error is: %v", err)
	}
}

func TestOpenDoesNotChangeExistingStoreFile(t *testing.T) {
	path, _ := newFile(t)
	before := lab.Must(os.ReadFile(path))(t)
	lab.OK(t, lab.Must(boltstore.Open(path))(t).Close())
	checkUnchanged(t, path, before)
}

// checkUnchanged fails the test unless the file still contains exactly the given bytes.
func checkUnchanged(t *testing.T, path string, before []byte) {
	t.Helper()
	lab.Want(t, path+" is unchanged", bytes.Equal(before, lab.Must(os.ReadFile(path))(t)), true)
}

// The item consists of numbers such as 11e-130. DynamoDB counts two bytes for each number, but the
// file contains each number with all its zeros.
func TestFileWithLargestAllowedItemIsNotReportedAsDamaged(t *testing.T) {
	path, client := newFile(t)
	var set []string
	for n := range 90 {
		set = append(set, fmt.Sprintf("%de-130", 10+n))
	}
	list := make([]types.AttributeValue, 2260) // 409,060 bytes of 409,600
	for i := range list {
		list[i] = &types.AttributeValueMemberNS{Value: set}
	}
	item := map[string]types.AttributeValue{"id": &types.AttributeValueMemberS{Value: "large"}, "l": &types.AttributeValueMemberL{Value: list}}
	lab.Must(client.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: aws.String("locks"), Item: item}))(t)
	lab.Want(t, "items", lab.Must(found(t, path))(t), 1)
}
