//go:build linux

package engines

import (
	"context"
	_ "embed"
	"net"
	"os"
	"path/filepath"
)

// DynamoDBLocal is AWS's own server for tests, from Maven. Its licence lets
// nobody pass it on: it is installed where it is used and never shipped.
var DynamoDBLocal = Engine{Name: "DynamoDB Local", Version: "2.6.1", install: installDynamoDBLocal, start: startDynamoDBLocal}

//go:embed pom.xml
var dynamoDBLocalPOM []byte

const copyDependencies = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies"

func installDynamoDBLocal(ctx context.Context, dir string) error {
	if err := require("java", "install Java 17 or newer (Debian: apt-get install openjdk-17-jre-headless)"); err != nil {
		return err
	}
	if err := require("mvn", "install Maven (Debian: apt-get install maven)"); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, "pom.xml"), dynamoDBLocalPOM, 0o600); err != nil {
		return err
	}
	return run(ctx, dir, "mvn", "--quiet", "--batch-mode", copyDependencies, "-DoutputDirectory=lib")
}

// startDynamoDBLocal starts the server inside a network namespace, since it
// listens on every address there is.
func startDynamoDBLocal(_ context.Context, dir string) (*Server, error) {
	if err := require("java", "install Java 17 or newer (Debian: apt-get install openjdk-17-jre-headless)"); err != nil {
		return nil, err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	defer listener.Close() // the namespace has its own copy
	door, err := listener.(*net.TCPListener).File()
	if err != nil {
		return nil, err
	}
	defer door.Close()

	lib := filepath.Join(dir, "lib")
	s, err := launch(command{
		path: "/proc/self/exe",
		name: namespaceName,
		args: []string{
			"java", "-Xmx384m", "-XX:TieredStopAtLevel=1",
			"-Djava.library.path=" + lib, "-cp", filepath.Join(lib, "*"),
			"com.amazonaws.services.dynamodbv2.local.main.ServerRunner",
			"-inMemory", "-sharedDb", "-disableTelemetry", "-port", namespacePort,
		},
		namespace: true,
		files:     []*os.File{door},
	})
	if err != nil {
		return nil, err
	}
	s.Endpoint = "http://" + listener.Addr().String()
	return s, nil
}
