package store

import (
	"cmp"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/cli/arguments"
	"github.com/leasehold-go/leasehold/internal/cli/failure"
	"github.com/leasehold-go/leasehold/internal/cli/wording"
	"github.com/leasehold-go/leasehold/internal/protocol"
	"github.com/leasehold-go/leasehold/internal/visible"
)

// DefaultTable is the name of the table in a local store if the user names none.
const DefaultTable = "leasehold"

// Settings contains the values of the flags that choose the lock table. If a flag was not given,
// its field is empty, and an environment variable is used instead. Settings also gives access to
// the environment.
type Settings struct {
	Table, File               string
	Layout                    arguments.Text
	Attributes                Attributes
	Region, Profile, Endpoint string
	Failover                  string // value of --failover: further Regions of the table, separated by commas
	OfGrant                   bool   // true if Table, Region and Endpoint come from a grant rather than from flags

	byVariable map[string]string // for each of awsFlags that was not given: the variable that readAWSVariables has used instead

	LookupEnv  func(name string) (string, bool)
	SetByRun   func(table, file string) bool // reports whether this process runs under a "leasehold run" that set LEASEHOLD_TABLE and LEASEHOLD_FILE to these values
	MachineDir string                        // directory of the machine's store; used only if it exists
	OnEC2      func() bool                   // reports whether this machine is an EC2 instance
	OnTrial    func() bool                   // reports whether leasehold was started by go run in its own source
}

// Place returns where the locks are stored: the store that a flag names, otherwise the store in
// LEASEHOLD_TABLE or LEASEHOLD_FILE, otherwise the default local store.
//
// If LEASEHOLD_REQUIRE_TABLE is true, or a setting suggests that the user uses AWS, Place does not
// return the default store. It then returns the parameter "granted", which is the table of the
// grant to renew or release. If "granted" is empty, it returns an error.
//
// In a trial (see package build) without a grant, settings for all AWS programs, such as
// AWS_PROFILE, do not rule out the default store.
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
		for _, name := range AWSVariables {
			if _, err := s.Variable(name); err != nil {
				return p, err
			}
		}
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
	if !utf8.ValidString(abs) { // grants, events and metrics contain the path, as text
		return p, failure.Misusef("no local store at %s: the path is not UTF-8: use --table, or another --file PATH",
			visible.Name(abs))
	}
	p.File = abs
	return p, nil
}

// placeInEnvironment returns the values of LEASEHOLD_TABLE and LEASEHOLD_FILE. It accepts both only
// if an outer "leasehold run" has set both for its CMD, and returns an error if the user has set
// both. If required is true, it also refuses a LEASEHOLD_FILE that the user has set.
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

// requiresTable reports whether LEASEHOLD_REQUIRE_TABLE is true. Then leasehold uses a
// local store only if --file names it.
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

// Variable returns the value of the environment variable name, or "" if it is not set. It
// returns an error if the variable is set but empty. An empty value in a script usually
// comes from another variable that was not set.
func (s *Settings) Variable(name string) (string, error) {
	value, set := s.LookupEnv(name)
	if set && value == "" {
		return "", failure.Misusef("%s is set but empty: give it a value, or unset it", name)
	}
	return value, nil
}

// Getenv returns the value of the environment variable name, or "" if it is not set.
func (s *Settings) Getenv(name string) string {
	v, _ := s.LookupEnv(name)
	return v
}

// firstSet returns the first of names that is an environment variable with a value, or "".
func (s *Settings) firstSet(names ...string) string {
	for _, name := range names {
		if s.Getenv(name) != "" {
			return name
		}
	}
	return ""
}

// awsFlags lists the flags that apply only to tables in DynamoDB.
var awsFlags = []string{"--region", "--profile", "--endpoint-url", "--failover"}

// AWSVariables lists the variables for the awsFlags, in the same order. A variable is used if its
// flag is not given. The command run sets these variables for CMD, so that nested commands use the
// same table. It sets no AWS_ variables, because they would affect everything that CMD does with
// AWS.
var AWSVariables = []string{"LEASEHOLD_REGION", "LEASEHOLD_PROFILE", "LEASEHOLD_ENDPOINT_URL", "LEASEHOLD_FAILOVER"}

// ForAWS returns pointers to the values of awsFlags, in the same order.
func (s *Settings) ForAWS() []*string {
	return []*string{&s.Region, &s.Profile, &s.Endpoint, &s.Failover}
}

// readAWSVariables sets the value of each of the awsFlags that was not given, from the flag's
// variable in AWSVariables. If the Region and the Endpoint come from a grant, readAWSVariables
// leaves both unchanged, even if one is empty.
func (s *Settings) readAWSVariables() error {
	if s.byVariable == nil {
		s.byVariable = map[string]string{}
	}
	for i, to := range s.ForAWS() {
		if *to != "" || s.OfGrant && (to == &s.Region || to == &s.Endpoint) {
			continue
		}
		v, err := s.Variable(AWSVariables[i])
		if err != nil {
			return err
		}
		if *to = v; v != "" {
			s.byVariable[awsFlags[i]] = AWSVariables[i]
		}
	}
	return nil
}

// sourceOf returns the source of a flag's value: the flag itself or its variable. The flag must be
// one of awsFlags.
func (s *Settings) sourceOf(flag string) string { return cmp.Or(s.byVariable[flag], flag) }

// regionBy returns the source of the Region: a flag, a variable, a profile or the table's
// ARN. It returns "" if no Region is set, which is valid for a server on loopback.
func (s *Settings) regionBy(cfg aws.Config) string {
	if s.Region != "" {
		return s.sourceOf("--region")
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

// endpoint returns the endpoint URL, and the flag or variable that contains it. Both are
// empty if no endpoint is set.
func (s *Settings) endpoint() (endpoint, by string) {
	if s.Endpoint != "" {
		return s.Endpoint, s.sourceOf("--endpoint-url")
	}
	by = s.firstSet("AWS_ENDPOINT_URL_DYNAMODB", "AWS_ENDPOINT_URL")
	return s.Getenv(by), by
}

// Tilde returns path with the home directory replaced by ~, for messages.
func (s *Settings) Tilde(path string) string {
	if home := s.Getenv("HOME"); home != "" {
		if rest, ok := strings.CutPrefix(path, strings.TrimSuffix(home, "/")+"/"); ok {
			return "~/" + rest
		}
	}
	return path
}

// Owner returns the owner name from LEASEHOLD_OWNER, or "" for the default name of package
// leasehold. An outer "leasehold run" sets a name that ends in its client id. Owner removes this
// id, because this process will add its own.
func (s *Settings) Owner() (string, error) {
	v, err := s.Variable("LEASEHOLD_OWNER")
	owner := wording.OwnerWithoutID(v)
	if err == nil && len(owner) > protocol.LongestOwner {
		err = failure.Misusef("LEASEHOLD_OWNER has %s: at most %d", wording.Count(len(owner), "byte", "bytes"), protocol.LongestOwner)
	}
	return owner, err
}

// Breaker returns the configuration of a client that breaks grants. Its Owner is the name of the
// operator, and a break stores this name in the record. The name is LEASEHOLD_OWNER or, if that
// variable is not set, USER@HOST.
func (s *Settings) Breaker() leasehold.Config {
	owner, err := s.Owner()
	if err == nil && owner == "" {
		host, _ := os.Hostname() // empty if it is not known
		owner = userName() + "@" + cmp.Or(host, "unknown")
	}
	return leasehold.Config{Owner: owner}
}

// Lease returns the value of --lease or, if the flag was not given, of LEASEHOLD_LEASE. If
// neither is set, it returns the flag's default.
func (s *Settings) Lease(flag arguments.Duration) (time.Duration, error) {
	if flag.Given {
		return flag.Duration, nil
	}
	return s.duration("LEASEHOLD_LEASE", flag.Duration)
}

// duration returns the value of an environment variable. If the variable is not set, it
// returns fallback.
func (s *Settings) duration(variable string, fallback time.Duration) (time.Duration, error) {
	v, err := s.Variable(variable)
	if v == "" || err != nil {
		return fallback, err
	}
	d, err := wording.ParseDuration(v)
	if err != nil {
		return 0, failure.Misusef("%s %s: %v", variable, visible.Name(v), err)
	}
	return d, nil
}
