package grants

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/cli/store"
	"github.com/leasehold-go/leasehold/internal/lab"
	"github.com/leasehold-go/leasehold/internal/plainfile"
	"github.com/leasehold-go/leasehold/layout"
)

func TestOnlyOneOfConcurrentWritesToGrantFileSucceeds(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("files are not locked there")
	}
	const writers, rounds = 8, 30
	content := map[string][]byte{"a missing file": nil, "an empty file": {}}
	for what, before := range content {
		for range rounds {
			path := filepath.Join(t.TempDir(), "grant")
			if before != nil {
				lab.OK(t, os.WriteFile(path, before, 0o600))
			}
			errs := make([]error, writers)
			var ready, done sync.WaitGroup
			ready.Add(writers)
			for i := range writers {
				done.Go(func() {
					g := &File{path: path, file: path, before: before}
					ready.Done()
					ready.Wait()
					errs[i] = g.Write(nil, Grant{Grant: leasehold.Grant{
						ID: string(rune('a' + i)), Table: "locks", Key: leasehold.Key{Partition: "k"}, Owner: "o", Token: int64(i + 1),
						Versions: []string{"v"}, Lease: time.Minute, TrustedUntil: time.Now().Add(time.Minute),
					}})
				})
			}
			done.Wait()
			winner := ""
			for i, err := range errs {
				switch {
				case err == nil && winner == "":
					winner = string(rune('a' + i))
				case err == nil:
					t.Fatalf("%s: two writes succeeded, so one grant is lost", what)
				case !errors.Is(err, plainfile.ErrChanged):
					t.Fatalf("%s: %v", what, err)
				}
			}
			b, err := os.ReadFile(path)
			if in, ok := parse(b); err != nil || !ok || in.ID != winner {
				t.Fatalf("%s: the write of %q succeeded, but the file contains %s, %v", what, winner, b, err)
			}
		}
	}
}

// slowReader is standard output whose reader takes two seconds.
type slowReader struct{}

func (slowReader) Write(b []byte) (int, error) {
	time.Sleep(2 * time.Second)
	return len(b), nil
}

func TestWriteOfGrantFailsIfLeaseEndsMeanwhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := &File{path: Standard}
		lab.OK(t, g.Write(slowReader{}, Grant{Grant: leasehold.Grant{TrustedUntil: time.Now().Add(3 * time.Second)}}))
		lab.WantFailed(t, "a grant that ended", g.Write(slowReader{}, Grant{Grant: leasehold.Grant{TrustedUntil: time.Now().Add(time.Second)}}))
	})
}

func TestRemoveDoesNotDeleteGrantFileWithNewerGrant(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "grant")
	ended := Grant{Grant: leasehold.Grant{ID: "ended", Table: "locks", Lease: time.Minute, TrustedUntil: time.Now().Add(time.Minute)}}
	g := &File{path: path, file: path, Grant: ended}
	lab.OK(t, g.Write(nil, ended))
	lab.OK(t, plainfile.Alone(path, func([]byte) error { return os.Rename(path, path+".old") }))
	lab.OK(t, g.Remove())
	next := ended
	next.ID, next.Token = "next", 2
	lab.OK(t, g.Write(nil, next))
	lab.OK(t, g.Remove())
	if b, err := os.ReadFile(path); err != nil {
		t.Errorf("another grant was removed: %v", err)
	} else if in, ok := parse(b); !ok || in.ID != "next" {
		t.Errorf("the file contains %s", b)
	}
}

func TestComparisonOfPlacesReturnsFlagOfFirstDifference(t *testing.T) {
	at := func(table, region, server, account string) Place {
		return PlaceOf(t.Context(), &store.Store{Target: store.Target{Place: store.Place{Table: table}, Records: store.Records{Layout: layout.Native{}}}, Home: dynamodb.New(dynamodb.Options{
			Region: region, BaseEndpoint: aws.String(server),
			Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
				return aws.Credentials{AccessKeyID: "AKIDEXAMPLE", SecretAccessKey: "secret", AccountID: account}, nil
			}),
		})})
	}
	made := at("locks", "eu-west-1", "", "111111111111")
	for what, same := range map[string]Place{
		"itself":                    made,
		"an unknown account":        at("locks", "eu-west-1", "", ""),
		"a grant without its store": {},
	} {
		lab.Want(t, what, made.differs(same), "")
		lab.Want(t, what+", the other way round", same.differs(made), "")
	}
	for want, other := range map[string]Place{
		"--file":         {File: "/locks.db"},
		"--endpoint-url": at("locks", "eu-west-1", "https://dynamodb.example", "111111111111"),
		"--region":       at("locks", "eu-west-2", "", "111111111111"),
		"--profile":      at("locks", "eu-west-1", "", "222222222222"),
	} {
		lab.Want(t, fmt.Sprintf("flag by which %v differs from %v", other, made), made.differs(other), want)
	}
	p := at("arn:aws:dynamodb:eu-west-1:111111111111:table/locks", "eu-west-1", "", "222222222222")
	lab.Want(t, "account of a table named by its ARN", p.Account, "")
	lab.Want(t, "account on loopback", at("locks", "local", "http://127.0.0.1:8000", "222222222222").Account, "")
}

// FuzzWrittenGrantParsesToSameGrant parses files for the flag --grant. If a file is
// accepted, its grant is written and parsed again. The result must be the same grant, and
// no proper prefix of the written text may be accepted.
func FuzzWrittenGrantParsesToSameGrant(f *testing.F) {
	for _, seed := range []string{
		`{"table":"locks","key":"job","owner":"web/812","token":42,"grant":"g","versions":["v"],"leaseMs":600000,"trustedUntil":"2026-11-21T12:00:00.000Z","file":"/var/lib/leasehold/locks.db"}`,
		`{"table":"locks","key":"job","sortKey":"s","owner":"o","token":1,"grant":"g","versions":["v","w"],"leaseMs":1,"trustedUntil":"2026-11-21T12:00:00Z","region":"eu-west-1","account":"123456789012"}`,
		`{"table":"locks","grant":"g","leaseMs":-1,"trustedUntil":"2026-11-21T12:00:00Z"}`, `{"table":"locks","grant":"g","leaseMs":18446744073710,"trustedUntil":"2026-11-21T12:00:00Z"}`,
		`{}`, ``, `null`, `not a grant`, "\xff",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		g, ok := parse(b)
		if !ok {
			return
		}
		if g.ID == "" || g.Table == "" || g.Lease < 0 || leaseEnds(g).Before(g.TrustedUntil) {
			t.Errorf("%q parses as %+v", b, g)
		}
		written := lab.Must(json.Marshal(g))(t)
		again, ok := parse(written)
		again.TrustedUntil = g.TrustedUntil // the file rounds times to milliseconds, so TrustedUntil may differ
		if !ok || !reflect.DeepEqual(again, g) {
			t.Errorf("%q parses as %+v, which is written as %s and parses as %+v", b, g, written, again)
		}
		lab.Want(t, "difference of the place from its copy", g.At.differs(again.At), "")
		for cut := range written {
			if _, ok := parse(written[:cut]); ok {
				t.Errorf("a truncated grant is accepted: %s", written[:cut])
			}
		}
	})
}
