package cli_test

import (
	"maps"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/rwlock"
)

func TestInEveryLayoutAFreeKeyIsForgottenAndAHeldOneIsNot(t *testing.T) {
	t.Parallel()
	for _, f := range foreigners() {
		t.Run(f.layout.Name(), func(t *testing.T) {
			t.Parallel()
			put, env := f.holds(t)
			says := func(wantCode int, want string, args ...string) {
				t.Helper()
				if out, errs, code := said(t, env, args...); code != wantCode || !strings.Contains(out+errs, want) {
					t.Errorf("%q: exit code %d, %s%s", args, code, out, errs)
				}
			}
			says(1, " is held by "+f.name, "forget", "job", "--yes")
			says(0, "", "get", "job", "--held")
			damaged := maps.Clone(f.item)
			delete(damaged, f.damaged)
			put(damaged)
			says(1, "leasehold break --damaged", "forget", "job", "--yes")
			says(0, "", "get", "--raw", "job")
			says(0, "", "run", "mine", "--", "true")
			if f.layout.Capabilities().KeepOnRelease {
				says(0, "forgot mine", "forget", "mine", "--yes")
			} else {
				says(1, "no such record", "forget", "mine", "--yes")
			}
			says(1, "no such record", "get", "--raw", "mine")
			says(0, "", "run", "mine", "--", "true")
			says(0, "", "get", "--raw", "job")
		})
	}
}

func TestAReadWriteLockIsForgottenOnceNobodyReadsWritesOrIntendsTo(t *testing.T) {
	t.Parallel()
	db, env := served(t)
	env = append(env, "LEASEHOLD_TABLE=locks")
	locks, err := leasehold.New(db, leasehold.Config{Table: "locks"})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = locks.Close(t.Context()) }()
	set, err := rwlock.New(locks, "set")
	if err != nil {
		t.Fatal(err)
	}
	forget := func(wantCode int, want string) {
		t.Helper()
		if out, errs, code := said(t, env, "forget", "set", "--yes", "--json"); code != wantCode || !strings.Contains(out+errs, want) {
			t.Errorf("exit code %d, %s%s", code, out, errs)
		}
	}
	read, err := set.AcquireRead(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	forget(1, `"error":"held"`)
	if err := read.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	write, err := set.AcquireWrite(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	forget(1, `"error":"held"`)
	held, err := db.GetItem(t.Context(), &dynamodb.GetItemInput{TableName: aws.String("locks"), Key: map[string]types.AttributeValue{"key": s("set")}})
	if err != nil {
		t.Fatal(err)
	}
	if err := write.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	free, err := db.GetItem(t.Context(), &dynamodb.GetItemInput{TableName: aws.String("locks"), Key: map[string]types.AttributeValue{"key": s("set")}})
	if err != nil {
		t.Fatal(err)
	}
	intended := maps.Clone(free.Item)
	intended["intent"] = held.Item["writer"]
	put := func(item map[string]types.AttributeValue) {
		if _, err := db.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: aws.String("locks"), Item: item}); err != nil {
			t.Fatal(err)
		}
	}
	put(intended)
	forget(1, "set is free, but ")
	put(free.Item)
	_, err = locks.TryAcquire(t.Context(), "set")
	if err == nil || !strings.Contains(err.Error(), "start over with leasehold forget") {
		t.Errorf("the error does not say what to do: %v", err)
	}
	forget(0, `"kind":"rw","removed":1`)
	lock, err := locks.TryAcquire(t.Context(), "set")
	if err != nil {
		t.Fatalf("it is no lock after all: %v", err)
	}
	if err := lock.Release(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestTheRowOfASharedLeaseIsNotForgotten(t *testing.T) {
	t.Parallel()
	db, env := served(t)
	env = append(env, "LEASEHOLD_TABLE=locks")
	locks, err := leasehold.New(db, leasehold.Config{Table: "locks", SharedLease: true})
	if err != nil {
		t.Fatal(err)
	}
	lock, err := locks.Acquire(t.Context(), "job")
	if err != nil {
		t.Fatal(err)
	}
	row := "leasehold/session/" + lock.Record().Session
	for _, when := range []string{"while it lives", "after its end"} {
		if _, errs, code := said(t, env, "forget", row, "--yes"); code != 1 || !strings.Contains(errs, "is the row of a shared lease, and no key: nothing was removed") {
			t.Errorf("%s: exit code %d, %s", when, code, errs)
		}
		if _, errs, code := said(t, env, "get", "--raw", row); code != 0 {
			t.Errorf("%s: it is gone: %s", when, errs)
		}
		if err := locks.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}
