package integration_test

import (
	"os"
	"testing"

	"jail/attack"
)

// TestMain runs the tests, or plays a part in one of them: the test binary is
// its own attacker and its own victim (see attack_test.go).
func TestMain(m *testing.M) {
	// An attacker may have been renamed: see TestEscapesOfChildren.
	if attack.Called(os.Args) || len(os.Args) == 4 && os.Args[1] == "attack" {
		os.Exit(attack.Main(os.Args[1:]))
	}
	if len(os.Args) > 1 {
		switch os.Args[1] {
		case hostWord:
			playHost(os.Args[2:])
			return
		case fullWord:
			playSmallDisk(os.Args[2:])
			return
		case orphanWord:
			playOrphan(os.Args[2:])
			return
		}
	}
	m.Run()
}
