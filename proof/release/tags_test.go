package main

import (
	"strings"
	"testing"

	"golang.org/x/mod/semver"
)

func TestAdapterModulesRequireSameReleaseOfLeasehold(t *testing.T) {
	versions := map[string]string{}
	for _, adapter := range adapters {
		version, err := requiredBy("../..", adapter)
		if err != nil {
			t.Fatal(err)
		}
		versions[version] = adapter
		if semver.Canonical(version) != version || semver.Prerelease(version) != "" {
			t.Errorf("%s requires %s, which will never be a tag", adapter, version)
		}
	}
	if len(versions) != 1 {
		t.Errorf("the adapters require different versions: %v", versions)
	}
}

func TestReleaseTagRequiresValidVersionAndMatchingAdapters(t *testing.T) {
	for version, want := range map[string]string{
		"1.2":     "is not a version",
		"v99.0.0": "contrib/leaseholdgocron/go.mod requires",
	} {
		problems, err := tagProblems(t.Context(), "../..", version)
		if err != nil || !strings.Contains(strings.Join(problems, "\n"), want) {
			t.Errorf("%s: %q, %v", version, problems, err)
		}
	}
}
