package cli

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/protocol"
	"github.com/leasehold-go/leasehold/internal/records"
	"github.com/leasehold-go/leasehold/layout"
)

// defaultTable is the table's name in a local store.
const defaultTable = "leasehold"

// place is where the locks are: a table of DynamoDB, or a local store.
type place struct {
	table    string
	file     string // the local store; empty: DynamoDB
	unnamed  bool   // nobody asked for this store
	machine  bool   // it is the machine's
	awsNamed string // a sign of AWS, empty for none
}

// choosePlace settles it: flag, LEASEHOLD_*, and a local store only where
// nothing at all speaks of AWS. A flag sets both variables aside. granted is
// the table that a grant names, where there is one.
func choosePlace(f globalFlags, env Env, granted string) (place, error) {
	p := place{table: f.table, file: f.file, awsNamed: awsSetting(f, env)}
	required, err := requiresTable(env)
	if err != nil {
		return p, err
	}
	if p.table == "" && p.file == "" {
		if p.table, p.file, err = placeInEnvironment(env, required); err != nil {
			return p, err
		}
	}
	if flag := awsFlag(f); flag != "" && p.file != "" {
		return p, usagef("%s is of DynamoDB, --file or LEASEHOLD_FILE is a local store: name the --table, or leave out %s", flag, flag)
	}
	switch {
	case p.file != "":
	case p.table != "":
		return p, nil
	case (p.awsNamed != "" || required) && granted != "":
		p.table = granted
		return p, nil
	case required:
		return p, usagef("no table: LEASEHOLD_REQUIRE_TABLE is set, so name the lock table: --table or LEASEHOLD_TABLE")
	case p.awsNamed != "":
		return p, usagef("no table: %s, so name the lock table: --table or LEASEHOLD_TABLE; or --file for locks of this machine only", p.awsNamed)
	default:
		p.unnamed = true
		if p.file, p.machine, err = defaultStore(env); err != nil {
			return p, err
		}
	}
	if p.table == "" {
		p.table = defaultTable
	}
	abs, err := filepath.Abs(p.file)
	if err != nil {
		return p, usagef("--file %s: %v", p.file, err)
	}
	p.file = abs
	return p, nil
}

// placeInEnvironment is what LEASEHOLD_TABLE and LEASEHOLD_FILE name. Both are
// right only together as the leasehold run set them that this runs under: else
// one of them was forgotten, and to guess which would lock in the wrong store.
func placeInEnvironment(env Env, required bool) (table, file string, err error) {
	if table, _, err = env.setting("LEASEHOLD_TABLE"); err != nil {
		return "", "", err
	}
	if file, _, err = env.setting("LEASEHOLD_FILE"); err != nil {
		return "", "", err
	}
	switch {
	case file == "" || setByRun(env, table, file):
		return table, file, nil
	case table != "":
		return "", "", usagef("LEASEHOLD_TABLE and LEASEHOLD_FILE are both set: unset one of them, or use --table or --file, which set both aside")
	case required:
		return "", "", usagef("LEASEHOLD_REQUIRE_TABLE is set, and LEASEHOLD_FILE names a local store: unset one of them, or use --table")
	}
	return "", file, nil
}

// requiresTable reports whether a local store may be used only if a flag
// names it.
func requiresTable(env Env) (bool, error) {
	v, set, err := env.setting("LEASEHOLD_REQUIRE_TABLE")
	if !set || err != nil {
		return false, err
	}
	required, err := strconv.ParseBool(v)
	if err != nil {
		return false, usagef("LEASEHOLD_REQUIRE_TABLE: it is 1 or 0, not %q", v)
	}
	return required, nil
}

// setting is a variable that says what a flag could. One that is set to
// nothing was to say something: most likely another variable was lost.
func (e Env) setting(name string) (value string, set bool, err error) {
	value, set = e.LookupEnv(name)
	if set && value == "" {
		return "", true, usagef("%s is set and empty: give it a value, or unset it", name)
	}
	return value, set, nil
}

// awsFlag names a flag that was given and is of DynamoDB alone, empty for none.
func awsFlag(f globalFlags) string {
	switch {
	case f.region != "":
		return "--region"
	case f.profile != "":
		return "--profile"
	case f.endpoint != "":
		return "--endpoint-url"
	}
	return ""
}

// awsSetting is a sign that DynamoDB is meant: an AWS setting that is present,
// or that this machine may be given credentials without one. Empty for none.
func awsSetting(f globalFlags, env Env) string {
	if flag := awsFlag(f); flag != "" {
		return flag + " is set"
	}
	for _, name := range []string{
		"AWS_REGION", "AWS_DEFAULT_REGION", "AWS_PROFILE", "AWS_ACCESS_KEY_ID",
		"AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "AWS_CONTAINER_CREDENTIALS_FULL_URI",
		"AWS_WEB_IDENTITY_TOKEN_FILE", "AWS_ENDPOINT_URL_DYNAMODB", "AWS_ENDPOINT_URL",
		"AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE", "AWS_DEFAULT_PROFILE", "AWS_ROLE_ARN",
		"AWS_EXECUTION_ENV", "ECS_CONTAINER_METADATA_URI_V4", "ECS_CONTAINER_METADATA_URI",
	} {
		if env.get(name) != "" {
			return name + " is set"
		}
	}
	if home := env.get("HOME"); home != "" {
		for _, name := range []string{"config", "credentials"} {
			if _, err := os.Stat(filepath.Join(home, ".aws", name)); err == nil {
				return filepath.Join("~", ".aws", name) + " is set"
			}
		}
	}
	// The SDK would ask the instance for its credentials.
	if env.OnEC2 != nil && !strings.EqualFold(env.get("AWS_EC2_METADATA_DISABLED"), "true") && env.OnEC2() {
		return "this machine is an EC2 instance"
	}
	return ""
}

// stateDir is where the local store and what was observed are kept (XDG Base
// Directory Specification).
func stateDir(env Env) (string, error) {
	if dir := env.get("XDG_STATE_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "leasehold"), nil
	}
	if home := env.get("HOME"); home != "" {
		return filepath.Join(home, ".local", "state", "leasehold"), nil
	}
	return "", usagef("no table, and neither HOME nor XDG_STATE_HOME says where a local store could be: use --table, or --file PATH")
}

// tilde shortens a path under the home directory, for people.
func tilde(env Env, path string) string {
	if home := env.get("HOME"); home != "" {
		if rest, ok := strings.CutPrefix(path, strings.TrimSuffix(home, "/")+"/"); ok {
			return "~/" + rest
		}
	}
	return path
}

// chooseLayout settles how records are written.
func chooseLayout(f globalFlags, given bool, env Env) (layout.Layout, error) {
	name := f.layout
	if !given {
		switch v, set, err := env.setting("LEASEHOLD_LAYOUT"); {
		case err != nil:
			return nil, err
		case set:
			name = v
		}
	}
	l, err := layout.Parse(name)
	if err != nil {
		return nil, usagef("there is no layout %q: use one of %s", name, strings.Join(layout.Names(), ", "))
	}
	if f.attr == (attributeNames{}) {
		return l, nil
	}
	l, fixed := f.attr.apply(l)
	for _, role := range []struct{ name, given string }{{"key", f.attr.key}, {"sort", f.attr.sort}, {"ttl", f.attr.ttl}} {
		if role.given != "" && slices.Contains(fixed, role.name) {
			return nil, usagef("--attr %s=%s: layout %s has no name for %s that could be changed: leave it out, or use another layout",
				role.name, role.given, name, role.name)
		}
	}
	if _, err := records.Of(l); err != nil {
		return nil, usagef("--attr: %s", oneLine(strings.ReplaceAll(err.Error(), "layout: "+name+": ", "")))
	}
	return l, nil
}

// completeKey fills in what the layout does where a call leaves it out, so that
// a key can be compared with those of records.
func completeKey(l layout.Layout, key leasehold.Key) leasehold.Key {
	if proto, err := records.Of(l); err == nil {
		return leasehold.Key(proto.Complete(protocol.Key(key)))
	}
	return key
}

// chooseOwner is the name shown to others, empty for the default. A command
// under run sees the whole owner of that grant, whose id is not its own.
func chooseOwner(flag string, env Env) (string, error) {
	if flag != "" {
		return flag, nil
	}
	v, _, err := env.setting("LEASEHOLD_OWNER")
	return withoutID(v), err
}

// chooseLease settles the lease, whose default stands in flag.
func chooseLease(flag time.Duration, given bool, env Env) (time.Duration, error) {
	if given {
		return flag, nil
	}
	v, set, err := env.setting("LEASEHOLD_LEASE")
	if !set || err != nil {
		return flag, err
	}
	d, err := parseDuration(v)
	if err != nil {
		return 0, usagef("LEASEHOLD_LEASE: %v", err)
	}
	return d, nil
}
