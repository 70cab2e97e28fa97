// Cron writes a report once a day. The crontab of each host starts the program. The first
// host writes the report, and the other hosts find that it is already written. If the work
// fails or the host dies, the next start of the program writes the report.
//
//	go run ./cmd/leasehold local -- sh -c 'go run ./examples/cron; go run ./examples/cron'
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"time"

	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/table"
)

func main() {
	every := flag.Duration("every", 24*time.Hour, "the period of the report; a day begins at midnight UTC")
	flag.Parse()
	if err := run(context.Background(), *every); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, every time.Duration) error {
	cfg, err := config.LoadDefaultConfig(ctx)
	if err != nil {
		return err
	}
	db := dynamodb.NewFromConfig(cfg)
	if err := table.Create(ctx, db, table.Spec{Name: "locks"}); err != nil {
		return err
	}
	locks, err := leasehold.New(db, leasehold.Config{Table: "locks"})
	if err != nil {
		return err
	}
	defer locks.Close(ctx)

	err = locks.Do(ctx, "daily-report", report, leasehold.Every(every))
	var before *leasehold.DoneError
	if errors.As(err, &before) {
		fmt.Println("the report is written:", &before.Done)
		return nil
	}
	return err
}

// report writes the report. If it returns an error, a later start of the program tries
// again.
func report(ctx context.Context, _ *leasehold.Lock) error {
	fmt.Println("writing the report")
	return ctx.Err()
}
