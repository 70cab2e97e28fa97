package checks

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/leasehold-go/leasehold/internal/attempts"
)

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
