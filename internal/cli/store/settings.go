package store

import (
	"cmp"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/cli/arguments"
	"github.com/leasehold-go/leasehold/internal/cli/failure"
	"github.com/leasehold-go/leasehold/internal/cli/wording"
	"github.com/leasehold-go/leasehold/internal/protocol"
	"github.com/leasehold-go/leasehold/internal/visible"
)

// DefaultTable is the default name of the table in a local store.
const DefaultTable = "leasehold"

// Settings contains the environment and the flags about the lock table. A field is empty if
// its flag was not given. The environment then decides.
type Settings struct {
	Table, File               string
	Layout                    arguments.Text
	Attributes                Attributes
	Region, Profile, Endpoint string
	Failover                  string // other Regions of the table, separated by commas
	OfGrant                   bool   // Table, Region and Endpoint come from a grant

	byVariable []string // variables in AWSVariables whose values are used instead of flags

	LookupEnv  func(name string) (string, bool)
	SetByRun   func(table, file string) bool // reports whether an outer leasehold run has set the environment variables of its CMD to this table and file
	MachineDir string                        // the machine's store is used if this directory exists
	OnEC2      func() bool                   // reports whether this machine is an EC2 instance
	OnTrial    func() bool                   // reports whether the user tries leasehold out, running it from its own source
}

// Place returns where the locks are stored. A flag decides first. Without a flag,
// LEASEHOLD_TABLE or LEASEHOLD_FILE decides. Without these, Place returns the default
// store. But if a setting points to AWS, Place returns an error instead of the default
// store. There is one exception: leasehold is on trial and that setting is not leasehold's
// own. granted is the table of a grant, if there is one.
func (s *Settings) Place(granted string) (Place, error) {
	p := Place{Table: s.Table, File: s.File}
	required, err := s.requiresTable()
	if err != nil {
		return p, err
	}
	if p.Table == "" && p.File == "" {
		if p.Table, p.File, err = s.placeInEnvironment(required); err != nil {
			return p, err
		}
	}
	if flag := s.AWSFlag(); flag != "" && p.File != "" {
		return p, failure.Misusef("%s is for DynamoDB, but --file or LEASEHOLD_FILE names a local store: use --table, or leave out %s", flag, flag)
	}
	if p.File == "" && p.Table == "" {
		switch sign := s.signOfAWS(); {
		case (sign != "" || required) && granted != "":
			p.Table = granted
		case required:
			return p, failure.Misusef("no table: LEASEHOLD_REQUIRE_TABLE is set, so name the lock table with --table or LEASEHOLD_TABLE")
		case sign != "" && (s.asksForDynamoDB() != "" || !s.OnTrial()):
			return p, failure.Misusef("no table: %s, so no local store is chosen: name the lock table with --table or LEASEHOLD_TABLE, "+
				"or use --file for locks on this machine only", sign)
		default:
			p.Unnamed, p.Despite = true, sign
			if p.File, p.Machine, err = s.defaultFile(); err != nil {
				return p, err
			}
		}
	}
	if p.File == "" {
		return p, nil
	}
	p.Table = cmp.Or(p.Table, DefaultTable)
	abs, err := filepath.Abs(p.File)
	if err != nil {
		return p, failure.Misusef("--file %s: %v", p.File, err)
	}
	p.File = abs
	return p, nil
}

// placeInEnvironment returns the values of LEASEHOLD_TABLE and LEASEHOLD_FILE. If both are
// set, it returns an error. One of the two may be left over from earlier, and a lock in the
// wrong store would be worse than an error. Only an outer leasehold run may set both.
func (s *Settings) placeInEnvironment(required bool) (table, file string, err error) {
	if table, err = s.Variable("LEASEHOLD_TABLE"); err != nil {
		return "", "", err
	}
	if file, err = s.Variable("LEASEHOLD_FILE"); err != nil {
		return "", "", err
	}
	switch {
	case file == "" || s.SetByRun(cmp.Or(table, DefaultTable), file):
		return table, file, nil
	case table != "":
		return "", "", failure.Misusef("LEASEHOLD_TABLE and LEASEHOLD_FILE are both set: unset one of them, or use --table or --file, which override both")
	case required:
		return "", "", failure.Misusef("LEASEHOLD_REQUIRE_TABLE is set, but LEASEHOLD_FILE names a local store: unset one of them, or use --table")
	}
	return "", file, nil
}

// requiresTable reports whether LEASEHOLD_REQUIRE_TABLE forbids a local store that no flag names.
func (s *Settings) requiresTable() (bool, error) {
	v, err := s.Variable("LEASEHOLD_REQUIRE_TABLE")
	if v == "" || err != nil {
		return false, err
	}
	required, err := strconv.ParseBool(v)
	if err != nil {
		return false, failure.Misusef("LEASEHOLD_REQUIRE_TABLE must be 1 or 0, not %q", v)
	}
	return required, nil
}

// Variable returns the value of a variable that replaces a flag, or "" if the variable is
// not set. It returns an error if the variable is set but empty. An empty value most likely
// comes from another variable that was not set.
func (s *Settings) Variable(name string) (string, error) {
	value, set := s.LookupEnv(name)
	if set && value == "" {
		return "", failure.Misusef("%s is set but empty: give it a value, or unset it", name)
	}
	return value, nil
}

// Getenv returns the value of a variable. It returns "" if the variable is not set.
func (s *Settings) Getenv(name string) string {
	v, _ := s.LookupEnv(name)
	return v
}

// firstSet returns the first of the named variables whose value is not empty. It returns ""
// if there is none.
func (s *Settings) firstSet(names ...string) string {
	for _, name := range names {
		if s.Getenv(name) != "" {
			return name
		}
	}
	return ""
}

// awsFlags lists the flags that apply only to DynamoDB.
var awsFlags = []string{"--region", "--profile", "--endpoint-url", "--failover"}

// AWSVariables lists the variables that replace awsFlags, in the same order. Through them, leasehold
// run passes these flags to a leasehold that CMD runs. leasehold run does not use the AWS_
// variables for that, since they would affect everything that CMD does.
var AWSVariables = []string{"LEASEHOLD_REGION", "LEASEHOLD_PROFILE", "LEASEHOLD_ENDPOINT_URL", "LEASEHOLD_FAILOVER"}

// ForAWS returns the settings of awsFlags and AWSVariables, in the same order.
func (s *Settings) ForAWS() []*string {
	return []*string{&s.Region, &s.Profile, &s.Endpoint, &s.Failover}
}

// readAWSVariables reads AWSVariables in place of flags that were not given. If the Region
// and the endpoint come from a grant, they count as given flags.
func (s *Settings) readAWSVariables() error {
	for i, to := range s.ForAWS() {
		if *to != "" || s.OfGrant && (to == &s.Region || to == &s.Endpoint) {
			continue
		}
		v, err := s.Variable(AWSVariables[i])
		if err != nil {
			return err
		}
		if *to = v; v != "" {
			s.byVariable = append(s.byVariable, AWSVariables[i])
		}
	}
	return nil
}

// by returns the source of the setting of a flag in awsFlags: the flag or its variable.
func (s *Settings) by(flag string) string {
	if variable := AWSVariables[slices.Index(awsFlags, flag)]; slices.Contains(s.byVariable, variable) {
		return variable
	}
	return flag
}

// regionBy returns the source of the Region. It returns "" if no Region is set, as may
// happen with a server on this machine.
func (s *Settings) regionBy(cfg aws.Config) string {
	if s.Region != "" {
		return s.by("--region")
	}
	if name := s.firstSet("AWS_REGION", "AWS_DEFAULT_REGION"); name != "" {
		return name
	}
	for _, source := range cfg.ConfigSources {
		if shared, ok := source.(config.SharedConfig); ok && shared.Region != "" {
			return "profile " + cmp.Or(shared.Profile, "default")
		}
	}
	if cfg.Region != "" {
		return "the table's ARN"
	}
	return ""
}

// endpoint returns the URL from flag or environment, and the source of the URL. Both are
// empty if there is no URL.
func (s *Settings) endpoint() (endpoint, by string) {
	if s.Endpoint != "" {
		return s.Endpoint, s.by("--endpoint-url")
	}
	by = s.firstSet("AWS_ENDPOINT_URL_DYNAMODB", "AWS_ENDPOINT_URL")
	return s.Getenv(by), by
}

// Tilde shortens a path under the home directory, for people.
func (s *Settings) Tilde(path string) string {
	if home := s.Getenv("HOME"); home != "" {
		if rest, ok := strings.CutPrefix(path, strings.TrimSuffix(home, "/")+"/"); ok {
			return "~/" + rest
		}
	}
	return path
}

// Owner returns the name that other users see; it is empty for the default name. The outer
// leasehold run sets LEASEHOLD_OWNER to a name that ends in the client id of its grant.
// Owner removes that id, since this process adds a client id of its own.
func (s *Settings) Owner() (string, error) {
	v, err := s.Variable("LEASEHOLD_OWNER")
	owner := wording.OwnerWithoutID(v)
	if err == nil && len(owner) > protocol.LongestOwner {
		err = failure.Misusef("LEASEHOLD_OWNER has %s: at most %d", wording.Count(len(owner), "byte", "bytes"), protocol.LongestOwner)
	}
	return owner, err
}

// Breaker returns the configuration of a client that breaks grants. Its owner names the
// operator in the record: LEASEHOLD_OWNER or, without it, the user of this machine.
func (s *Settings) Breaker() leasehold.Config {
	owner, err := s.Owner()
	if err == nil && owner == "" {
		host, unnamed := os.Hostname()
		if unnamed != nil {
			host = "unknown"
		}
		owner = userName() + "@" + host
	}
	return leasehold.Config{Owner: owner}
}

// Lease returns the lease that the flag sets or, without the flag, LEASEHOLD_LEASE.
func (s *Settings) Lease(flag arguments.Duration) (time.Duration, error) {
	if flag.Given {
		return flag.Duration, nil
	}
	return s.duration("LEASEHOLD_LEASE", flag.Duration)
}

// duration returns the value of a variable or, if it is not set, the default.
func (s *Settings) duration(variable string, otherwise time.Duration) (time.Duration, error) {
	v, err := s.Variable(variable)
	if v == "" || err != nil {
		return otherwise, err
	}
	d, err := wording.ParseDuration(v)
	if err != nil {
		return 0, failure.Misusef("%s %s: %v", variable, visible.Name(v), err)
	}
	return d, nil
}
