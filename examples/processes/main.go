// Processes starts three processes that contend for one lock, and kills the process that
// holds it. It shows that another process takes the lock over and continues the work of the
// dead process.
//
//	go run ./cmd/leasehold local -- go run ./examples/processes
package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/table"
)

func main() {
	var err error
	if len(os.Args) > 1 {
		err = work(context.Background(), os.Args[1])
	} else {
		err = play(context.Background())
	}
	if err != nil {
		log.Fatal(err)
	}
}

// work prints numbered pages under the lock until stdin is closed. The lock's record
// contains the number of the last page, so the next holder continues there.
func work(ctx context.Context, name string) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		stop()
	}()
	locks, err := open(ctx, name)
	if err != nil {
		return err
	}
	defer locks.Close(context.WithoutCancel(ctx))

	err = locks.Do(ctx, "book", func(ctx context.Context, lock *leasehold.Lock) error {
		fmt.Println(name, "holds the lock")
		if dead, ok := lock.TookOver(); ok {
			fmt.Println(name, "took over from", strings.Split(dead.Owner, "/")[0])
		}
		page, _ := strconv.Atoi(string(lock.Record().Data)) // Atoi returns 0 if no page has been written yet
		for {
			page++
			if err := lock.Renew(ctx, leasehold.WithData([]byte(strconv.Itoa(page)))); err != nil {
				return err
			}
			fmt.Println(name, "wrote page", page)
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-time.After(200 * time.Millisecond):
			}
		}
	})
	if errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

// play starts the three processes. It kills the first holder that writes page 3, and ends
// the other two processes once the next holder has written a page.
func play(ctx context.Context) error {
	locks, err := open(ctx, "play") // creates the table
	if err != nil {
		return err
	}
	if err := locks.Close(ctx); err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	lines := make(chan string)
	processes := map[string]*exec.Cmd{}
	var inputs []io.Closer
	var readers sync.WaitGroup
	for _, name := range []string{"first", "second", "third"} {
		cmd := exec.CommandContext(ctx, self, name)
		cmd.Stderr = os.Stderr
		in, err := cmd.StdinPipe()
		if err != nil {
			return err
		}
		out, err := cmd.StdoutPipe()
		if err != nil {
			return err
		}
		if err := cmd.Start(); err != nil {
			return err
		}
		processes[name], inputs = cmd, append(inputs, in)
		readers.Go(func() {
			for s := bufio.NewScanner(out); s.Scan(); {
				lines <- s.Text()
			}
			_ = cmd.Wait() // Wait returns an error for the killed process
		})
	}
	go func() {
		readers.Wait()
		close(lines)
	}()

	killed := ""
	for line := range lines {
		fmt.Println(line)
		name, did, _ := strings.Cut(line, " ")
		switch {
		case did == "wrote page 3":
			killed = name
			if err := processes[name].Process.Kill(); err != nil {
				return err
			}
			fmt.Println("killed", name+": its lease ends in two seconds")
		case killed != "" && name != killed && strings.HasPrefix(did, "wrote page "):
			for _, in := range inputs {
				_ = in.Close()
			}
		}
	}
	return nil
}

// open returns a client whose owner is the name of the process, and creates the table.
func open(ctx context.Context, name string) (*leasehold.Client, error) {
	cfg, err := config.LoadDefaultConfig(ctx)
	if err != nil {
		return nil, err
	}
	db := dynamodb.NewFromConfig(cfg)
	if err := table.Create(ctx, db, table.Spec{Name: "locks"}); err != nil {
		return nil, err
	}
	return leasehold.New(db, leasehold.Config{Table: "locks", Owner: name, Lease: 2 * time.Second})
}
