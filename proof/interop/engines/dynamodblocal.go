//go:build linux

package engines

import (
	"context"
	_ "embed"
	"net"
	"os"
	"path/filepath"

	"github.com/leasehold-go/leasehold/proof/interop/install"
)

// DynamoDBLocal is the DynamoDB server that AWS provides for tests. The licence of this server
// forbids redistribution, so every machine downloads its own copy, from Maven.
var DynamoDBLocal = Engine{Name: "DynamoDB Local", Version: "2.6.1", install: installDynamoDBLocal, start: startDynamoDBLocal}

//go:embed pom.xml
var dynamoDBLocalPOM []byte

func installDynamoDBLocal(ctx context.Context, dir string) error {
	if err := install.Require("java", "install Java 17 or newer (Debian: apt-get install openjdk-17-jre-headless)"); err != nil {
		return err
	}
	if err := install.Files(dir, map[string][]byte{"pom.xml": dynamoDBLocalPOM}); err != nil {
		return err
	}
	return install.Jars(ctx, dir)
}

// startDynamoDBLocal starts the server inside a network namespace, because the server
// listens on all addresses.
func startDynamoDBLocal(dir, tables string) (*Server, error) {
	if err := install.Require("java", "install Java 17 or newer (Debian: apt-get install openjdk-17-jre-headless)"); err != nil {
		return nil, err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	defer listener.Close() // the process in the namespace inherits a copy, which stays open
	door, err := listener.(*net.TCPListener).File()
	if err != nil {
		return nil, err
	}
	defer door.Close()

	where := []string{"-inMemory"}
	if tables != "" {
		where = []string{"-dbPath", tables}
	}
	lib := filepath.Join(dir, "lib")
	s, err := launch(command{
		path: "/proc/self/exe",
		name: namespaceName,
		args: append([]string{
			"java", "-Xmx384m", "-XX:TieredStopAtLevel=1",
			"-Djava.library.path=" + lib, "-cp", filepath.Join(lib, "*"),
			"com.amazonaws.services.dynamodbv2.local.main.ServerRunner",
			"-sharedDb", "-disableTelemetry", "-port", namespacePort,
		}, where...),
		namespace: true,
		files:     []*os.File{door},
	})
	if err != nil {
		return nil, err
	}
	s.Endpoint = "http://" + listener.Addr().String()
	return s, nil
}
