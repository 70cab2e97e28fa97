package byname_test

import (
	"context"
	"fmt"
	"log"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/contrib/byname"
	"github.com/leasehold-go/leasehold/localdynamo"
	"github.com/leasehold-go/leasehold/table"
)

func Example() {
	ctx := context.Background()
	db := localdynamo.New().Client() // on AWS: dynamodb.NewFromConfig(cfg)
	if err := table.Create(ctx, db, table.Spec{Name: "locks"}); err != nil {
		log.Fatal(err)
	}
	locks, err := leasehold.New(db, leasehold.Config{Table: "locks"})
	if err != nil {
		log.Fatal(err)
	}
	defer locks.Close(ctx)
	names, err := byname.New(locks, "certificates/")
	if err != nil {
		log.Fatal(err)
	}

	// A library that knows only the lock's name calls Lock and Unlock.
	if err := names.Lock(ctx, "issue_example.com"); err != nil {
		log.Fatal(err)
	}
	// During the work, Err reports whether the lock was lost.
	if lock, ok := names.Held("issue_example.com"); ok {
		fmt.Println(lock.Key(), lock.Err())
	}
	if err := names.Unlock(ctx, "issue_example.com"); err != nil {
		log.Fatal(err)
	}

	// Output:
	// certificates/issue_example.com <nil>
}
