//go:build linux

package peers

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/leasehold-go/leasehold/internal/lab"
	"github.com/leasehold-go/leasehold/proof/interop/engines"
)

func TestInstallDynamolockFailsWithoutSourcePath(t *testing.T) {
	t.Setenv(Checkout, "")
	lab.WantErr(t, "Install", Dynamolock.Install(t.Context()), ErrNotInstallable)
}

func TestInstallDynamolockRejectsCheckoutFolderWithoutGoMod(t *testing.T) {
	t.Setenv(Checkout, t.TempDir())
	if err := Dynamolock.Install(t.Context()); err == nil || errors.Is(err, ErrNotInstallable) || !strings.Contains(err.Error(), "is no checkout of dynamolock") {
		t.Errorf("error %v", err)
	}
}

// The test builds the driver with a stub of dynamolock v2. The stub exports only the names that the
// driver may use. If the driver used any other name, the build would fail.
func TestDynamolockDriverIsBuiltFromGivenSource(t *testing.T) {
	server := engines.Run(t, engines.Dynoxide)
	checkout := t.TempDir()
	stub := lab.Must(os.ReadFile("testdata/dynamolock/dynamolock.go"))(t)
	for name, content := range map[string]string{
		"dynamolock.go": string(stub),
		"go.mod":        "module cirello.io/dynamolock/v2\n\ngo 1.25\n\nrequire (\n\t" + strings.Join(dynamolockSDK, "\n\t") + "\n)\n",
	} {
		lab.OK(t, os.WriteFile(filepath.Join(checkout, name), []byte(content), 0o600))
	}
	t.Setenv("LEASEHOLD_ENGINES", t.TempDir()) // build the driver in a temporary folder, so that no later test can find it
	t.Setenv(Checkout, checkout)
	s := Settings{Table: "locks", Owner: "one", Lease: 20 * time.Second, Heartbeat: 5 * time.Second}
	lab.OK(t, Dynamolock.CreateTable(Patiently(t), server, s))
	one := Run(t, Dynamolock, server.Endpoint, s)
	held := one.Acquire(t, "k")
	s.Owner = "other"
	other := Run(t, Dynamolock, server.Endpoint, s)
	other.Refused(t, "k")
	if got, err := other.Ask(t, Request{Do: "get", Key: "k"}); err != nil || got.Record == nil || got.Record.Owner != "one" {
		t.Errorf("the record is %+v, %v", got.Record, err)
	}
	waiting := other.Send(Request{Do: "acquire", Key: "k", Wait: time.Minute})
	one.Release(t, held)
	lab.Must(waiting.Await(t))(t)
	lab.WantErr(t, "an option that the driver does not know", lab.ErrorOf(one.Ask(t, Request{Do: "acquire", Key: "k", Reentrant: true})), ErrUnsupported)
}

func TestDynamolockVersionIsReadFromGoModOfCheckout(t *testing.T) {
	checkout := t.TempDir()
	lab.OK(t, os.WriteFile(filepath.Join(checkout, "go.mod"), []byte("module cirello.io/dynamolock/v2\n"), 0o600))
	t.Setenv(Checkout, checkout)
	lab.WantMatch(t, "version", checkedOut(), "^cirello.io/dynamolock/v2")
}

func TestDynamolockDriverUsesSDKVersionsOfProofModule(t *testing.T) {
	mod := lab.Must(os.ReadFile("../../go.mod"))(t)
	for _, required := range dynamolockSDK {
		lab.WantParts(t, "proof/go.mod", mod, "\n\t"+required+"\n")
	}
}
