//go:build linux

package report

import (
	"encoding/json"
	"fmt"
	"os"

	"github.com/leasehold-go/leasehold/proof/bench/contest"
)

// Write writes the results to a file, as JSON.
func Write(path string, r *contest.Results) error {
	b, err := json.MarshalIndent(r, "", " ")
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(b, '\n'), 0o600)
}

// Read reads results from a file that Write has written.
func Read(path string) (*contest.Results, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	r := &contest.Results{}
	if err := json.Unmarshal(b, r); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return r, nil
}
