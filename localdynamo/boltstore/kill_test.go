package boltstore_test

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/leasehold-go/leasehold/internal/lab"
	"github.com/leasehold-go/leasehold/localdynamo"
	"github.com/leasehold-go/leasehold/localdynamo/boltstore"
)

// numbered returns an item with the given key and the number n. If expires is not 0, the
// item also has this expiry.
func numbered(key string, n int, expires int64) map[string]types.AttributeValue {
	item := id(key)
	item["n"] = &types.AttributeValueMemberN{Value: strconv.Itoa(n)}
	if expires != 0 {
		item["ttl"] = &types.AttributeValueMemberN{Value: strconv.FormatInt(expires, 10)}
	}
	return item
}

// writes are the kinds of writes that the test interrupts by killing the process. Each
// function sends write number n.
var writes = map[string]func(ctx context.Context, client *dynamodb.Client, n int) error{
	"put": func(ctx context.Context, client *dynamodb.Client, n int) error {
		return lab.ErrorOf(client.PutItem(ctx, &dynamodb.PutItemInput{TableName: aws.String("locks"), Item: numbered("a", n, 0)}))
	},
	"update": func(ctx context.Context, client *dynamodb.Client, _ int) error {
		return lab.ErrorOf(increment(ctx, client, "a"))
	},
	"delete": func(ctx context.Context, client *dynamodb.Client, n int) error {
		return lab.ErrorOf(client.DeleteItem(ctx, &dynamodb.DeleteItemInput{TableName: aws.String("locks"), Key: id(fmt.Sprint("a", n))}))
	},
	"transaction": func(ctx context.Context, client *dynamodb.Client, n int) error {
		put := func(key string) types.TransactWriteItem {
			return types.TransactWriteItem{Put: &types.Put{TableName: aws.String("locks"), Item: numbered(key, n, 0)}}
		}
		return lab.ErrorOf(client.TransactWriteItems(ctx, &dynamodb.TransactWriteItemsInput{TransactItems: []types.TransactWriteItem{put("a"), put("b")}}))
	},
	"table": func(ctx context.Context, client *dynamodb.Client, n int) error {
		more := *tableOfLocks
		more.TableName = aws.String(fmt.Sprintf("more-%03d", n))
		return lab.ErrorOf(client.CreateTable(ctx, &more))
	},
	// Each write also removes the expired item of the previous write, in the same transaction.
	"TTL": func(ctx context.Context, client *dynamodb.Client, n int) error {
		long := time.Now().Add(-2 * time.Hour).Unix()
		return lab.ErrorOf(client.TransactWriteItems(ctx, &dynamodb.TransactWriteItemsInput{TransactItems: []types.TransactWriteItem{
			{Put: &types.Put{TableName: aws.String("locks"), Item: numbered("a", n, 0)}},
			{Put: &types.Put{TableName: aws.String("locks"), Item: numbered(fmt.Sprint("expired", n), n, long)}},
		}}))
	},
}

// writeKind sends writes of one kind, and numbers them consecutively, beginning with the given
// number. It prints each number once the store has acknowledged the write.
func writeKind(path, first, _ string) error {
	store, err := boltstore.Open(path)
	if err != nil {
		return err
	}
	client := localdynamo.New(localdynamo.WithStore(store)).Client()
	n, err := strconv.Atoi(first)
	if err != nil {
		return err
	}
	for ; ; n++ {
		if err := writes[os.Getenv(boltKind)](context.Background(), client, n); err != nil {
			return err
		}
		fmt.Println(n)
	}
}

// done returns how many writes of the given kind the file contains. It fails the test if a
// write is incomplete or out of order.
func done(t *testing.T, client *dynamodb.Client, kind string) int {
	t.Helper()
	switch kind {
	case "transaction":
		lab.Want(t, "the other half of a transaction", stored(t, client, "b"), stored(t, client, "a"))
	case "table":
		var names []string // collects the names from several replies, because one reply contains at most a hundred names
		for pages := dynamodb.NewListTablesPaginator(client, &dynamodb.ListTablesInput{}); pages.HasMorePages(); {
			out := lab.Must(pages.NextPage(t.Context()))(t)
			names = append(names, out.TableNames...)
		}
		for i, name := range names[1:] { // after "locks"
			lab.Want(t, "name of a table", name, fmt.Sprintf("more-%03d", i+1))
		}
		return len(names) - 1
	case "delete":
		n := 0
		for stored(t, client, fmt.Sprint("a", n+1)) == 0 {
			n++
		}
		lab.Want(t, fmt.Sprint("the item after ", n), stored(t, client, fmt.Sprint("a", n+2)), 1)
		return n
	case "TTL":
		n := stored(t, client, "a")
		lab.Want(t, "an expired item", stored(t, client, fmt.Sprint("expired", n)), 0)
	}
	return stored(t, client, "a")
}

func TestKillDuringWriteLosesNoAcknowledgedWrite(t *testing.T) {
	for kind := range writes {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			path, client := newFile(t)
			switch kind {
			case "delete":
				for n := range 100 {
					lab.Must(client.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: aws.String("locks"), Item: numbered(fmt.Sprint("a", n+1), 1, 0)}))(t)
				}
			case "TTL":
				lab.Must(client.UpdateTimeToLive(t.Context(), &dynamodb.UpdateTimeToLiveInput{
					TableName: aws.String("locks"), TimeToLiveSpecification: &types.TimeToLiveSpecification{AttributeName: aws.String("ttl"), Enabled: aws.Bool(true)},
				}))(t)
			}
			for round := range 3 {
				before := done(t, client, kind)
				cmd, lines := start(t, path, strconv.Itoa(before+1), 0, boltKind+"="+kind)
				acknowledged := 0
				for seen := 0; seen < 3+round && lines.Scan(); seen++ {
					acknowledged = atoi(t, lines.Text())
				}
				lab.OK(t, cmd.Process.Kill())
				for lines.Scan() { // reads what the writer printed before it was killed
					acknowledged = atoi(t, lines.Text())
				}
				_ = cmd.Wait() // ignores the error, which only says that the process was killed
				if acknowledged < before+3 {
					t.Fatalf("round %d: %d writes were acknowledged after %d", round, acknowledged, before)
				}
				if n := done(t, client, kind); n < acknowledged || n > acknowledged+1 {
					t.Fatalf("round %d: the file has %d writes after %d were acknowledged", round, n, acknowledged)
				}
			}
			checkFile(t, path)
		})
	}
}
