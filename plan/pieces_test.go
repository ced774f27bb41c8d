package plan

import "testing"

// One tree inside another is no alias where it lies in the same place in the file
// system; where a mount shows it elsewhere it is, inside or not.
func TestOverlapByMounts(t *testing.T) {
	at := func(path, seen string) []piece { return []piece{{major: 8, path: path, name: seen, seen: seen}} }
	for _, tt := range []struct {
		name string
		w, x []piece
		want bool
	}{
		{"apart", at("/w", "/w"), at("/x", "/x"), false},
		{"inside", at("/w", "/w"), at("/w/x", "/w/x"), false},
		{"around", at("/x/w", "/x/w"), at("/x", "/x"), false},
		{"of another mount", at("/home/w", "/mnt/w"), at("/home/w/x", "/mnt/w/x"), false},
		{"shown elsewhere", at("/w", "/w"), at("/w/a", "/x"), true},
		{"shown elsewhere, inside", at("/w", "/w"), at("/w/a", "/w/x"), true},
		{"shown elsewhere, around", at("/x/a/b", "/x/w"), at("/x", "/x"), true},
		{"another file system", at("/w", "/w"), []piece{{major: 9, path: "/w/a", seen: "/w/x"}}, false},
	} {
		if _, _, got := overlap(tt.w, tt.x); got != tt.want {
			t.Errorf("%s: %t", tt.name, got)
		}
	}
}
