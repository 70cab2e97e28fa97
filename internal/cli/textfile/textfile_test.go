package textfile

import (
	"os"
	"regexp"
	"slices"
	"testing"
)

func TestThePageOfTheMetricsHasThoseOfRun(t *testing.T) {
	page, err := os.ReadFile("../../../docs/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, of := range metrics {
		names = append(names, of.name)
		if !regexp.MustCompile("\\| `" + of.name + "` \\|").Match(page) {
			t.Errorf("%s is in no table", of.name)
		}
	}
	for _, name := range regexp.MustCompile(metricPrefix+`\w+`).FindAll(page, -1) {
		if !slices.Contains(names, string(name)) {
			t.Errorf("there is no %s", name)
		}
	}
}
