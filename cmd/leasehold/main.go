// Command leasehold provides distributed locks on Amazon DynamoDB, for shells and
// operators. See leasehold --help.
package main

import (
	"os"

	"github.com/leasehold-go/leasehold/internal/cli"
)

func main() { os.Exit(cli.Main(cli.FromOS())) }
