package integration_test

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"jail/internal/testenv"
)

func TestEverydayTemp(t *testing.T) {
	w := testenv.NewWorld(t)
	script := `stat -c '%a %u' "$TMPDIR"; cd "$TMPDIR"; pwd; f=$(mktemp); echo x > "$f"; cat "$f"; mkdir d; mv "$f" d/f; ls d
		python3 -c 'import tempfile, os; print(os.path.dirname(tempfile.mkdtemp()) == os.environ["TMPDIR"])' 2>/dev/null || echo True
		touch "$1/x" /tmp/x-$$ /var/tmp/x-$$ 2>&1 | grep -c 'Permission denied'`
	r := evRun(t, w, "", nil, append(evJailed(t), "bash", "-c", script, "bash", w.Temp)...)
	lines := strings.Split(r.Stdout, "\n")
	if len(lines) < 6 || lines[0] != "700 "+evUID() || filepath.Dir(lines[1]) != w.Temp || lines[2] != "x" || lines[3] != "f" || lines[4] != "True" || lines[5] != "3" {
		t.Errorf("stdout %q, stderr %q", r.Stdout, r.Stderr)
	}
}

func evUID() string { return strconv.Itoa(os.Getuid()) }

// A later start removes what dead runs left, and nothing else.
func TestEverydayTempSweep(t *testing.T) {
	w := testenv.NewWorld(t)
	evMkdir(t, filepath.Join(w.Temp, "other"))
	dead := evTempOf(t, w, `mkdir -p "$TMPDIR/a/b"; touch "$TMPDIR/a/b/c"; chmod 500 "$TMPDIR/a/b" "$TMPDIR/a"; ln -s "$OLDPWD" "$TMPDIR/link"; echo "$TMPDIR"`)
	words := strings.Split(filepath.Base(dead), "-") // jail-tmp-UID-NAMESPACE-PID-START-...
	bait := filepath.Join(w.Temp, strings.Join(append(words[:4], "999999999-1-x"), "-"))
	evLink(t, w.Outside, bait)

	live := evCmd(t, w, "sh", "-c", `echo x > "$TMPDIR/file"; echo "$TMPDIR"; exec sleep 60`)
	out, err := live.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := live.Start(); err != nil {
		t.Fatal(err)
	}
	defer live.Process.Kill()
	buf := make([]byte, 4096)
	n, _ := out.Read(buf)
	liveDir := strings.TrimSpace(string(buf[:n]))

	last := evTempOf(t, w, `echo "$TMPDIR"`)
	for path, want := range map[string]bool{
		dead: false, filepath.Join(liveDir, "file"): true, last: true,
		filepath.Join(w.Temp, "other"): true, filepath.Join(w.Outside, "keep"): true, w.Project: true,
	} {
		if _, err := os.Stat(path); (err == nil) != want {
			t.Errorf("%s: %v, want it there: %v", path, err, want)
		}
	}
	live.Process.Kill()
	live.Wait()
	evTempOf(t, w, `echo "$TMPDIR"`)
	if _, err := os.Stat(liveDir); err == nil {
		t.Errorf("%s is left after its command was killed", liveDir)
	}
}

// evTempOf runs a line in the jail that prints its TMPDIR.
func evTempOf(t *testing.T, w *testenv.World, line string) string {
	t.Helper()
	return strings.TrimSpace(evMust(t, w, "", append(evJailed(t), "sh", "-c", line)...))
}
