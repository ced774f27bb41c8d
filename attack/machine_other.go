//go:build !amd64

package attack

// machineAttacks are those of one architecture; there are none for this one.
func machineAttacks() []Attack { return nil }

func tinyPrograms() map[string][]byte { return nil }
