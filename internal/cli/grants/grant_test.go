package grants

import (
	"context"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/leasehold-go/leasehold/internal/cli/store"
	"github.com/leasehold-go/leasehold/layout"
)

func TestGrantPlaceDependsOnRegionEndpointAndAccount(t *testing.T) {
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
		if d := made.differs(same); d != "" {
			t.Errorf("%s differs by %s", what, d)
		}
		if d := same.differs(made); d != "" {
			t.Errorf("%s differs by %s the other way round", what, d)
		}
	}
	for want, other := range map[string]Place{
		"--file":         {File: "/locks.db"},
		"--endpoint-url": at("locks", "eu-west-1", "https://dynamodb.example", "111111111111"),
		"--region":       at("locks", "eu-west-2", "", "111111111111"),
		"--profile":      at("locks", "eu-west-1", "", "222222222222"),
	} {
		if d := made.differs(other); d != want {
			t.Errorf("%v differs from %v by %q, want %s", other, made, d, want)
		}
	}
	if p := at("arn:aws:dynamodb:eu-west-1:111111111111:table/locks", "eu-west-1", "", "222222222222"); p.Account != "" {
		t.Errorf("a table whose name has its account is said to be of the caller's, %s", p.Account)
	}
	if p := at("locks", "local", "http://127.0.0.1:8000", "222222222222"); p.Account != "" {
		t.Errorf("a server on loopback is said to have the account %s", p.Account)
	}
}
