package store

import (
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/arn"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/cli/misuse"
	"github.com/leasehold-go/leasehold/regions"
)

// failover returns the Regions of --failover. It refuses a list that no outage could be
// survived with, before anything is sent.
func (s *Settings) failover(at *Store) ([]string, error) {
	if s.Failover == "" {
		return nil, nil
	}
	by := s.by("LEASEHOLD_FAILOVER", "--failover")
	options := at.DB.Options()
	if server := aws.ToString(options.BaseEndpoint); server != "" {
		return nil, misuse.Errorf("%s does not go with the endpoint %s: leave out one", by, server)
	}
	if arn.IsARN(at.Table) {
		return nil, misuse.Errorf("%s needs the name of the table, not its ARN: use --table %s", by, at.Table[strings.LastIndexByte(at.Table, '/')+1:])
	}
	seen := []string{options.Region}
	for name := range strings.SplitSeq(s.Failover, ",") {
		switch name = strings.TrimSpace(name); {
		case name == "":
			return nil, misuse.Errorf("%s %q has an empty Region: separate by one comma", by, s.Failover)
		case slices.Contains(seen, name):
			return nil, misuse.Errorf("%s names the Region %s again: name others", by, name)
		}
		if err := checkRegion(name, by, false); err != nil {
			return nil, err
		}
		seen = append(seen, name)
	}
	return seen[1:], nil
}

// Regions returns a client for each Region, home first; for a local store the only one.
func (s *Store) Regions() []*dynamodb.Client {
	all := []*dynamodb.Client{s.DB}
	for _, name := range s.failover {
		all = append(all, dynamodb.New(s.DB.Options(), func(o *dynamodb.Options) { o.Region = name }))
	}
	return all
}

// Requests returns what requests for locks go through: DB, or with --failover one that
// leaves a Region which does not serve. DB is not replaced after the first call.
func (s *Store) Requests() leasehold.DB {
	if len(s.failover) == 0 {
		return s.DB
	}
	if s.regions == nil {
		all := s.Regions()
		s.regions = regions.New(all[0], all[1:]...)
	}
	return s.regions
}

// Region returns the Region that requests for locks go to now; empty without --failover.
func (s *Store) Region() string {
	if s.regions == nil {
		return ""
	}
	return s.regions.Region()
}
