package dashboard

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/promql/parser"
	"go.uber.org/goleak"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/contrib/leaseholdprom"
	"github.com/leasehold-go/leasehold/internal/eventtest"
	"github.com/leasehold-go/leasehold/internal/lab"
	"github.com/leasehold-go/leasehold/regions"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// dashboard contains the fields of a Grafana dashboard that the tests check.
type dashboard struct {
	Title, UID    string
	SchemaVersion int
	Templating    struct{ List []variable }
	Panels        []panel
}

type variable struct {
	Name, Type, Definition string
	Query                  json.RawMessage
	Datasource             datasource
}

type datasource struct{ Type, UID string }

type panel struct {
	ID          int
	Type, Title string
	Description string
	Datasource  datasource
	GridPos     struct{ H, W, X, Y int }
	Targets     []target
}

type target struct {
	RefID, Expr, LegendFormat string
	Datasource                datasource
}

func readDashboard(t *testing.T) dashboard {
	t.Helper()
	b := lab.Must(os.ReadFile("../../../docs/grafana-dashboard.json"))(t)
	var d dashboard
	lab.OK(t, json.Unmarshal(b, &d))
	return d
}

// exported maps the name of each series that leasehold exports to the names of its labels. A
// histogram has three series, whose names end with _bucket, _sum and _count.
func exported(t *testing.T) map[string][]string {
	t.Helper()
	names := map[string][]string{}
	synctest.Test(t, func(t *testing.T) {
		reg := prometheus.NewPedanticRegistry()
		m := leaseholdprom.New(reg, func(k leasehold.Key) string { return k.Partition })
		w := eventtest.New(t)
		c, _ := w.Client(m.OnEvent)
		m.Watch(c)
		abroad := lab.Must(leasehold.New(regions.New(dynamodb.New(dynamodb.Options{Region: "us-east-1"})), leasehold.Config{Table: "locks"}))(t)
		defer abroad.Close(t.Context())
		m.Watch(abroad)
		m.OnEvent(t.Context(), leasehold.Event{Kind: leasehold.EventRegion, Region: "us-east-2"})
		lock := w.Acquire(t.Context(), c, "job")
		families := lab.Must(reg.Gather())(t)
		w.Release(lock)
		for _, f := range families {
			var has []string
			for _, l := range f.GetMetric()[0].GetLabel() {
				has = append(has, l.GetName())
			}
			name := f.GetName()
			if f.GetType() != dto.MetricType_HISTOGRAM {
				names[name] = has
				continue
			}
			names[name+"_bucket"] = append(slices.Clone(has), "le")
			names[name+"_sum"], names[name+"_count"] = has, has
		}
	})
	return names
}

// fromPrometheus contains the labels that Prometheus adds to each series when it scrapes a process.
var fromPrometheus = []string{"job", "instance"}

// check parses a PromQL query. The test fails if the query uses a series that leasehold does not
// export, or a label that the series does not have. check returns the names of the series that the
// query selects, and the labels by which the query groups them.
func check(t *testing.T, where, query string, exported map[string][]string) (shown, result []string) {
	t.Helper()
	expr, err := parser.NewParser(parser.Options{}).ParseExpr(query)
	if err != nil {
		t.Errorf("%s: %v", where, err)
		return nil, nil
	}
	has := map[string]bool{} // labels that at least one of the selected series has
	parser.Inspect(expr, func(node parser.Node, _ []parser.Node) error {
		s, ok := node.(*parser.VectorSelector)
		if !ok {
			return nil
		}
		of, ok := exported[s.Name]
		if !ok {
			t.Errorf("%s: %s is not exported", where, s.Name)
			return nil
		}
		shown = append(shown, s.Name)
		for _, l := range slices.Concat(of, fromPrometheus) {
			has[l] = true
		}
		for _, m := range s.LabelMatchers {
			if m.Name != model.MetricNameLabel && !slices.Contains(slices.Concat(of, fromPrometheus), m.Name) {
				t.Errorf("%s: %s has no label %s", where, s.Name, m.Name)
			}
		}
		return nil
	})
	parser.Inspect(expr, func(node parser.Node, _ []parser.Node) error {
		if a, ok := node.(*parser.AggregateExpr); ok {
			for _, l := range a.Grouping {
				lab.Want(t, where+": "+a.String()+": a selected series has the label "+l, has[l], true)
			}
			result = append(result, a.Grouping...)
		}
		return nil
	})
	lab.Want(t, where+": there is a series in "+query, len(shown) > 0, true)
	return shown, result
}

// interpolated replaces Grafana's variables in a query with example values.
func interpolated(query string) string {
	return strings.NewReplacer("$__rate_interval", "1m", "$__range", "3h", "$job", ".*", "$group", ".*").Replace(query)
}

var (
	legendLabel = regexp.MustCompile(`{{\s*(\w+)\s*}}`)
	labelValues = regexp.MustCompile(`^label_values\((.+), (\w+)\)$`)
)

func TestDashboardShowsEveryExportedMetric(t *testing.T) {
	exported := exported(t)
	d := readDashboard(t)
	missing := maps.Clone(exported)
	for _, p := range d.Panels {
		for _, q := range p.Targets {
			where := fmt.Sprintf("panel %q, query %s", p.Title, q.RefID)
			shown, result := check(t, where, interpolated(q.Expr), exported)
			for _, name := range shown {
				delete(missing, name)
			}
			for _, m := range legendLabel.FindAllStringSubmatch(q.LegendFormat, -1) {
				lab.Want(t, where+": the result has what the legend names: "+m[1], slices.Contains(result, m[1]), true)
			}
		}
	}
	delete(missing, "leasehold_renew_seconds_sum") // no panel needs the sum, because the dashboard shows only quantiles of this histogram
	lab.Want(t, "metrics in no panel", slices.Sorted(maps.Keys(missing)), nil)
	for _, v := range d.Templating.List {
		if v.Type != "query" {
			continue
		}
		m := labelValues.FindStringSubmatch(v.Definition)
		if m == nil || !strings.Contains(string(v.Query), "label_values(") {
			t.Errorf("variable %s: %s", v.Name, v.Definition)
			continue
		}
		shown, _ := check(t, "variable "+v.Name, interpolated(m[1]), exported)
		if m[2] != v.Name || len(shown) != 1 || !slices.Contains(slices.Concat(exported[shown[0]], fromPrometheus), m[2]) {
			t.Errorf("variable %s: no label %s of %v", v.Name, m[2], shown)
		}
	}
}

func TestDashboardHasFieldsThatGrafanaRequires(t *testing.T) {
	d := readDashboard(t)
	if d.Title == "" || d.UID == "" || len(d.UID) > 40 || d.SchemaVersion < 36 || len(d.Panels) == 0 {
		t.Errorf("title %q, uid %q, schema %d, %d panels", d.Title, d.UID, d.SchemaVersion, len(d.Panels))
	}
	chosen := datasource{Type: "prometheus", UID: "${datasource}"}
	if v := d.Templating.List[0]; v.Name != "datasource" || v.Type != "datasource" || string(v.Query) != `"prometheus"` {
		t.Errorf("the data source cannot be chosen: %+v", v)
	}
	names := map[string]bool{"__rate_interval": true, "__range": true}
	for _, v := range d.Templating.List {
		if names[v.Name] = true; v.Type == "query" && v.Datasource != chosen {
			t.Errorf("variable %s uses data source %v", v.Name, v.Datasource)
		}
	}
	uses := regexp.MustCompile(`\$(\w+)`)
	ids := map[int]bool{}
	taken := map[[2]int]string{}
	for _, p := range d.Panels {
		if ids[p.ID] || p.ID == 0 || p.Title == "" {
			t.Errorf("panel %q has the id %d", p.Title, p.ID)
		}
		ids[p.ID] = true
		g := p.GridPos
		if g.H < 1 || g.W < 1 || g.X < 0 || g.X+g.W > 24 {
			t.Errorf("panel %q is at %+v", p.Title, g)
		}
		for x := g.X; x < g.X+g.W; x++ {
			for y := g.Y; y < g.Y+g.H; y++ {
				if other := taken[[2]int{x, y}]; other != "" {
					t.Fatalf("panel %q overlaps %q", p.Title, other)
				}
				taken[[2]int{x, y}] = p.Title
			}
		}
		if p.Type == "row" {
			continue
		}
		if p.Datasource != chosen || len(p.Targets) == 0 || p.Description == "" {
			t.Errorf("panel %q: %v, %d queries, description %q", p.Title, p.Datasource, len(p.Targets), p.Description)
		}
		refs := map[string]bool{}
		for _, q := range p.Targets {
			if q.Datasource != chosen || q.RefID == "" || refs[q.RefID] {
				t.Errorf("panel %q, query %q: %v", p.Title, q.RefID, q.Datasource)
			}
			refs[q.RefID] = true
			for _, m := range uses.FindAllStringSubmatch(q.Expr, -1) {
				lab.Want(t, p.Title+" uses $"+m[1]+", which is a variable", names[m[1]], true)
			}
		}
	}
}

// The page docs/metrics.md contains Prometheus alerts to copy, and a table of all metrics.
func TestMetricsPageHasAllMetricsAndValidAlerts(t *testing.T) {
	page := string(lab.Must(os.ReadFile("../../../docs/metrics.md"))(t))
	exported := exported(t)
	_, rules, _ := strings.Cut(page, "```yaml\n")
	rules, _, _ = strings.Cut(rules, "```")
	alerts := 0
	for line := range strings.Lines(rules) {
		if query, ok := strings.CutPrefix(strings.TrimSpace(line), "expr: "); ok {
			alerts++
			check(t, "alert "+fmt.Sprint(alerts), query, exported)
		}
	}
	if want := strings.Count(rules, "- alert: "); alerts == 0 || alerts != want {
		t.Errorf("%d alerts, %d queries", want, alerts)
	}
	for name := range exported {
		name = strings.TrimSuffix(strings.TrimSuffix(strings.TrimSuffix(name, "_bucket"), "_sum"), "_count")
		lab.WantParts(t, "docs/metrics.md", page, "| `"+name+"` |")
	}
	named := regexp.MustCompile(`\bleasehold_\w+`)
	for _, name := range named.FindAllString(page, -1) {
		if strings.HasPrefix(name, "leasehold_run_") {
			continue // skip the metrics that the leasehold command exports: the command's own tests compare them with the page
		}
		_, plain := exported[name]
		if _, histogram := exported[name+"_count"]; !plain && !histogram {
			t.Errorf("%s is not exported", name)
		}
	}
}
