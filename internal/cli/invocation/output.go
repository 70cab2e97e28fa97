package invocation

import (
	"encoding/json"
	"fmt"

	"github.com/leasehold-go/leasehold/internal/cli/checks"
	"github.com/leasehold-go/leasehold/internal/cli/say"
	"github.com/leasehold-go/leasehold/internal/cli/store"
)

// Listing says how to write records to standard output.
func (in *Invocation) Listing(t *store.Table) say.Listing {
	terminal, caps := in.Stdout.Terminal && !in.JSON, t.Locks.Capabilities()
	return say.Listing{
		Table: t.Table, JSON: in.JSON, Terminal: terminal,
		Columns:  in.Stdout.Columns(),
		SortKeys: caps.SortKey, Expiry: caps.Expiry,
	}
}

// Print writes v as JSON with --json, else the text.
func (in *Invocation) Print(v any, format string, args ...any) error {
	if in.JSON {
		return json.NewEncoder(in.Stdout).Encode(v)
	}
	_, err := fmt.Fprintf(in.Stdout, format, args...)
	return err
}

// SayURL writes the URL that is served: on a terminal in words, in a pipe alone.
func (in *Invocation) SayURL(url string, asJSON map[string]string, words string, args ...any) error {
	if in.Stdout.Terminal {
		return in.Print(asJSON, words, args...)
	}
	return in.Print(asJSON, "%s\n", url)
}

// Report prints what checks find.
func (in *Invocation) Report() *checks.Report {
	return &checks.Report{Say: in.Say, Out: in.Stdout, JSON: in.JSON}
}
