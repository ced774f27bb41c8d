package cli

import (
	"testing"

	"jail/launch"
)

// BenchmarkCompile is the part of a start that reads rules and the file system.
func BenchmarkCompile(b *testing.B) {
	for b.Loop() {
		if _, err := compile(options{}, "true", launch.Probe); err != nil {
			b.Fatal(err)
		}
	}
}
