package leaseholdgocron_test

import (
	"context"
	"fmt"
	"log"

	"github.com/go-co-op/gocron/v2"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/contrib/leaseholdgocron"
	"github.com/leasehold-go/leasehold/localdynamo"
	"github.com/leasehold-go/leasehold/table"
)

func ExampleNewLocker() {
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
	locker, err := leaseholdgocron.NewLocker(locks, "jobs/")
	if err != nil {
		log.Fatal(err)
	}
	s, err := gocron.NewScheduler(gocron.WithDistributedLocker(locker))
	if err != nil {
		log.Fatal(err)
	}

	ran := make(chan string, 1)
	report := func() { ran <- "the report" }
	if _, err := s.NewJob(gocron.OneTimeJob(gocron.OneTimeJobStartImmediately()), gocron.NewTask(report), gocron.WithName("report")); err != nil {
		log.Fatal(err)
	}
	s.Start()
	fmt.Println("wrote", <-ran, "in one process")
	if err := s.Shutdown(); err != nil {
		log.Fatal(err)
	}

	// Output:
	// wrote the report in one process
}
