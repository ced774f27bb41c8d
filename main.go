// Command jail runs a command under kernel-enforced rules that all its children
// inherit. See README.md.
package main

import (
	"os"
	"runtime/debug"

	"jail/attack"
	"jail/cli"
	"jail/launch"
)

// version is set by the Makefile.
var version = "unknown"

func main() {
	// A start is over before collecting garbage pays; the limit is for the look
	// through very large trees.
	debug.SetGCPercent(-1)
	debug.SetMemoryLimit(64 << 20)
	switch {
	case os.Args[0] == launch.StageName:
		os.Exit(launch.Stage())
	case os.Args[0] == cli.TrialName:
		os.Exit(cli.Trial(os.Args[1:]))
	case attack.Called(os.Args):
		os.Exit(attack.Main(os.Args[1:]))
	}
	os.Exit(cli.Main(version, os.Args[1:], os.Stdout, os.Stderr))
}
