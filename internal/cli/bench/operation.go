package bench

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/leasehold-go/leasehold/internal/cli/checks"
	"github.com/leasehold-go/leasehold/internal/cli/requests"
	"github.com/leasehold-go/leasehold/internal/cli/wording"
)

// operation is what was measured of one operation.
type operation struct {
	name    string
	took    []time.Duration
	used    requests.Usage
	clients int
	lease   time.Duration
}

// Result is an operation as it is printed in JSON.
type Result struct {
	Operation         string  `json:"operation"`
	Table             string  `json:"table"`
	Count             int     `json:"count"`
	P50Ms             float64 `json:"p50Ms"`
	P95Ms             float64 `json:"p95Ms"`
	P99Ms             float64 `json:"p99Ms"`
	MaxMs             float64 `json:"maxMs"`
	Requests          float64 `json:"requests"`   // of one operation
	WriteUnits        float64 `json:"writeUnits"` // of one operation
	ReadUnits         float64 `json:"readUnits"`  // of one operation
	DollarsPerMillion float64 `json:"dollarsPerMillion"`
	WritePrice        float64 `json:"writePrice"` // dollars for a million write units
	ReadPrice         float64 `json:"readPrice"`
	Throttled         int     `json:"throttled,omitempty"` // requests, in all
	Clients           int     `json:"clients,omitempty"`
	LeaseMs           int64   `json:"leaseMs,omitempty"`
}

// A line in a pipe, and one on a terminal with its heading.
const (
	tabbed  = "%s\t%d\t%.2f\t%.2f\t%.2f\t%.2f\t%.2f\t%.2f\t%.3f\n"
	columns = "%-9s  %7d  %8.2f  %8.2f  %8.2f  %8.2f  %6.2f  %6.2f  %9.3f\n"
	heading = "OPERATION    COUNT    P50 MS    P95 MS    P99 MS  REQUESTS  WRITES   READS  $/MILLION\n"
)

// print prints percentiles, the use of one operation, and the bill.
func (b *Bench) print(o *operation) error {
	slices.Sort(o.took)
	ms := func(p float64) float64 { return float64(checks.Percentile(o.took, p).Microseconds()) / 1000 }
	n := float64(max(len(o.took), 1))
	r := Result{
		Operation: o.name, Table: b.store.Table, Count: len(o.took), P50Ms: ms(0.5), P95Ms: ms(0.95), P99Ms: ms(0.99), MaxMs: ms(1),
		Requests: float64(o.used.Requests) / n, WriteUnits: o.used.Writes / n, ReadUnits: o.used.Reads / n,
		DollarsPerMillion: (o.used.Writes*b.WritePrice + o.used.Reads*b.ReadPrice) / n, WritePrice: b.WritePrice, ReadPrice: b.ReadPrice,
		Throttled: o.used.Throttled, Clients: o.clients, LeaseMs: o.lease.Milliseconds(),
	}
	if r.Throttled > 0 {
		b.Say.Text("%s: %s throttled", r.Operation, wording.Count(r.Throttled, "request was", "requests were"))
	}
	if b.JSON {
		return json.NewEncoder(b.Out).Encode(r)
	}
	line := tabbed
	if b.Out.Terminal {
		line = columns
	}
	_, err := fmt.Fprintf(b.Out, line, r.Operation, r.Count, r.P50Ms, r.P95Ms, r.P99Ms, r.Requests, r.WriteUnits, r.ReadUnits, r.DollarsPerMillion)
	return err
}
