package boltstore_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"go.etcd.io/bbolt"
	"go.uber.org/goleak"

	"github.com/leasehold-go/leasehold/internal/lab"
	"github.com/leasehold-go/leasehold/localdynamo"
	"github.com/leasehold-go/leasehold/localdynamo/boltstore"
)

// TestMain runs this test binary as a writer if the environment variable boltWriter
// contains the path of a file. The variable boltCount contains the number of increments to
// write. If it is 0, the writer runs until it is killed.
func TestMain(m *testing.M) {
	if path := os.Getenv(boltWriter); path != "" {
		write := write
		if os.Getenv(boltKind) != "" {
			write = writeKind
		}
		if err := write(path, os.Getenv(boltKey), os.Getenv(boltCount)); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	goleak.VerifyTestMain(m)
}

const (
	boltWriter = "LEASEHOLD_TEST_BOLT_WRITER"
	boltKey    = "LEASEHOLD_TEST_BOLT_KEY"
	boltCount  = "LEASEHOLD_TEST_BOLT_COUNT"
	boltKind   = "LEASEHOLD_TEST_BOLT_KIND"
)

// write repeatedly adds one to the counter of a key. It prints each value as soon as the
// store has acknowledged it.
func write(path, key, count string) error {
	store, err := boltstore.Open(path)
	if err != nil {
		return err
	}
	engine := localdynamo.New(localdynamo.WithStore(store))
	client := engine.Client()
	left, err := strconv.Atoi(count)
	if err != nil {
		return err
	}
	for n := 0; left == 0 || n < left; n++ {
		value, err := increment(context.Background(), client, key)
		if err != nil {
			return err
		}
		fmt.Println(value)
	}
	return engine.Close()
}

func increment(ctx context.Context, client *dynamodb.Client, key string) (string, error) {
	out, err := client.UpdateItem(ctx, &dynamodb.UpdateItemInput{
		TableName:                 aws.String("locks"),
		Key:                       id(key),
		UpdateExpression:          aws.String("ADD n :one"),
		ConditionExpression:       aws.String("attribute_not_exists(id) OR attribute_exists(n)"),
		ExpressionAttributeValues: map[string]types.AttributeValue{":one": &types.AttributeValueMemberN{Value: "1"}},
		ReturnValues:              types.ReturnValueUpdatedNew,
	})
	if err != nil {
		return "", err
	}
	return out.Attributes["n"].(*types.AttributeValueMemberN).Value, nil
}

func id(key string) map[string]types.AttributeValue {
	return map[string]types.AttributeValue{"id": &types.AttributeValueMemberS{Value: key}}
}

// open returns a client of a new engine that stores its data in the file. The engine is
// closed at the end of the test.
func open(t testing.TB, path string) *dynamodb.Client {
	t.Helper()
	store := lab.Must(boltstore.Open(path))(t)
	engine := localdynamo.New(localdynamo.WithStore(store))
	t.Cleanup(func() { lab.OK(t, engine.Close()) })
	return engine.Client()
}

var tableOfLocks = &dynamodb.CreateTableInput{
	TableName:            aws.String("locks"),
	AttributeDefinitions: []types.AttributeDefinition{{AttributeName: aws.String("id"), AttributeType: types.ScalarAttributeTypeS}},
	KeySchema:            []types.KeySchemaElement{{AttributeName: aws.String("id"), KeyType: types.KeyTypeHash}},
	BillingMode:          types.BillingModePayPerRequest,
}

// newFile creates a file with the table "locks". It returns the path and a client.
func newFile(t testing.TB) (string, *dynamodb.Client) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "state", "locks.db")
	client := open(t, path)
	lab.Must(client.CreateTable(t.Context(), tableOfLocks))(t)
	return path, client
}

func stored(t *testing.T, client *dynamodb.Client, key string) int {
	t.Helper()
	out := lab.Must(client.GetItem(t.Context(), &dynamodb.GetItemInput{TableName: aws.String("locks"), Key: id(key)}))(t)
	if out.Item == nil {
		return 0
	}
	return lab.Must(strconv.Atoi(out.Item["n"].(*types.AttributeValueMemberN).Value))(t)
}

// start runs this test binary as a writer. It returns the process and a scanner of its
// output lines.
func start(t *testing.T, path, key string, count int, env ...string) (*exec.Cmd, *bufio.Scanner) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(append(os.Environ(), boltWriter+"="+path, boltKey+"="+key, boltCount+"="+strconv.Itoa(count)), env...)
	cmd.Stderr = os.Stderr
	out := lab.Must(cmd.StdoutPipe())(t)
	lab.OK(t, cmd.Start())
	return cmd, bufio.NewScanner(out)
}

func atoi(t *testing.T, s string) int {
	t.Helper()
	return lab.Must(strconv.Atoi(s))(t)
}

// checkFile has bbolt check every page of the file.
func checkFile(t *testing.T, path string) {
	t.Helper()
	db := lab.Must(bbolt.Open(path, 0o600, &bbolt.Options{Timeout: time.Second}))(t)
	defer func() { _ = db.Close() }()
	lab.OK(t, db.View(func(tx *bbolt.Tx) error {
		for err := range tx.Check() {
			t.Error(err)
		}
		return nil
	}))
}

func TestConcurrentProcessesLoseNoIncrementOfCounter(t *testing.T) {
	path, client := newFile(t)
	const processes, each = 16, 20
	var wg sync.WaitGroup
	for range processes {
		cmd, lines := start(t, path, "shared", each)
		wg.Go(func() {
			seen := 0
			for lines.Scan() {
				seen++
			}
			if err := cmd.Wait(); err != nil || seen != each {
				t.Errorf("a process ended after %d of %d increments: %v", seen, each, err)
			}
		})
	}
	wg.Wait()
	lab.Want(t, "increments", stored(t, client, "shared"), processes*each)
}

func TestNewStoreFileIsReadableOnlyByOwner(t *testing.T) {
	path, _ := newFile(t)
	for name, want := range map[string]os.FileMode{path: 0o600, filepath.Dir(path): 0o700 | os.ModeDir} {
		info := lab.Must(os.Stat(name))(t)
		lab.Want(t, name, info.Mode(), want)
	}
}

func TestRequestOnLockedFileFailsAtDeadline(t *testing.T) {
	path, client := newFile(t)
	db := lab.Must(bbolt.Open(path, 0o600, nil))(t) // simulates a process that keeps the file locked
	defer func() { _ = db.Close() }()
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	lab.WantErr(t, "increment", lab.ErrorOf(increment(ctx, client, "k")), context.DeadlineExceeded)
}

func TestViewOfClosedStoreReturnsError(t *testing.T) {
	store := lab.Must(boltstore.Open(filepath.Join(t.TempDir(), "locks.db")))(t)
	lab.OK(t, store.Close())
	lab.WantFailed(t, "View of a closed store", store.View(func(localdynamo.Tx) error { return nil }))
}

// BenchmarkDurableWrites measures conditional updates by processes that share a file. Each
// update is on disk before it is acknowledged. The case "floor" measures bbolt alone, for
// comparison: one process keeps the file open, and makes one commit for each write.
func BenchmarkDurableWrites(b *testing.B) {
	perSecond := func(b *testing.B) { b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "writes/s") }
	b.Run("floor", func(b *testing.B) {
		db := lab.Must(bbolt.Open(filepath.Join(b.TempDir(), "floor.db"), 0o600, nil))(b)
		defer func() { _ = db.Close() }()
		for n := range b.N {
			lab.OK(b, db.Update(func(tx *bbolt.Tx) error {
				bucket, err := tx.CreateBucketIfNotExists([]byte("floor"))
				if err != nil {
					return err
				}
				return bucket.Put([]byte("lock"), []byte(strconv.Itoa(n)))
			}))
		}
		perSecond(b)
	})
	for _, processes := range []int{1, 4} {
		b.Run(fmt.Sprint("processes-", processes), func(b *testing.B) {
			path, _ := newFile(b)
			b.ResetTimer() // the measurement includes the start of the processes, so each process must write many times
			var wg sync.WaitGroup
			for p := range processes {
				wg.Go(func() {
					cmd := exec.CommandContext(b.Context(), os.Args[0])
					cmd.Env = append(os.Environ(), boltWriter+"="+path, boltKey+"="+strconv.Itoa(p),
						boltCount+"="+strconv.Itoa((b.N+processes-1)/processes))
					cmd.Stderr = os.Stderr
					if err := cmd.Run(); err != nil {
						b.Error(err)
					}
				})
			}
			wg.Wait()
			perSecond(b)
		})
	}
}
