// Election runs an election: one of several processes leads. When the leader exits or dies,
// another process becomes the leader. The argument is the name of this process, which the
// other processes see. The default is the host name.
//
//	go run ./cmd/leasehold local -- sh -c 'go run ./examples/election north & go run ./examples/election south'
//
// Ctrl-C ends both processes.
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/election"
	"github.com/leasehold-go/leasehold/table"
)

func main() {
	name, err := os.Hostname()
	if len(os.Args) > 1 {
		name, err = os.Args[1], nil
	}
	if err != nil {
		log.Fatal(err)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err = run(ctx, name)
	stop()
	if err != nil && !errors.Is(err, context.Canceled) {
		log.Fatal(err)
	}
}

func run(ctx context.Context, name string) error {
	cfg, err := config.LoadDefaultConfig(ctx)
	if err != nil {
		return err
	}
	db := dynamodb.NewFromConfig(cfg)
	if err := table.Create(ctx, db, table.Spec{Name: "locks"}); err != nil {
		return err
	}
	// If the leader dies, another process leads after about one lease: 5 s here, 20 s by default.
	locks, err := leasehold.New(db, leasehold.Config{Table: "locks", Lease: 5 * time.Second})
	if err != nil {
		return err
	}
	defer locks.Close(context.WithoutCancel(ctx))
	scheduler, err := election.New(locks, "scheduler")
	if err != nil {
		return err
	}

	go func() {
		for leader, err := range scheduler.Observe(ctx) {
			if err != nil {
				log.Print(err)
			} else if leader.Value != "" {
				fmt.Printf("%s sees that %s leads\n", name, leader.Value)
			}
		}
	}()
	return scheduler.Lead(ctx, name, func(ctx context.Context, term *leasehold.Lock) error {
		fmt.Printf("%s leads, term %d\n", name, term.Token())
		<-ctx.Done() // the leader's work goes here; write its results with term.Commit
		return context.Cause(ctx)
	})
}
