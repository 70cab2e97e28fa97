//go:build linux

package peers

import (
	"context"
	"embed"
	"os/exec"
	"path/filepath"

	"github.com/leasehold-go/leasehold/proof/interop/install"
)

// Two peers that run the awslabs lock client for Java, with different settings of the JVM.
var (
	// AWSLabs is for tests: its JVM has settings for a fast start.
	AWSLabs = awsLabs("-Xmx128m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
	// AWSLabsServer is for benchmarks: its JVM has default settings, as in a service.
	AWSLabsServer = awsLabs()
)

func awsLabs(flags ...string) Peer {
	return Peer{
		Name: "awslabs", Version: "1.4.0", Layout: "awslabs",
		Heartbeats: true, ManualHeartbeat: true,
		command: func(ctx context.Context) (*exec.Cmd, error) { return javaCommand(ctx, flags) },
	}
}

//go:embed java
var javaSources embed.FS

func javaCommand(ctx context.Context, flags []string) (*exec.Cmd, error) {
	dir, err := driver(ctx, "peers-java", javaSources, func(ctx context.Context, dir string) error {
		if err := install.Require("javac", "install a JDK of Java 17 or newer (Debian: apt-get install openjdk-17-jdk-headless)"); err != nil {
			return err
		}
		if err := install.Jars(ctx, dir); err != nil {
			return err
		}
		sources, err := filepath.Glob(filepath.Join(dir, "*.java"))
		if err != nil {
			return err
		}
		return install.Run(ctx, dir, "javac", append([]string{"--release", "17", "-cp", filepath.Join("lib", "*"), "-d", "classes"}, sources...)...)
	})
	if err != nil {
		return nil, err
	}
	return exec.Command("java", append(flags,
		"-cp", filepath.Join(dir, "classes")+":"+filepath.Join(dir, "lib", "*"), "Driver")...), nil
}
