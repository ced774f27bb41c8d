package plan

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/moby/sys/mountinfo"
)

// FuzzPointer: whatever a .git file says, what is taken from it is an absolute
// path without links back, in a file of bounded size.
func FuzzPointer(f *testing.F) {
	for _, s := range []string{"gitdir: ../x\n", "gitdir: /a/../b", "gitdir:x", "", "gitdir: \n", "gitdir: a\x00b\n", "gitdir: " + strings.Repeat("a/", 3000)} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		dir := t.TempDir()
		path := filepath.Join(dir, ".git")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		got, ok := pointer(path, "gitdir: ", dir)
		if ok && (!filepath.IsAbs(got) || filepath.Clean(got) != got || !strings.HasPrefix(text, "gitdir: ")) {
			t.Errorf("%q: %q", text, got)
		}
	})
}

// FuzzLayers: any path, written as overlayfs and the kernel write it, is read as
// it was; and no text makes layerDirs panic.
func FuzzLayers(f *testing.F) {
	f.Add("/a b", "/c:d", "lowerdir=/a:/b,upperdir=/u")
	f.Add("/a,\\:b", "/\n\t", "lowerdir+=\\04,datadir+=\\777")
	f.Fuzz(func(t *testing.T, a, b, text string) {
		layerDirs(text)
		if a == "" || b == "" || strings.ContainsAny(a+b, "\x00\\") {
			return // no path, or one in which overlayfs's own escapes are ambiguous
		}
		options := "rw,lowerdir=" + octal(strings.ReplaceAll(a, ":", `\:`)) + ":" + octal(strings.ReplaceAll(b, ":", `\:`)) + ",upperdir=" + octal(a)
		if d := cmp.Diff([]string{a, b, a}, layerDirs(options)); d != "" {
			t.Errorf("%q: %s", options, d)
		}
	})
}

// octal writes a path as mountinfo shows it in options.
func octal(s string) string {
	return strings.NewReplacer(" ", `\040`, "\t", `\011`, "\n", `\012`, `\`, `\134`, ",", `\054`).Replace(s)
}

// FuzzCovering: whatever the mount table says, the mount that covers a path is
// above it, and no other that is above it lies deeper.
func FuzzCovering(f *testing.F) {
	f.Add("22 1 0:2 / / rw - ext4 a rw\n23 22 0:3 /x /home rw - tmpfs b rw\n", "/home/x")
	f.Add("22 1 0:2 / /a\\040b rw - overlay o lowerdir=/l:/m,upperdir=/u\n", "/a b")
	f.Fuzz(func(t *testing.T, table, path string) {
		mounts, err := mountinfo.GetMountsFromReader(strings.NewReader(table), nil)
		if err != nil || !filepath.IsAbs(path) || filepath.Clean(path) != path {
			return
		}
		best := covering(mounts, path)
		for _, m := range mounts {
			if above := within(path, m.Mountpoint); above && (best == nil || len(best.Mountpoint) < len(m.Mountpoint)) {
				t.Errorf("%q covers %q, but %+v was taken", m.Mountpoint, path, best)
			}
		}
		if best != nil && !within(path, best.Mountpoint) {
			t.Errorf("%q does not cover %q", best.Mountpoint, path)
		}
	})
}

// FuzzWire: a plan that was read is written as it was read, grants included.
func FuzzWire(f *testing.F) {
	f.Add(`{"Plan":{"Cwd":"/x"},"Grants":[]}`)
	f.Add(`{"Plan":{"Mounts":true,"ABI":7},"Grants":[{"Path":"/a"}]}`)
	f.Add(`{"Grants":null}`)
	f.Fuzz(func(t *testing.T, text string) {
		var p Plan
		if json.Unmarshal([]byte(text), &p) != nil {
			return
		}
		first, err := json.Marshal(p)
		if err != nil {
			t.Fatal(err)
		}
		var again Plan
		if err := json.Unmarshal(first, &again); err != nil {
			t.Fatalf("%s: %v", first, err)
		}
		second, err := json.Marshal(again)
		if err != nil || string(first) != string(second) {
			t.Errorf("%v\n%s\n%s", err, first, second)
		}
		if len(p.grants) != len(again.grants) {
			t.Errorf("%d grants became %d", len(p.grants), len(again.grants))
		}
	})
}
