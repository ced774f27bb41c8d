//go:build !amd64

package integration_test

// machineAttacks are those of one architecture; there are none for this one.
func machineAttacks() []attack { return nil }

func tinyPrograms() map[string][]byte { return nil }
