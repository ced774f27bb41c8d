package integration_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"jail/internal/testenv"
)

// rpWorld has carve-outs with something reopened in them.
func rpWorld(t *testing.T) (w *testenv.World, rules string) {
	t.Helper()
	w = testenv.NewWorld(t)
	for _, f := range []string{"hid/secret", "hid/pub/file", "hid/deep/er/rw/file", "hid/one", "pro/file", "pro/cache/file", "pro/cache/kept"} {
		w.WriteFile(t, filepath.Join(w.Project, f), w.SecretText+"\n")
	}
	w.WriteFile(t, filepath.Join(w.Project, "pro/bin/tool"), "#!/bin/sh\necho tool\n")
	must(t, os.Chmod(filepath.Join(w.Project, "pro/bin/tool"), 0o755))
	rules = filepath.Join(w.Home, "rules.toml")
	w.WriteFile(t, rules, `profiles = ["default"]
[files]
hide    = ["hid"]
read    = ["hid/pub", "hid/one"]
write   = [".", "hid/deep/er/rw", "pro/cache"]
protect = ["pro", "pro/cache/kept"]
exec    = ["pro/bin"]
[artifact]
run     = "deny"
`)
	return w, rules
}

// What a longer grant of the same file gives back, and no more than that. Each
// line is tried bare first.
func TestMountsReopen(t *testing.T) {
	mtNeed(t)
	const ro, denied = "Read-only file system", "Permission denied"
	for _, tt := range []struct{ name, line, refused string }{
		{"read", `cat hid/pub/file hid/one`, ""},
		{"list", `ls hid/pub`, ""},
		{"write", `echo x > hid/deep/er/rw/new; mv hid/deep/er/rw/new hid/deep/er/rw/newer; rm hid/deep/er/rw/newer`, ""},
		{"write in a protected one", `echo x > pro/cache/new; rm pro/cache/new`, ""},
		{"execute in a protected one", `pro/bin/tool`, ""},
		{"read beside", `cat hid/secret`, "No such file or directory"},
		{"list above", `ls hid`, denied},
		{"list on the way", `ls hid/deep`, denied},
		{"make beside", `touch hid/new`, ro},
		{"make on the way", `touch hid/deep/er/new`, ro},
		{"change the way", `chmod 755 hid hid/deep`, ro},
		{"write what is only read", `echo x >> hid/pub/file`, ro},
		{"write a file that is only read", `echo x >> hid/one`, ro},
		{"write in the protected one", `echo x >> pro/file`, ro},
		{"write in a carve-out within", `echo x >> pro/cache/kept`, ro},
		{"write in exec", `echo x >> pro/bin/tool`, ro},
		{"execute what is written", `cp pro/bin/tool pro/cache/t; pro/cache/t`, "is not run: [artifact] run"},
		{"move the way", `mv hid hid2`, "busy"},
		{"move what is reopened", `mv pro/cache pro/cache2`, ro},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w, rules := rpWorld(t)
			r := mtRun(t, w, []string{"--rules", rules}, tt.line+"; echo end")
			switch {
			case tt.refused == "" && (r.Stdout == "end\n" && strings.Contains(tt.line, "cat") || r.Stderr != ""), !strings.HasSuffix(r.Stdout, "end\n"):
				t.Errorf("%+v", r)
			case tt.refused != "" && (!strings.Contains(r.Stderr, tt.refused) || strings.Contains(r.Stdout, w.SecretText)):
				t.Errorf("not refused: %+v", r)
			}
			if r := evRun(t, w, "", nil, "bash", "-c", tt.line); r.Status != 0 {
				t.Errorf("control: %+v", r)
			}
		})
	}
}

// Another file's grant opens nothing; a flag does.
func TestMountsReopenByWhom(t *testing.T) {
	mtNeed(t)
	w, _ := rpWorld(t)
	w.WriteFile(t, filepath.Join(w.Home, ".config/jail/jail.toml"), "[files]\nhide = ['"+w.Project+"/hid']\n")
	other := filepath.Join(w.Home, "other.toml")
	w.WriteFile(t, other, "profiles = ['default']\nfiles.read = ['hid/pub']\n")
	if r := mtRun(t, w, []string{"--rules", other}, "cat hid/pub/file; echo end"); r.Stdout != "end\n" || !strings.Contains(r.Stderr, "Permission denied") {
		t.Errorf("another file: %+v", r)
	}
	if r := mtRun(t, w, []string{"--read", "hid/pub"}, "cat hid/pub/file; ls hid; echo end"); r.Stdout != w.SecretText+"\nend\n" {
		t.Errorf("a flag: %+v", r)
	}
	r := evRun(t, w, "", nil, testenv.JailBin(t), "check", "--read", "hid/pub")
	if !strings.Contains(r.Stdout, "reopened") || !strings.Contains(r.Stdout, "(read, in ") {
		t.Errorf("check does not show it: %s", r.Stdout)
	}
}

// When the host replaces the directory around, it is covered again and stays
// closed: what the host put there is not what was reopened.
func TestMountsReopenHostReplaces(t *testing.T) {
	mtNeed(t)
	w, rules := rpWorld(t)
	w.WriteFile(t, filepath.Join(w.Project, "next/pub/file"), w.SecretText+"\n")
	cmd := mtCommand(t, w, []string{"--rules", rules}, "bash", "-c", `cat hid/pub/file >/dev/null && echo ready; while ! test -e stop; do sleep 0.01; done; while cat hid/pub/file; do sleep 0.05; done >/dev/null 2>&1; cat hid/pub/file hid/one; ls hid; echo end`)
	p := mtStart(t, cmd)
	p.wait(t, "ready")
	must(t, os.Rename(filepath.Join(w.Project, "hid"), filepath.Join(w.Outside, "old")))
	must(t, os.Rename(filepath.Join(w.Project, "next"), filepath.Join(w.Project, "hid")))
	w.WriteFile(t, filepath.Join(w.Project, "stop"), "")
	r := p.end(t)
	if strings.Contains(r.Stdout, w.SecretText) || !strings.HasSuffix(r.Stdout, "end\n") || !strings.Contains(r.Stderr, "hidden again") {
		t.Errorf("%+v", r)
	}
}
