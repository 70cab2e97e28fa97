//go:build linux

package main

import (
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/leasehold-go/leasehold/internal/lab"
)

func TestProtocolPageListsEveryRuleWithItsModel(t *testing.T) {
	page := lab.Must(os.ReadFile("../../docs/internals/protocol.md"))(t)
	_, section, _ := strings.Cut(string(page), "\n## Rules\n")
	section, _, _ = strings.Cut(section, "\n## ")
	row := regexp.MustCompile("(?m)^\\| (.+?) \\| (\\w+) \\| `(\\w+)` \\|")
	listed := map[string]bool{}
	for _, r := range row.FindAllStringSubmatch(section, -1) {
		listed[fmt.Sprintf("%s: %s: %s", r[2], r[3], r[1])] = true
	}
	models := lab.Must(Models("."))(t)
	modelled := map[string]bool{}
	for _, m := range models {
		for _, r := range m.Rules {
			modelled[fmt.Sprintf("%s: %s: %s", m.Name, r.Name, strings.TrimSuffix(r.Text, "."))] = true
		}
	}
	for _, rule := range slices.Sorted(maps.Keys(modelled)) {
		if !listed[rule] {
			t.Errorf("docs/internals/protocol.md does not list %q", rule)
		}
	}
	for _, rule := range slices.Sorted(maps.Keys(listed)) {
		if !modelled[rule] {
			t.Errorf("docs/internals/protocol.md lists %q, which no model goes without", rule)
		}
	}
}

func TestModelVariantsBelongToListedRules(t *testing.T) {
	models := lab.Must(Models("."))(t)
	named := map[string]bool{}
	for _, m := range models {
		for _, r := range m.Rules {
			named[r.Name] = true
		}
	}
	files := lab.Must(os.ReadDir("."))(t)
	used := map[string]bool{}
	for _, f := range files {
		if !strings.HasSuffix(f.Name(), ".pml") && !strings.HasSuffix(f.Name(), ".h") {
			continue
		}
		text := lab.Must(os.ReadFile(f.Name()))(t)
		for _, v := range regexp.MustCompile(`\bWITHOUT_(\w+)`).FindAllStringSubmatch(string(text), -1) {
			used[v[1]] = true
			if !named[v[1]] {
				t.Errorf("%s: no model names the rule of WITHOUT_%s", f.Name(), v[1])
			}
		}
	}
	for rule := range named {
		if !used[rule] {
			t.Errorf("no model can go without %s", rule)
		}
	}
}
