package cli

import (
	"cmp"
	"net/url"
	"regexp"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/arn"
	"github.com/aws/aws-sdk-go-v2/config"
)

// The names that AWS would refuse, or that lead nowhere, are refused before anything is
// sent: a request to a host that does not exist is repeated for a long time. Each check
// is told what has named the thing: a flag, a variable or the profile.

var (
	regionForm = regexp.MustCompile(`^[a-z]{2,4}(-[a-z]+)+-[0-9]{1,2}$`) // new Regions come every year, so there is no list
	zoneForm   = regexp.MustCompile(`^(.*-[0-9]{1,2})[a-z]$`)
	labelForm  = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?$`)
	tableForm  = regexp.MustCompile(`^[A-Za-z0-9_.-]{1,255}$`)
)

// checkRegion refuses what is no Region of AWS. Another server may have its own.
func checkRegion(region, by string, otherServer bool) error {
	lower, zone := strings.ToLower(region), zoneForm.FindStringSubmatch(region)
	switch {
	case otherServer && labelForm.MatchString(region), regionForm.MatchString(region):
		return nil
	case otherServer:
		return usagef("the Region %q (%s) is not a name: use letters, digits and -", region, by)
	case zone != nil && regionForm.MatchString(zone[1]):
		return usagef("%q (%s) is an Availability Zone: use its Region, %s", region, by, zone[1])
	case regionForm.MatchString(lower):
		return usagef("the Region %q (%s) is not one of AWS: use %s", region, by, lower)
	}
	return usagef("the Region %q (%s) is not one of AWS: those look like eu-west-1 or us-gov-east-1; another server needs --endpoint-url", region, by)
}

// regionBy says what has named the Region. It is empty if nothing has, as for a
// server on this machine.
func (a *app) regionBy(cfg aws.Config) string {
	switch {
	case a.flags.region != "":
		return "--region"
	case a.get("AWS_REGION") != "":
		return "AWS_REGION"
	case a.get("AWS_DEFAULT_REGION") != "":
		return "AWS_DEFAULT_REGION"
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

// checkEndpoint refuses a URL that no request can be sent to.
func checkEndpoint(endpoint, by string) error {
	const use = "use http:// or https://, such as http://127.0.0.1:8000"
	shown := by + " " + quotedIfSpaced(endpoint)
	if !strings.Contains(endpoint, "://") {
		return usagef("%s must begin with http:// or https://", shown)
	}
	u, err := url.Parse(endpoint)
	if err != nil {
		return usagef("%s is not a URL: %s", shown, use)
	}
	port, err := strconv.ParseUint(cmp.Or(u.Port(), "80"), 10, 16)
	switch {
	case u.Scheme != "http" && u.Scheme != "https":
		return usagef("%s: unknown scheme %s: %s", shown, u.Scheme, use)
	case u.Hostname() == "":
		return usagef("%s names no host: %s", shown, use)
	case err != nil || port == 0:
		return usagef("%s: the port must be a number from 1 to 65535", shown)
	case u.RawQuery != "" || u.ForceQuery:
		return usagef("%s: leave out what follows ?", shown)
	case u.Fragment != "":
		return usagef("%s: leave out what follows #", shown)
	}
	return nil
}

// endpoint returns the URL that flag or environment name, and which of them does.
// Empty: none.
func (a *app) endpoint() (endpoint, by string) {
	if a.flags.endpoint != "" {
		return a.flags.endpoint, "--endpoint-url"
	}
	for _, name := range []string{"AWS_ENDPOINT_URL_DYNAMODB", "AWS_ENDPOINT_URL"} {
		if v := a.get(name); v != "" {
			return v, name
		}
	}
	return "", ""
}

// checkTable refuses what is neither the name nor the ARN of a table.
func checkTable(named string) error {
	if strings.HasPrefix(named, "arn:") {
		_, err := tableOfARN(named)
		return err
	}
	if !tableForm.MatchString(named) {
		return usagef("--table %s is not the name of a table: those have letters, digits, _, - and ., 3 to 255 of them", quotedIfSpaced(named))
	}
	return nil
}

// tableOfARN returns the name of the table that an ARN names.
func tableOfARN(named string) (string, error) {
	id, err := arn.Parse(named)
	name, ok := strings.CutPrefix(id.Resource, "table/")
	if err != nil || id.Service != "dynamodb" || !ok || name == "" || strings.Contains(name, "/") {
		return "", usagef("--table %s is not the ARN of a table: those look like arn:aws:dynamodb:REGION:ACCOUNT:table/NAME", printable(named))
	}
	return name, nil
}

// quotedIfSpaced is printable that quotes spaces too, where they would look like the
// message's own.
func quotedIfSpaced(s string) string {
	if strings.Contains(s, " ") {
		return strconv.Quote(s)
	}
	return printable(s)
}
