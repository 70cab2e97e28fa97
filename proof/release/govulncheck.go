package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

const (
	// databasePatience limits each request to the vulnerability database.
	databasePatience = 20 * time.Second
	// checkPatience limits the time that govulncheck may take for one module.
	checkPatience = 10 * time.Minute
)

// vulnerabilityCheck checks Go modules against a database of known vulnerabilities.
type vulnerabilityCheck struct {
	database string // URL of the vulnerability database
	client   *http.Client
	check    func(ctx context.Context, dir string) error // checks one module and prints its findings
	say      io.Writer
}

// newVulnerabilityCheck returns a check that uses "go run" to run the given tool, such as
// golang.org/x/vuln/cmd/govulncheck@VERSION. The environment variable GOVULNDB can select another
// database. (govulncheck itself reads the same variable.)
func newVulnerabilityCheck(tool string) vulnerabilityCheck {
	database := os.Getenv("GOVULNDB")
	if database == "" {
		database = "https://vuln.go.dev"
	}
	return vulnerabilityCheck{
		database: database, client: &http.Client{Timeout: databasePatience}, say: os.Stdout,
		check: func(ctx context.Context, dir string) error {
			ctx, cancel := context.WithTimeout(ctx, checkPatience)
			defer cancel()
			cmd := exec.CommandContext(ctx, "go", "run", tool, "-db", database, "./...")
			cmd.Dir, cmd.Stdout, cmd.Stderr, cmd.WaitDelay = dir, os.Stdout, os.Stderr, time.Second
			return cmd.Run()
		},
	}
}

// released checks the modules that a release contains: the main module and the adapters. It returns
// the errors of failed checks. A check fails, for example, if govulncheck finds a vulnerability. If
// the database does not answer, released prints this, and checks no further module.
func (v vulnerabilityCheck) released(ctx context.Context, module string) error {
	if err := v.answers(ctx); err != nil {
		fmt.Fprintln(v.say, "govulncheck was not run:", err)
		return nil
	}
	var found []error
	for _, name := range append([]string{"."}, adapters...) {
		fmt.Fprintln(v.say, "== govulncheck", name)
		err := v.check(ctx, filepath.Join(module, name))
		if err == nil {
			continue
		}
		if gone := v.answers(ctx); gone != nil {
			fmt.Fprintln(v.say, "govulncheck was not run to its end:", gone)
			break
		}
		found = append(found, fmt.Errorf("govulncheck of %s: %w", name, err))
	}
	return errors.Join(found...)
}

// answers returns an error if the vulnerability database cannot be reached, or if its reply does
// not look like the index of a vulnerability database.
func (v vulnerabilityCheck) answers(ctx context.Context) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, v.database+"/index/db.json", nil)
	if err != nil {
		return err
	}
	reply, err := v.client.Do(request)
	if err != nil {
		return err
	}
	defer reply.Body.Close()
	var index struct{ Modified time.Time }
	if err := json.NewDecoder(io.LimitReader(reply.Body, 1<<20)).Decode(&index); err != nil || reply.StatusCode != http.StatusOK || index.Modified.IsZero() {
		return fmt.Errorf("%s is no database of vulnerabilities: it answers %s", v.database, reply.Status)
	}
	return nil
}
