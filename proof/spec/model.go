//go:build linux

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// Model is a model of the protocol in Promela, the language of spin.
type Model struct {
	Name  string // file name without .pml
	Rules []Rule
	Lives bool // true if the model also states what must eventually happen (liveness)
}

// Rule is a rule of the protocol that a model can omit.
type Rule struct {
	Name   string // name of the rule: defining the macro WITHOUT_NAME compiles the model without the rule
	Text   string
	InTime bool // true if the model without the rule violates liveness: something that must eventually happen may never happen
}

// ruleLine matches the line of a rule in the comment at the beginning of a model.
var ruleLine = regexp.MustCompile(`^ \*   ([A-Z][A-Z_]*)(, in time)?: (.+)$`)

// Models reads the models in dir, in the order of their names.
func Models(dir string) ([]Model, error) {
	paths, err := filepath.Glob(filepath.Join(dir, "*.pml"))
	if err != nil {
		return nil, err
	}
	slices.Sort(paths)
	models := make([]Model, 0, len(paths))
	for _, path := range paths {
		text, err := os.ReadFile(path) //nolint:gosec // path is the path of a model in the directory of this program
		if err != nil {
			return nil, err
		}
		m := Model{Name: strings.TrimSuffix(filepath.Base(path), ".pml"), Lives: strings.Contains(string(text), "#ifdef LIVENESS")}
		header, _, _ := strings.Cut(string(text), "*/")
		for line := range strings.Lines(header) {
			if r := ruleLine.FindStringSubmatch(strings.TrimRight(line, "\n")); r != nil {
				m.Rules = append(m.Rules, Rule{Name: r[1], InTime: r[2] != "", Text: r[3]})
			}
		}
		if len(m.Rules) == 0 {
			return nil, fmt.Errorf("%s names no rule in its first comment", path)
		}
		models = append(models, m)
	}
	if len(models) == 0 {
		return nil, fmt.Errorf("there is no model in %s", dir)
	}
	return models, nil
}

// Search describes a search through all states of a model. The model is complete, or lacks one of
// its rules.
type Search struct {
	Model   string
	Without string // name of the rule that is left out; empty for the complete model
	InTime  bool   // true to search for a violation of liveness; false to search for a wrong state
}

// Searches returns all searches. For each model, these are searches of the complete model and,
// for each of its rules, a search of the model without this rule.
func Searches(models []Model) []Search {
	var all []Search
	for _, m := range models {
		all = append(all, Search{Model: m.Name})
		if m.Lives {
			all = append(all, Search{Model: m.Name, InTime: true})
		}
		for _, r := range m.Rules {
			all = append(all, Search{Model: m.Name, Without: r.Name, InTime: r.InTime})
		}
	}
	return all
}

func (s Search) String() string {
	name := s.Model
	if s.InTime {
		name += " in time"
	}
	if s.Without != "" {
		name += " without " + s.Without
	}
	return name
}
