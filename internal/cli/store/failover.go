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
	options := at.Home.Options()
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

// RefuseFailover returns an error if --failover is given for a table that does not exist: it
// would be made in one Region, and with TTL, which no table of several Regions may have.
func (s *Settings) RefuseFailover() error {
	if s.Failover == "" {
		return nil
	}
	by := s.by("LEASEHOLD_FAILOVER", "--failover")
	return misuse.Errorf("table create makes a table in one Region, and %s names others: make it as docs/regions.md says, or leave out %s", by, by)
}

// Regions returns a client for each Region, home first; for a local store the only one.
func (s *Store) Regions() []*dynamodb.Client {
	all := []*dynamodb.Client{s.Home}
	for _, name := range s.failover {
		all = append(all, dynamodb.New(s.Home.Options(), func(o *dynamodb.Options) { o.Region = name }))
	}
	return all
}

// Requests returns the DB for all requests about records: Home, or with --failover one that
// leaves a Region which does not serve. Home is not replaced after the first call.
func (s *Store) Requests() leasehold.DB {
	if len(s.failover) == 0 {
		return s.Home
	}
	if s.regions == nil {
		all := s.Regions()
		s.regions = regions.New(all[0], all[1:]...)
	}
	return s.regions
}

// Region returns the Region that requests about records go to now; empty without --failover.
func (s *Store) Region() string {
	if s.regions == nil {
		return ""
	}
	return s.regions.Region()
}
