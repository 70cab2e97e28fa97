package store

import (
	"cmp"
	"net/url"
	"regexp"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws/arn"

	"github.com/leasehold-go/leasehold/internal/cli/misuse"
	"github.com/leasehold-go/leasehold/internal/visible"
)

// The names that AWS would refuse, or that lead nowhere, are refused before anything is
// sent: a request to a host that does not exist is repeated for a long time. Each check
// is told what has named the thing: a flag, a variable or the profile.

const (
	regionForm = `^[a-z]{2,4}(-[a-z]+)+-[0-9]{1,2}$` // new Regions come every year, so there is no list
	zoneForm   = `^.*-[0-9]{1,2}[a-z]$`
	labelForm  = `^[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?$`
	tableForm  = `^[A-Za-z0-9_.-]{1,255}$`
)

// hasForm compiles the form, as each is asked for once, and most not at all.
func hasForm(s, form string) bool { return regexp.MustCompile(form).MatchString(s) }

// checkRegion refuses what is no Region of AWS. Another server may have its own.
func checkRegion(region, by string, otherServer bool) error {
	lower := strings.ToLower(region)
	zoneOf := region
	if hasForm(region, zoneForm) {
		zoneOf = region[:len(region)-1]
	}
	switch {
	case otherServer && hasForm(region, labelForm), hasForm(region, regionForm):
		return nil
	case otherServer:
		return misuse.Errorf("the Region %q (%s) is not a name: use letters, digits and -", region, by)
	case hasForm(zoneOf, regionForm):
		return misuse.Errorf("%q (%s) is an Availability Zone: use its Region, %s", region, by, zoneOf)
	case hasForm(lower, regionForm):
		return misuse.Errorf("the Region %q (%s) is not one of AWS: use %s", region, by, lower)
	}
	return misuse.Errorf("the Region %q (%s) is not one of AWS: those look like eu-west-1 or us-gov-east-1; another server needs --endpoint-url", region, by)
}

// checkEndpoint refuses a URL that no request can be sent to.
func checkEndpoint(endpoint, by string) error {
	const use = "use http:// or https://, such as http://127.0.0.1:8000"
	shown := by + " " + quotedIfSpaced(endpoint)
	if !strings.Contains(endpoint, "://") {
		return misuse.Errorf("%s must begin with http:// or https://", shown)
	}
	u, err := url.Parse(endpoint)
	if err != nil {
		return misuse.Errorf("%s is not a URL: %s", shown, use)
	}
	port, err := strconv.ParseUint(cmp.Or(u.Port(), "80"), 10, 16)
	switch {
	case u.Scheme != "http" && u.Scheme != "https":
		return misuse.Errorf("%s: unknown scheme %s: %s", shown, u.Scheme, use)
	case u.Hostname() == "":
		return misuse.Errorf("%s names no host: %s", shown, use)
	case err != nil || port == 0:
		return misuse.Errorf("%s: the port must be a number from 1 to 65535", shown)
	case u.RawQuery != "" || u.ForceQuery:
		return misuse.Errorf("%s: leave out what follows ?", shown)
	case u.Fragment != "":
		return misuse.Errorf("%s: leave out what follows #", shown)
	}
	return nil
}

// TableName returns the name of the table that --table names, by its name or by its ARN,
// and refuses what is neither.
func TableName(named string) (string, error) {
	if !strings.HasPrefix(named, "arn:") {
		if !hasForm(named, tableForm) {
			return "", misuse.Errorf("--table %s is not the name of a table: those have letters, digits, _, - and ., 3 to 255 of them", quotedIfSpaced(named))
		}
		return named, nil
	}
	id, err := arn.Parse(named)
	name, ok := strings.CutPrefix(id.Resource, "table/")
	if err != nil || id.Service != "dynamodb" || !ok || name == "" || strings.Contains(name, "/") {
		return "", misuse.Errorf("--table %s is not the ARN of a table: those look like arn:aws:dynamodb:REGION:ACCOUNT:table/NAME", visible.Name(named))
	}
	return name, nil
}

// quotedIfSpaced is visible.Name that quotes spaces too, where they would look like the
// message's own.
func quotedIfSpaced(s string) string {
	if strings.Contains(s, " ") {
		return strconv.Quote(s)
	}
	return visible.Name(s)
}
