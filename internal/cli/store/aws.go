package store

import (
	"os"
	"path/filepath"
	"strings"
)

// AWSFlag returns the name of a given flag that is for DynamoDB only, empty for
// none.
func (s *Settings) AWSFlag() string {
	switch {
	case s.Region != "":
		return "--region"
	case s.Profile != "":
		return "--profile"
	case s.Endpoint != "":
		return "--endpoint-url"
	}
	return ""
}

// asksForDynamoDB returns what asks leasehold for DynamoDB: a flag, or a variable of
// leasehold's own. Empty: nothing does.
func (s *Settings) asksForDynamoDB() string {
	if flag := s.AWSFlag(); flag != "" {
		return flag
	}
	for _, name := range AWSVariables {
		if s.get(name) != "" {
			return name
		}
	}
	return ""
}

// signOfAWS returns a sign that DynamoDB is meant: an AWS setting, or that this
// machine is an EC2 instance, which may get credentials without one. Empty for
// none.
func (s *Settings) signOfAWS() string {
	if asks := s.asksForDynamoDB(); asks != "" {
		return asks + " is set"
	}
	for _, name := range []string{
		"AWS_REGION", "AWS_DEFAULT_REGION", "AWS_PROFILE", "AWS_ACCESS_KEY_ID",
		"AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "AWS_CONTAINER_CREDENTIALS_FULL_URI",
		"AWS_WEB_IDENTITY_TOKEN_FILE", "AWS_ENDPOINT_URL_DYNAMODB", "AWS_ENDPOINT_URL",
		"AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE", "AWS_DEFAULT_PROFILE", "AWS_ROLE_ARN",
		"AWS_EXECUTION_ENV", "ECS_CONTAINER_METADATA_URI_V4", "ECS_CONTAINER_METADATA_URI",
	} {
		if s.get(name) != "" {
			return name + " is set"
		}
	}
	if home := s.get("HOME"); home != "" {
		for _, name := range []string{"config", "credentials"} {
			if _, err := os.Stat(filepath.Join(home, ".aws", name)); err == nil {
				return filepath.Join("~", ".aws", name) + " exists"
			}
		}
	}
	// The SDK would get credentials from the instance's metadata service.
	if !strings.EqualFold(s.get("AWS_EC2_METADATA_DISABLED"), "true") && s.OnEC2() {
		return "this machine is an EC2 instance"
	}
	return ""
}

// OnEC2 reports whether this machine is an EC2 instance. It reads what the
// kernel knows about the hardware, and sends nothing over the network.
func OnEC2() bool { return onEC2("/sys") }

func onEC2(sys string) bool {
	for file, prefix := range map[string]string{
		"class/dmi/id/sys_vendor":   "Amazon EC2",
		"class/dmi/id/board_vendor": "Amazon EC2",
		"hypervisor/uuid":           "ec2", // older instance types
	} {
		b, err := os.ReadFile(filepath.Join(sys, file))
		if err == nil && strings.HasPrefix(string(b), prefix) {
			return true
		}
	}
	return false
}
