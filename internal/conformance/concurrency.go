package conformance

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

const writers = 64

// concurrencyCases returns the cases in which many clients write the same items at the same time.
func concurrencyCases() []Case {
	one := Item{":one": num("1")}
	return []Case{
		{
			Name: "64 writers of ADD count exactly",
			When: atOnce(func(int) Request { return Update{Do: "ADD n :one", Values: one} }),
			Want: Reply{Count: writers},
			Then: []Item{item(Item{"n": num("64")})},
		},
		{
			Name: "64 writers of SET with a sum count exactly",
			When: atOnce(func(int) Request {
				return Update{Do: "SET n = if_not_exists(n, :zero) + :one", Values: Item{":zero": num("0"), ":one": num("1")}}
			}),
			Want: Reply{Count: writers},
			Then: []Item{item(Item{"n": num("64")})},
		},
		{
			Name: "one of 64 conditional puts wins",
			When: atOnce(func(i int) Request {
				return Put{Item: item(Item{"winner": num(fmt.Sprint(i))}), If: "attribute_not_exists(pk)"}
			}),
			Want: Reply{Count: 1},
		},
		{
			Name:  "one of 64 updates of one version wins",
			Given: []Item{item(Item{"version": num("1")})},
			When: atOnce(func(int) Request {
				return Update{Do: "SET version = :two", If: "version = :one", Values: Item{":one": num("1"), ":two": num("2")}}
			}),
			Want: Reply{Count: 1},
			Then: []Item{item(Item{"version": num("2")})},
		},
		{
			Name:  "one of 64 conditional deletes wins",
			Given: []Item{item(nil)},
			When:  atOnce(func(int) Request { return Delete{If: "attribute_exists(pk)"} }),
			Want:  Reply{Count: 1},
			Then:  []Item{},
		},
		{
			Name: "one of 64 transactions on one item wins",
			When: atOnce(func(int) Request {
				return TransactWrite{Writes: []Request{
					Put{If: "attribute_not_exists(pk)"},
					Put{Item: keyedHash("other", Item{"n": num("1")})},
				}}
			}),
			Want: Reply{Count: 1},
			Then: []Item{item(nil), keyedHash("other", Item{"n": num("1")})},
		},
		{
			Name: "64 writers of different items lose no item",
			When: atOnce(func(i int) Request { return Put{Item: manyKeys(writers)[i]} }),
			Want: Reply{Count: writers},
			Then: manyKeys(writers),
		},
	}
}

// atOnce returns a Request that sends one request from each of 64 goroutines at the same time, and
// counts the requests that succeed. If a request fails for another reason than a false condition
// or a cancelled transaction, the test fails.
func atOnce(request func(i int) Request) Request {
	return Call(func(ctx context.Context, client *dynamodb.Client, table string) (Reply, error) {
		var (
			all   sync.WaitGroup
			start = make(chan struct{})
			errs  = make([]error, writers)
		)
		for i := range writers {
			all.Go(func() {
				<-start
				_, errs[i] = request(i).send(ctx, target{client: client, table: table})
			})
		}
		close(start)
		all.Wait()

		var won int32
		for _, err := range errs {
			var failed *types.ConditionalCheckFailedException
			var canceled *types.TransactionCanceledException
			switch {
			case err == nil:
				won++
			case errors.As(err, &failed), errors.As(err, &canceled):
			default:
				return Reply{}, err
			}
		}
		return Reply{Count: won}, nil
	})
}
