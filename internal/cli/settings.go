package cli

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/protocol"
	"github.com/leasehold-go/leasehold/layout"
)

// defaultTable is the table's name in a local store.
const defaultTable = "leasehold"

// place is where the locks are: a table of DynamoDB, or a local store.
type place struct {
	table    string
	file     string // the local store; empty: DynamoDB
	unnamed  bool   // nobody asked for this store
	awsNamed string // an AWS setting that is present, empty for none
}

// choosePlace settles it: flag, LEASEHOLD_*, and the local store only where
// nothing at all speaks of AWS. A flag sets both variables aside. granted is
// the table that a grant names, where there is one.
func choosePlace(f globalFlags, env Env, granted string) (place, error) {
	p := place{table: f.table, file: f.file, awsNamed: awsSetting(f, env)}
	if p.table == "" && p.file == "" {
		p.table, p.file = env.get("LEASEHOLD_TABLE"), env.get("LEASEHOLD_FILE")
	}
	if flag := awsFlag(f); flag != "" && p.file != "" {
		return p, usagef("%s is of DynamoDB, --file or LEASEHOLD_FILE is a local store: name the --table, or leave out %s", flag, flag)
	}
	switch {
	case p.file != "":
	case p.table != "":
		return p, nil
	case p.awsNamed != "" && granted != "":
		p.table = granted
		return p, nil
	case p.awsNamed != "":
		return p, usagef("no table: %s is set, so name the lock table: --table or LEASEHOLD_TABLE; or --file for locks of this machine only", p.awsNamed)
	default:
		dir, err := stateDir(env)
		if err != nil {
			return p, err
		}
		p.file, p.unnamed = filepath.Join(dir, "locks.db"), true
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

// awsSetting names an AWS setting that is present, empty for none.
func awsSetting(f globalFlags, env Env) string {
	if flag := awsFlag(f); flag != "" {
		return flag
	}
	for _, name := range []string{
		"AWS_REGION", "AWS_DEFAULT_REGION", "AWS_PROFILE", "AWS_ACCESS_KEY_ID",
		"AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "AWS_CONTAINER_CREDENTIALS_FULL_URI",
		"AWS_WEB_IDENTITY_TOKEN_FILE", "AWS_ENDPOINT_URL_DYNAMODB", "AWS_ENDPOINT_URL",
		"AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE",
	} {
		if env.get(name) != "" {
			return name
		}
	}
	if home := env.get("HOME"); home != "" {
		for _, name := range []string{"config", "credentials"} {
			if _, err := os.Stat(filepath.Join(home, ".aws", name)); err == nil {
				return filepath.Join("~", ".aws", name)
			}
		}
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
	if v := env.get("LEASEHOLD_LAYOUT"); v != "" && !given {
		name = v
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
	if _, err := l.Protocol(); err != nil {
		return nil, usagef("--attr: %s", oneLine(strings.ReplaceAll(err.Error(), "layout: "+name+": ", "")))
	}
	return l, nil
}

// completeKey fills in what the layout does where a call leaves it out, so that
// a key can be compared with those of records.
func completeKey(l layout.Layout, key leasehold.Key) leasehold.Key {
	if proto, err := l.Protocol(); err == nil {
		return leasehold.Key(proto.Complete(protocol.Key(key)))
	}
	return key
}

// chooseOwner is the name shown to others, empty for the default. A command
// under run sees the whole owner of that grant, whose id is not its own.
func chooseOwner(flag string, env Env) string {
	if flag != "" {
		return flag
	}
	return withoutID(env.get("LEASEHOLD_OWNER"))
}

// chooseLease settles the lease, whose default stands in flag.
func chooseLease(flag time.Duration, given bool, env Env) (time.Duration, error) {
	v := env.get("LEASEHOLD_LEASE")
	if given || v == "" {
		return flag, nil
	}
	d, err := parseDuration(v)
	if err != nil {
		return 0, usagef("LEASEHOLD_LEASE: %v", err)
	}
	return d, nil
}
