package sources_test

import (
	"os/exec"
	"strings"
	"testing"
)

func TestLockPackagesImportOnlyTheAWSSDK(t *testing.T) {
	t.Chdir(root)
	out, err := exec.Command("go", "list", "-deps", "-f", "{{if not .Standard}}{{.ImportPath}}{{end}}",
		"github.com/leasehold-go/leasehold", "github.com/leasehold-go/leasehold/layout", "github.com/leasehold-go/leasehold/contrib/byname").Output()
	if err != nil {
		t.Fatal(err)
	}
	allowed := []string{
		"github.com/aws/aws-sdk-go-v2", "github.com/aws/smithy-go",
		"github.com/leasehold-go/leasehold/layout", "github.com/leasehold-go/leasehold/internal",
	}
	for _, path := range strings.Fields(string(out)) {
		ok := path == "github.com/leasehold-go/leasehold" || path == "github.com/leasehold-go/leasehold/contrib/byname"
		for _, a := range allowed {
			ok = ok || path == a || strings.HasPrefix(path, a+"/")
		}
		if !ok {
			t.Errorf("the lock packages import %s", path)
		}
	}
}
