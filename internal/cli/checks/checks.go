// Package checks implements the checks of the commands "doctor" and "table check". Each
// check examines one property of the store, such as its permissions, and returns Findings.
// A Finding is a result in words and figures, with advice. A Report prints the findings.
// The package reads no flags; its callers choose the checks.
//
// If a check finds a problem, the next checks still run, so that one run shows all problems.
// There are two exceptions. If the table's key attributes or status are wrong, no later check
// runs, because its requests would fail for the same reason (Finding.Last). If a check cannot be
// completed, for example because the server does not reply, no later check runs either
// (Finding.Failed). A check sends a lost or throttled request up to three times before it fails.
//
// The checks write one item, with a random key (store.Unused), and always delete it. A
// failed deletion is a finding, too.
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

// State is the result of a check: OK, Warning, Fatal or Unknown.
type State string

// Values of type State.
const (
	OK      State = "ok"
	Warning State = "warning"
	Fatal   State = "fatal"   // locks in this store would fail or be unsafe
	Unknown State = "unknown" // leasehold could not check this, for example because IAM denied the request; the denial may be intended
)

// cleanUp is the name of the check that deletes the item written by the other checks. This
// check returns a finding only if the deletion fails.
const cleanUp = "clean-up"

// Finding is one result of a check. It is printed as one line.
type Finding struct {
	Check  string         `json:"check"`
	State  State          `json:"state"`
	What   string         `json:"what"`
	Do     string         `json:"do,omitempty"`
	Values map[string]any `json:"values,omitempty"`

	Err    error `json:"-"` // error that caused the finding, or nil; its text is printed after What
	Last   bool  `json:"-"` // true if all later checks would fail for the same reason
	Failed bool  `json:"-"` // true if the check could not be completed; no later check is made
}

// failed returns the finding for a check that could not be completed because of err.
func failed(check string, err error) Finding {
	return Finding{Check: check, State: Fatal, Err: err, Failed: true}
}

// Check is one check: a description, and the function that runs it.
type Check struct {
	does string // what the check does, such as "describing the table"; shown on a terminal while it runs
	ask  func(context.Context) []Finding
}

// Report prints the findings of checks and computes the exit code of the command.
type Report struct {
	Say    *say.Messages
	Out    *say.Output
	JSON   bool
	Where  string // the table or file that stores the locks, for error messages
	Strict bool   // if true, an Unknown finding makes the exit code CodeTrouble, and Verdict returns the error of a failed check

	bad    bool  // true if a finding was Warning or Fatal
	failed bool  // true if a check could not be completed
	err    error // error of a failed check (if Strict), or error of writing to standard output
}

// Run runs the checks of list in order. It stops after a finding with Last or Failed set.
func (r *Report) Run(ctx context.Context, list []Check) {
	for _, c := range list {
		if r.Say.Rewrites() {
			r.Say.Rewrite(c.does)
		}
		found := c.ask(ctx)
		for _, f := range found {
			r.Found(ctx, f)
		}
		if slices.ContainsFunc(found, func(f Finding) bool { return f.Last || f.Failed }) {
			return
		}
	}
}

// Found prints a finding, with two exceptions. If Strict is set, it prints no failed check, because
// Verdict returns that check's error. After a signal, it prints only the finding of cleanUp,
// because the signal has cancelled the requests of all other checks.
func (r *Report) Found(ctx context.Context, f Finding) {
	if r.err != nil || f.Check != cleanUp && failure.Interrupted(context.Cause(ctx)) != nil {
		return
	}
	r.bad = r.bad || f.State == Fatal || f.State == Warning
	r.failed = r.failed || f.Failed || r.Strict && f.State == Unknown
	if r.Strict && f.Failed {
		r.err = f.Err
		return
	}
	r.err = r.print(f)
}

// print writes a finding to standard output, as JSON, as text or tab-separated.
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
		what := strings.TrimSuffix(f.What+": "+f.Do, ": ")
		state := fmt.Sprintf("%-7s", f.State)
		text := wording.Fill(fmt.Sprintf("%s  %-18s  ", state, f.Check), what, r.Out.Columns())
		return r.Out.Show(colours[f.State], state, strings.TrimPrefix(text, state))
	}
	return r.Out.Show(say.Tabbed(string(f.State), f.Check, f.What, f.Do), "\n")
}

// colours contains the terminal colours of the states Fatal and Warning.
var colours = map[State]say.Colour{Fatal: say.Red, Warning: say.Yellow}

// why returns the text of err for a finding. For an error of the SDK, it returns only why
// the request failed, because the finding already names the request.
func (r *Report) why(err error) string {
	if errors.As(err, new(*smithy.OperationError)) && !errors.As(err, new(*leasehold.OpError)) {
		return failure.Reason(err)
	}
	return failure.Text(err, r.Where)
}

// Verdict returns the error of the command, which determines the exit code. It returns nil if
// every finding is OK or Unknown. If Strict is set, it returns nil only if every finding is OK.
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
	case r.bad:
		return failure.Exit(failure.CodeNo, nil)
	}
	return nil
}

// The two lists contain file systems in which a server, rather than this machine's kernel, decides
// whether a file lock excludes other processes. For remoteFileSystems the server is another
// machine. For servedFileSystems the server is a program, or the host of a virtual machine.
var (
	remoteFileSystems = []string{"nfs", "smb", "smbfs", "smb2", "cifs", "afs", "afpfs", "webdav", "coda", "ceph", "lustre", "gpfs", "gfs2", "ocfs2"}
	servedFileSystems = []string{"fuse", "macfuse", "osxfuse", "9p", "vboxsf"}
)

// Disk checks the file system that contains the local store's file at path. The parameter kindOf
// is the function FileSystem, except in tests.
func Disk(path string, kindOf func(path string) (string, error)) Finding {
	_, err := os.Stat(path)
	for ; err != nil && path != filepath.Dir(path); _, err = os.Stat(path) { // finds the nearest existing directory, because neither the file nor its directory need exist yet
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

// regions reports which of the Regions of --failover serve requests. It sends strongly
// consistent reads. If a Region is cut off from the other Regions, strongly consistent
// reads fail there, although eventually consistent reads may still succeed.
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

// replicas reports in which Regions a strongly consistent global table has replicas. It also
// warns of each Region in --failover that has no active replica. The function table.Check cannot
// warn of this: it does not know the Regions in --failover.
func (t *Subject) replicas(d *types.TableDescription) (found []Finding) {
	states, others := map[string]any{}, []string(nil)
	active := []string{t.Home.Options().Region}
	for _, r := range d.Replicas {
		name := aws.ToString(r.RegionName)
		states[name] = r.ReplicaStatus
		if r.ReplicaStatus == types.ReplicaStatusActive {
			active = append(active, name)
		}
		if name != active[0] { // DynamoDB may list the home Region among the replicas
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
