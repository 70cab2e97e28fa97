//go:build linux

package install

import "context"

const copyDependencies = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies"

// Jars downloads the dependencies in the pom.xml of dir, and copies them to the folder lib
// in dir.
func Jars(ctx context.Context, dir string) error {
	if err := Require("mvn", "install Maven (Debian: apt-get install maven)"); err != nil {
		return err
	}
	return Run(ctx, dir, "mvn", "--quiet", "--batch-mode", copyDependencies, "-DoutputDirectory=lib")
}
