// Command jail runs a command under kernel-enforced rules that all its children
// inherit. See README.md.
package main

import (
	"os"

	"jail/cli"
	"jail/launch"
)

// version is set by the Makefile.
var version = "unknown"

func main() {
	switch os.Args[0] {
	case launch.StageName:
		os.Exit(launch.Stage())
	case launch.ConfineName:
		os.Exit(launch.Confine())
	}
	os.Exit(cli.Main(version, os.Args[1:], os.Stdout, os.Stderr))
}
