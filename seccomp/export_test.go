package seccomp

// PrebuiltName is for the tests.
func PrebuiltName(rules []Rule) string { return prebuiltName(rules) }
