// Command jail runs a command under kernel-enforced rules that all its children
// inherit. See README.md.
package main

import (
	"os"

	"jail/cli"
)

// version is set by the Makefile.
var version = "unknown"

func main() {
	os.Exit(cli.Main(version, os.Args[1:], os.Stdout, os.Stderr))
}
