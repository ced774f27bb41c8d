// Command probe tries the operations that it reads from standard input.
package main

import (
	"encoding/gob"
	"fmt"
	"os"

	"jail/oracle"
)

func main() {
	var ops []oracle.Op
	if err := gob.NewDecoder(os.Stdin).Decode(&ops); err != nil {
		fmt.Fprintln(os.Stderr, "probe:", err)
		os.Exit(1)
	}
	var results []oracle.Result
	for _, o := range ops {
		results = append(results, o.Try())
	}
	if err := gob.NewEncoder(os.Stdout).Encode(results); err != nil {
		fmt.Fprintln(os.Stderr, "probe:", err)
		os.Exit(1)
	}
}
