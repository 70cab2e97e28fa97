// Package checks implements the checks of doctor and table check. Each check examines one
// thing and returns a Finding: the result in words and figures, with advice. A Report
// prints the findings. The package knows no flags; its callers choose the checks.
//
// After a finding that is not ok, the checks continue, so that one run shows all problems.
// There are two exceptions. If the keys or the status of the table do not fit, the checks
// end: all later requests would fail for that reason (Last). If a request gets no answer,
// the checks also end: nothing can be checked (Failed). But a lost or throttled request is
// first sent three times.
//
// The checks write one key (store.Unused) and always delete it. A failed clean-up is a
// finding of its own.
package checks

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/attempts"
	"github.com/leasehold-go/leasehold/internal/cli/failure"
	"github.com/leasehold-go/leasehold/internal/cli/say"
	"github.com/leasehold-go/leasehold/internal/cli/wording"
	"github.com/leasehold-go/leasehold/internal/visible"
)

// State is the result of a check.
type State string

// Values of State.
const (
	OK      State = "ok"
	Warning State = "warning"
	Fatal   State = "fatal"   // locks would fail or be unsafe
	Unknown State = "unknown" // the check was not possible, such as for lack of a right; this may be intended
)

// cleanUp is the check that reports an item left in the table.
const cleanUp = "clean-up"

// Finding is the result of a check: one line.
type Finding struct {
	Check  string         `json:"check"`
	State  State          `json:"state"`
	What   string         `json:"what"`
	Do     string         `json:"do,omitempty"`
	Values map[string]any `json:"values,omitempty"`

	Err    error `json:"-"` // the cause: its text follows What
	Last   bool  `json:"-"` // no further check is possible
	Failed bool  `json:"-"` // no further check is possible, as this one could not be completed
}

// failed returns the finding of a check that could not be completed.
func failed(check string, err error) Finding {
	return Finding{Check: check, State: Fatal, Err: err, Failed: true}
}

// Check is one step of a report, with its findings.
type Check struct {
	does string // text that is shown while the check runs
	ask  func(context.Context) []Finding
}

// Report prints findings and turns them into an exit code.
type Report struct {
	Say    *say.Messages
	Out    *say.Output
	JSON   bool
	Where  string // where the locks are stored, for messages
	Strict bool   // an unknown result makes the exit code CodeTrouble, and the error of a failed check is returned instead of printed

	worst  State // the worst state found: "", Warning or Fatal
	failed bool  // true if a check could not be completed
	err    error // error of a failed check, or of a write to the output
}

// Run runs the checks in order, until no further check is possible.
func (r *Report) Run(ctx context.Context, list []Check) {
	for _, c := range list {
		if r.Say.Rewrites() {
			r.Say.Rewrite(c.does)
		}
		more := true
		for _, f := range c.ask(ctx) {
			r.Found(ctx, f)
			more = more && !f.Last && !f.Failed
		}
		if !more {
			return
		}
	}
}

// Found prints a finding as soon as it is known. After a signal Found prints only a failed
// clean-up, because the signal makes all other requests fail.
func (r *Report) Found(ctx context.Context, f Finding) {
	if r.err != nil || f.Check != cleanUp && failure.Interrupted(context.Cause(ctx)) != nil {
		return
	}
	if f.State == Fatal || f.State == Warning && r.worst == "" {
		r.worst = f.State
	}
	r.failed = r.failed || f.Failed || r.Strict && f.State == Unknown
	if r.Strict && f.Failed {
		r.err = f.Err
		return
	}
	r.err = r.print(f)
}

// print writes a finding to standard output.
func (r *Report) print(f Finding) error {
	if f.Err != nil {
		f.What = strings.TrimPrefix(f.What+": "+r.why(f.Err), ": ")
		if f.Failed {
			f.Do = strings.TrimPrefix(failure.Remedy(f.Err, r.Where), ": ")
		}
	}
	f.What, f.Do = visible.OneLine(f.What), visible.OneLine(f.Do)
	r.Say.Clear()
	switch {
	case r.JSON:
		return json.NewEncoder(r.Out).Encode(f)
	case r.Out.Terminal:
		what := f.What
		if f.Do != "" {
			what += ": " + f.Do
		}
		state := fmt.Sprintf("%-7s", f.State)
		text := wording.Fill(fmt.Sprintf("%s  %-18s  ", state, f.Check), what, r.Out.Columns())
		return r.Out.Show(append(colours[f.State].Of(state), strings.TrimPrefix(text, state))...)
	}
	return r.Out.Show(say.Tabbed(string(f.State), f.Check, f.What, f.Do), "\n")
}

// colours mark states other than ok.
var colours = map[State]say.Colour{Fatal: say.Red, Warning: say.Yellow}

// why returns the text of an error. For an SDK error it returns only the reason, as the
// line already names the request.
func (r *Report) why(err error) string {
	if errors.As(err, new(*smithy.OperationError)) && !errors.As(err, new(*leasehold.OpError)) {
		return failure.Reason(err)
	}
	return failure.Text(err, r.Where)
}

// Verdict turns the findings into an exit code.
func (r *Report) Verdict(ctx context.Context) error {
	switch {
	case failure.Interrupted(context.Cause(ctx)) != nil:
		return failure.Interrupted(context.Cause(ctx))
	case r.err != nil:
		return r.err
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case r.failed:
		return failure.Exit(failure.CodeTrouble, nil)
	case r.worst != "":
		return failure.Exit(failure.CodeNo, nil)
	}
	return nil
}

// On these file systems, a file lock may not exclude other processes. Those in the first
// group are served by other machines. Those in the second group are served by a program, or
// by the host of a virtual machine, and their behaviour is unknown.
var (
	remoteFileSystems = []string{"nfs", "smb", "smbfs", "smb2", "cifs", "afs", "afpfs", "webdav", "coda", "ceph", "lustre", "gpfs", "gfs2", "ocfs2"}
	servedFileSystems = []string{"fuse", "macfuse", "osxfuse", "9p", "vboxsf"}
)

// Disk reports on the file system of a local store's file. kindOf is FileSystem except in
// tests.
func Disk(path string, kindOf func(path string) (string, error)) Finding {
	for { // the loop looks for an existing directory, because the file and its directory may not exist yet
		if _, err := os.Stat(path); err == nil || path == filepath.Dir(path) {
			break
		}
		path = filepath.Dir(path)
	}
	kind, err := kindOf(path)
	if err != nil {
		return Finding{Check: "file system", State: Unknown, What: "its kind is not known", Do: "make sure that it is a local disk", Err: err}
	}
	on := Finding{Check: "file system", State: OK, What: kind, Values: map[string]any{"kind": kind}}
	switch kind := strings.ToLower(kind); {
	case slices.Contains(remoteFileSystems, kind):
		on.State, on.What = Fatal, kind+": a file lock there may not exclude other processes, on this or other machines"
		on.Do = "move the store to a local disk, or use a DynamoDB table for several machines"
	case slices.Contains(servedFileSystems, kind):
		on.State, on.What = Warning, kind+": a file lock there may not exclude other processes: that depends on its server"
		on.Do = "move the store to a local disk"
	case kind == "overlay":
		on.What += ": in a container, only its own processes share these locks"
	case kind == "tmpfs":
		on.What += ": in memory, so the locks and their tokens go with a restart of this machine"
	}
	return on
}

// regions reports which Regions serve requests. It sends strongly consistent reads: a
// Region that is cut off from the others fails these, but may still answer other reads.
func (t *Subject) regions(ctx context.Context) (found []Finding) {
	for _, client := range t.Regions() {
		name := client.Options().Region
		f := Finding{Check: "region", State: OK, What: name + " serves", Values: map[string]any{"region": name}}
		if err := attempts.Patiently(ctx, t.get(client)); err != nil {
			f.State, f.What, f.Err = Warning, fmt.Sprintf("no strongly consistent read in %s", name), err
		}
		found = append(found, f)
	}
	return found
}

// replicas reports in which Regions a table is strongly consistent. It also reports the
// Regions of --failover that have no active replica. table.Check has already reported all
// other problems of replicas.
func (t *Subject) replicas(d *types.TableDescription) (found []Finding) {
	states, others := map[string]any{}, []string(nil)
	active := []string{t.Home.Options().Region}
	for _, r := range d.Replicas {
		name := aws.ToString(r.RegionName)
		states[name] = r.ReplicaStatus
		if r.ReplicaStatus == types.ReplicaStatusActive {
			active = append(active, name)
		}
		if name != active[0] { // the list of replicas may include the described Region itself
			others = append(others, fmt.Sprintf("%s (%s)", name, r.ReplicaStatus))
		}
	}
	for _, w := range d.GlobalTableWitnesses {
		others = append(others, fmt.Sprintf("the witness %s (%s)", aws.ToString(w.RegionName), w.WitnessStatus))
	}
	if t.isStrong {
		found = append(found, Finding{
			Check: "consistency", State: OK, What: "strong, with " + strings.Join(others, ", "),
			Values: map[string]any{"consistency": d.MultiRegionConsistency, "replicas": states},
		})
	}
	for _, client := range t.Regions() {
		if name := client.Options().Region; !slices.Contains(active, name) {
			found = append(found, Finding{
				Check: "failover", State: Warning, What: fmt.Sprintf("no active replica in %s, so no request leaves %s", name, active[0]),
				Do: "name only Regions with an active replica, or add one there",
			})
		}
	}
	return found
}
