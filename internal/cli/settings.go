package cli

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/protocol"
	"github.com/leasehold-go/leasehold/internal/records"
	"github.com/leasehold-go/leasehold/layout"
)

// defaultTable is the default name of the table in a local store.
const defaultTable = "leasehold"

// place is where the locks are: a DynamoDB table, or a local store.
type place struct {
	table   string
	file    string // the local store; empty: DynamoDB
	unnamed bool   // the store is the default: neither flag nor variable named it
	machine bool   // it is the store shared by all users of the machine
}

// choosePlace chooses where the locks are, by flag, then LEASEHOLD_*. A flag
// overrides both variables. Without either it chooses a local store, but only
// if there is no sign of AWS. granted is the table of a grant, if there is one.
func choosePlace(f globalFlags, env Env, granted string) (place, error) {
	p := place{table: f.table, file: f.file}
	aws := awsSetting(f, env)
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
		return p, usagef("%s is for DynamoDB, but --file or LEASEHOLD_FILE names a local store: use --table, or leave out %s", flag, flag)
	}
	switch {
	case p.file != "":
	case p.table != "":
		return p, nil
	case (aws != "" || required) && granted != "":
		p.table = granted
		return p, nil
	case required:
		return p, usagef("no table: LEASEHOLD_REQUIRE_TABLE is set, so name the lock table with --table or LEASEHOLD_TABLE")
	case aws != "":
		return p, usagef("no table: %s, so name the lock table with --table or LEASEHOLD_TABLE, or use --file for locks on this machine only", aws)
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

// placeInEnvironment returns what LEASEHOLD_TABLE and LEASEHOLD_FILE name.
// Setting both is an error, except as an outer leasehold run set them: one of
// them may be a leftover, and guessing which could lock in the wrong store.
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
		return "", "", usagef("LEASEHOLD_TABLE and LEASEHOLD_FILE are both set: unset one of them, or use --table or --file, which override both")
	case required:
		return "", "", usagef("LEASEHOLD_REQUIRE_TABLE is set, but LEASEHOLD_FILE names a local store: unset one of them, or use --table")
	}
	return "", file, nil
}

// requiresTable reports whether LEASEHOLD_REQUIRE_TABLE forbids a local store
// that no flag names.
func requiresTable(env Env) (bool, error) {
	v, set, err := env.setting("LEASEHOLD_REQUIRE_TABLE")
	if !set || err != nil {
		return false, err
	}
	required, err := strconv.ParseBool(v)
	if err != nil {
		return false, usagef("LEASEHOLD_REQUIRE_TABLE must be 1 or 0, not %q", v)
	}
	return required, nil
}

// setting reads a variable that stands for a flag. One that is set but empty is
// an error: most likely it was made from a variable that was lost.
func (e Env) setting(name string) (value string, set bool, err error) {
	value, set = e.LookupEnv(name)
	if set && value == "" {
		return "", true, usagef("%s is set but empty: give it a value, or unset it", name)
	}
	return value, set, nil
}

// awsFlag returns the name of a given flag that is for DynamoDB only, empty for
// none.
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

// awsSetting returns a sign that DynamoDB is meant: an AWS setting, or that this
// machine is an EC2 instance, which may get credentials without one. Empty for
// none.
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
				return filepath.Join("~", ".aws", name) + " exists"
			}
		}
	}
	// The SDK would get credentials from the instance's metadata service.
	if env.OnEC2 != nil && !strings.EqualFold(env.get("AWS_EC2_METADATA_DISABLED"), "true") && env.OnEC2() {
		return "this machine is an EC2 instance"
	}
	return ""
}

// stateDir is the directory of the user's local store and observations (XDG
// Base Directory Specification).
func stateDir(env Env) (string, error) {
	if dir := env.get("XDG_STATE_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "leasehold"), nil
	}
	if home := env.get("HOME"); home != "" {
		return filepath.Join(home, ".local", "state", "leasehold"), nil
	}
	return "", usagef("no table, and no place for a local store, as neither HOME nor XDG_STATE_HOME is set: use --table, or --file PATH")
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

// chooseLayout returns the layout that flags and environment name.
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
		return nil, usagef("unknown layout %q: use one of %s", name, strings.Join(layout.Names(), ", "))
	}
	if f.attr == (attributeNames{}) {
		return l, nil
	}
	l, fixed := f.attr.apply(l)
	for _, role := range []struct{ name, given string }{{"key", f.attr.key}, {"sort", f.attr.sort}, {"ttl", f.attr.ttl}} {
		if role.given != "" && slices.Contains(fixed, role.name) {
			return nil, usagef("--attr %s=%s: layout %s does not let you choose the name for %s: leave it out, or use another layout",
				role.name, role.given, name, role.name)
		}
	}
	if _, err := records.Of(l); err != nil {
		return nil, usagef("--attr: %s", oneLine(strings.ReplaceAll(err.Error(), "layout: "+name+": ", "")))
	}
	return l, nil
}

// chooseProtocol returns the layout that flags and environment name, and its
// protocol.
func (a *app) chooseProtocol(cmd *cobra.Command) (layout.Layout, protocol.Protocol, error) {
	l, err := chooseLayout(a.flags, cmd.Flags().Changed("layout"), a.Env)
	if err != nil {
		return nil, nil, err
	}
	proto, err := records.Of(l)
	return l, proto, err
}

// completeKey fills in the layout's default sort key, so that a key can be
// compared with those in records.
func completeKey(l layout.Layout, key leasehold.Key) leasehold.Key {
	if proto, err := records.Of(l); err == nil {
		return leasehold.Key(proto.Complete(protocol.Key(key)))
	}
	return key
}

// chooseOwner returns the name shown to others, empty for the default. The
// LEASEHOLD_OWNER that run sets ends in the client id of that grant: it is cut
// off, as this client has its own.
func chooseOwner(flag string, env Env) (string, error) {
	if flag != "" {
		return flag, nil
	}
	v, _, err := env.setting("LEASEHOLD_OWNER")
	return withoutID(v), err
}

// chooseLease returns the lease; flag holds the default if it was not given.
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
		return 0, usagef("LEASEHOLD_LEASE %s: %v", printable(v), err)
	}
	return d, nil
}

// refuseShortLease refuses a lease that leaves no time to trust it, in a layout
// that allows for clocks that differ by skew.
func refuseShortLease(cmd *cobra.Command, lease time.Duration, l layout.Layout, skew time.Duration) error {
	switch {
	case lease-skew >= time.Second:
		return nil
	case skew == 0:
		return usageOf(cmd, "a lease of %s is too short: use at least 1s", shortDuration(lease))
	}
	return usageOf(cmd, "a lease of %s is too short: layout %s allows for clocks that differ by %s: use at least %s",
		shortDuration(lease), l.Name(), shortDuration(skew), shortDuration(time.Second+skew))
}
