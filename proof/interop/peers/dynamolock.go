//go:build linux

package peers

import (
	"context"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/leasehold-go/leasehold/proof/interop/install"
)

// Dynamolock is cirello.io/dynamolock. The package registries that this project uses do not
// have dynamolock. So the driver is built with a checkout of dynamolock's repository (see
// Checkout).
var Dynamolock = Peer{
	Name: "dynamolock", Version: checkedOut(), Layout: "dynamolock",
	Heartbeats: true,
	command: func(ctx context.Context) (*exec.Cmd, error) {
		path, err := dynamolockDriver(ctx)
		if err != nil {
			return nil, err
		}
		return exec.Command(path), nil
	},
}

// Checkout is the name of an environment variable. Its value is the path of a folder in a checkout
// of dynamolock: the folder that contains the go.mod of the major version to use.
const Checkout = "LEASEHOLD_DYNAMOLOCK"

// checkedOut returns the module path and the commit of the checkout. It omits a part that
// it cannot determine.
func checkedOut() string {
	checkout := os.Getenv(Checkout)
	if checkout == "" {
		return "no checkout"
	}
	version := "a checkout"
	if root, err := os.OpenRoot(checkout); err == nil {
		defer root.Close()
		mod, _ := root.ReadFile("go.mod")
		if path := moduleLine.FindSubmatch(mod); path != nil {
			version = string(path[1])
		}
	}
	if commit, err := exec.Command("git", "-C", checkout, "rev-parse", "--short", "HEAD").Output(); err == nil {
		version += " " + strings.TrimSpace(string(commit))
	}
	return version
}

//go:embed dynamolock/main.go
var dynamolockSource embed.FS

// imported is the import path of dynamolock in the driver's source. dynamolockDriver
// replaces it with the module path of the checkout.
const imported = `"cirello.io/dynamolock/v5"`

// dynamolockSDK lists the AWS SDK modules with which the driver is built, in the versions
// that leasehold uses.
var dynamolockSDK = []string{
	"github.com/aws/aws-sdk-go-v2 v1.47.7",
	"github.com/aws/aws-sdk-go-v2/credentials v1.20.15",
	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue v1.21.19",
	"github.com/aws/aws-sdk-go-v2/service/dynamodb v1.73.1",
}

var (
	moduleLine = regexp.MustCompile(`(?m)^module (\S+)`)
	majorOf    = regexp.MustCompile(`/(v[0-9]+)$`)
)

// dynamolockDriver returns the path of the driver. It builds the driver, unless a driver
// from the same sources exists.
func dynamolockDriver(ctx context.Context) (string, error) {
	checkout := os.Getenv(Checkout)
	if checkout == "" {
		return "", fmt.Errorf("%w: its module could not be downloaded, and no checkout was given: make bench DYNAMOLOCK=CHECKOUT measures one", ErrNotInstallable)
	}
	checkout, err := filepath.Abs(checkout)
	if err != nil {
		return "", err
	}
	root, err := os.OpenRoot(checkout)
	if err != nil {
		return "", err
	}
	defer root.Close()
	mod, err := root.ReadFile("go.mod")
	if err != nil {
		return "", fmt.Errorf("peers: %s is no checkout of dynamolock: %w", checkout, err)
	}
	found := moduleLine.FindSubmatch(mod)
	if found == nil {
		return "", fmt.Errorf("peers: %s/go.mod has no module line", checkout)
	}
	path, version := string(found[1]), "v0.0.0"
	if major := majorOf.FindStringSubmatch(path); major != nil {
		version = major[1] + ".0.0"
	}
	source, err := dynamolockSource.ReadFile("dynamolock/main.go")
	if err != nil {
		return "", err
	}
	text := strings.Replace(string(source), imported, fmt.Sprintf("dynamolock %q", path), 1)
	text = strings.TrimPrefix(text, "//go:build ignore\n")
	files := map[string][]byte{
		"main.go": []byte(text),
		"go.mod": fmt.Appendf(nil, "module driver\n\ngo 1.25.0\n\nrequire (\n\t%s %s\n\t%s\n)\n\nreplace %s => %s\n",
			path, version, strings.Join(dynamolockSDK, "\n\t"), path, checkout),
	}
	sum, err := sumOf(root.FS(), files)
	if err != nil {
		return "", err
	}
	dir, err := install.Once(ctx, "peers-dynamolock-"+sum, func(ctx context.Context, dir string) error {
		if err := install.Files(dir, files); err != nil {
			return err
		}
		if err := install.Run(ctx, dir, "go", "mod", "tidy"); err != nil {
			return err
		}
		return install.Run(ctx, dir, "go", "build", "-o", "driver", ".")
	})
	return filepath.Join(dir, "driver"), err
}

// sumOf returns a checksum over the driver's files and the Go sources in the checkout.
func sumOf(checkout fs.FS, files map[string][]byte) (string, error) {
	sum := sha256.New()
	for _, name := range []string{"go.mod", "main.go"} {
		sum.Write(files[name])
	}
	err := fs.WalkDir(checkout, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") && !strings.HasSuffix(path, "go.mod") {
			return err
		}
		content, err := fs.ReadFile(checkout, path)
		_, _ = fmt.Fprintf(sum, "%s %d\n", path, len(content))
		sum.Write(content)
		return err
	})
	return hex.EncodeToString(sum.Sum(nil)[:6]), err
}
