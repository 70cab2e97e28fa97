// Command leasehold provides distributed locks on Amazon DynamoDB, for shells and
// operators. Run "leasehold --help" for its commands.
package main

import (
	"os"

	"github.com/leasehold-go/leasehold/internal/cli"
	"github.com/leasehold-go/leasehold/internal/cli/invocation"
)

func main() { os.Exit(cli.Main(invocation.FromOS())) }
