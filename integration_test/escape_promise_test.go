package integration_test

import (
	"bufio"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"jail/internal/testenv"
)

// TestPrivateTemp: each jail has a directory for temporary files that is its
// own, for the user alone, and out of another jail's reach.
func TestPrivateTemp(t *testing.T) {
	needLayers(t)
	w := testenv.NewWorld(t)
	const show = `stat -c '%a %U' "$TMPDIR"; id -un; echo "$TMPDIR"; echo secret > "$TMPDIR/file" && cat "$TMPDIR/file"`
	first := strings.Fields(w.Jail(t, "bash", "-c", show).Stdout)
	if len(first) != 5 || first[0] != "700" || first[1] != first[2] || first[3] == w.Temp || !strings.HasPrefix(first[3], w.Temp) || first[4] != "secret" {
		t.Fatalf("mode, owner, user, path, content: %q", first)
	}

	dir := occupiedTemp(t, w)
	file := filepath.Join(dir, "file")
	if r := w.Run(t, "cat", file); r.Stdout != "secret\n" {
		t.Fatalf("control: %q %s", r.Stdout, r.Stderr)
	}
	for _, argv := range [][]string{{"cat", file}, {"ls", dir}, {"ls", w.Temp}, {"touch", filepath.Join(dir, "mark")}} {
		r := w.Jail(t, append([]string{"--"}, argv...)...)
		if r.Status == 0 || !strings.Contains(r.Stderr, "Permission denied") {
			t.Errorf("%q from another jail: status %d\n%s%s", argv, r.Status, r.Stdout, r.Stderr)
		}
	}
}

// occupiedTemp starts a jail that lasts as long as the test, and returns its
// directory for temporary files, with a file in it.
func occupiedTemp(t *testing.T, w *testenv.World) string {
	t.Helper()
	const keep = `echo secret > "$TMPDIR/file"; echo "$TMPDIR"; read -r`
	cmd := exec.Command(testenv.JailBin(t), "--waive", "mounts", "--", "bash", "-c", keep)
	cmd.Dir, cmd.Env = w.Project, w.Env()
	stdin, err := cmd.StdinPipe()
	must(t, err)
	stdout, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	t.Cleanup(func() {
		stdin.Close()
		_ = cmd.Wait()
	})
	line, err := bufio.NewReader(stdout).ReadString('\n')
	must(t, err)
	return strings.TrimSpace(line)
}
