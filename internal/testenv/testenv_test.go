package testenv

import "testing"

func TestMust(t *testing.T) {
	for _, tt := range []struct {
		what, musts, mays string
		want              bool
	}{
		{"userns", "", "", false},
		{"userns", "landlock,seccomp", "", false},
		{"userns", "landlock,userns", "", true},
		{"userns", "all", "", true},
		{"userns", "all", "cargo", true},
		{"cargo", "all", "root,cargo", false},
		{"ordinary user", "all", "root,ordinary user", false},
		{"cargo", "all,cargo", "cargo", true}, // named itself
	} {
		if got := must(tt.what, tt.musts, tt.mays); got != tt.want {
			t.Errorf("%q with %q and %q: %v", tt.what, tt.musts, tt.mays, got)
		}
	}
}
