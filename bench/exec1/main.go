// Command exec1 starts the command it is given, and nothing else: the least that any sandbox written
// in Go costs.
package main

import (
	"fmt"
	"os"
	"syscall"
)

func main() {
	err := syscall.Exec(os.Args[1], os.Args[1:], os.Environ())
	fmt.Fprintln(os.Stderr, "exec1: error:", err)
	os.Exit(127)
}
