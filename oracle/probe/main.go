// Command probe tries the operations that it reads from standard input.
package main

import (
	"encoding/gob"
	"fmt"
	"os"

	"jail/oracle"
)

func main() {
	var orders oracle.Orders
	err := gob.NewDecoder(os.Stdin).Decode(&orders)
	if err == nil {
		err = orders.Enter()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "probe:", err)
		os.Exit(1)
	}
	var results []oracle.Result
	for _, o := range orders.Ops {
		results = append(results, o.Try())
	}
	if err := gob.NewEncoder(os.Stdout).Encode(results); err != nil {
		fmt.Fprintln(os.Stderr, "probe:", err)
		os.Exit(1)
	}
}
