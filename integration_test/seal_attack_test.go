package integration_test

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"jail/internal/testenv"
)

// attackSeal builds and runs things in a jail with a rule file and compares what
// is printed.
func attackSeal(t *testing.T, w *testenv.World, rules, line, want string) {
	t.Helper()
	w.WriteFile(t, filepath.Join(w.Home, "rules.toml"), rules)
	r := mtRun(t, w, []string{"--rules", filepath.Join(w.Home, "rules.toml")}, line)
	if r.Stdout != want {
		t.Errorf("%s\nprinted %q\nwanted  %q\n%s", line, r.Stdout, want, r.Stderr)
	}
}

// unsealed are the flags of a jail in which nothing written runs, by kernel rule.
func unsealed(t *testing.T) []string {
	t.Helper()
	rules := filepath.Join(t.TempDir(), "unsealed.toml")
	must(t, os.WriteFile(rules, []byte("[artifact]\nrun = \"deny\"\nlibraries = \"deny\"\n"), 0o644))
	return []string{"--rules", rules}
}

// whoami is a program that prints where it was executed from.
const whoami = `cat > w.c <<'E'
#include <stdio.h>
#include <unistd.h>
int main() { char exe[4096] = ""; readlink("/proc/self/exe", exe, 4095); puts(exe); return 0; }
E
gcc -o w w.c
`

// Whatever is done to names and contents while programs are executed, what runs
// is a seal.
func TestSealAttacks(t *testing.T) {
	mtNeed(t)
	evNeedProgram(t, "gcc")
	w := testenv.NewWorld(t)
	t.Run("bare", func(t *testing.T) { // the control
		if r := w.Run(t, "bash", "-c", whoami+"./w"); r.Stdout != w.Project+"/w\n" {
			t.Errorf("%+v", r)
		}
	})
	t.Run("swapped names", func(t *testing.T) {
		attackSeal(t, w, "", whoami+`
cp w a; cp w b; cp /bin/echo c
(while :; do mv a d; mv b a; mv c b; mv d c; ln -sf a l; ln -sf b l; done) 2>/dev/null & swapper=$!
for i in $(seq 150); do ./a x; ./b x; ./l x; done 2>/dev/null > out; kill $swapper; wait
grep -c ^/run/jail/ out | grep -cv '^0$'; grep -v ^/run/jail/ out | grep -vc '^x$'`, "1\n0\n")
	})
	t.Run("changed contents", func(t *testing.T) {
		attackSeal(t, w, "", whoami+`
cp w a; (while :; do cat w > a; cp /bin/echo n; mv n a; cp w n; mv n a; done) 2>/dev/null & writer=$!
for i in $(seq 150); do ./a x; done 2>/dev/null > out; kill $writer; wait
grep -c ^/run/jail/ out | grep -cv '^0$'; grep -v ^/run/jail/ out | grep -vc '^x$'`, "1\n0\n")
	})
	t.Run("the seals can't be changed", func(t *testing.T) {
		attackSeal(t, w, "", whoami+`
seal=$(./w); for try in "touch $seal" "rm -f $seal" "mv $seal $seal.x" "ln $seal mine" "chmod u+w $seal" "truncate -s 0 $seal" "cp w $(dirname $seal)/y" "touch /run/jail/x"; do
	$try 2>/dev/null && echo "$try"; done; $seal | cut -d/ -f-3`, "/run/jail\n")
	})
	t.Run("nothing is executed when it is denied", func(t *testing.T) {
		attackSeal(t, w, "[artifact]\nrun = \"deny\"\nlibraries = \"deny\"\n", whoami+`
./w 2>/dev/null; echo $?; test -x w; echo $?; echo '#!/bin/sh' > s; chmod 755 s; ./s 2>/dev/null; echo $?
$(readelf -l w | grep -o '/lib[^]]*ld-linux[^]]*') ./w 2>/dev/null; echo $?`, "126\n1\n126\n127\n")
	})
}

// What a rule keeps from being sealed is refused in words, and recorded. Where
// libraries are not sealed either, the jail has nothing of the store, not even a place.
func TestSealUnsealed(t *testing.T) {
	mtNeed(t)
	evNeedProgram(t, "gcc")
	const run = "[artifact]\nrun = \"deny\"\n"
	line := whoami + `exec 2>&1; export LC_ALL=C; ./w; echo $?; python3 -c 'import os
try: os.execv("./w", ["w"])
except OSError as e: print(e.errno)'; echo $?; ls /run/jail`
	for name, tt := range map[string]struct{ rules, again string }{
		"said": {run, "126\njail: \"W\" is not run (R:2)\n126\nx\n"},
		"told": {run + "libraries = \"deny\"\n", "bash: line 7: ./w: Permission denied\n126\n13\n0\nls: cannot access '/run/jail': No such file or directory\n"},
	} {
		t.Run(name, func(t *testing.T) {
			evNeedProgram(t, "python3")
			w := testenv.NewWorld(t)
			rules, program := filepath.Join(w.Home, "rules.toml"), filepath.Join(w.Project, "w")
			if r := w.Run(t, "bash", "-c", line); !strings.HasPrefix(r.Stdout, program+"\n0\n"+program+"\n0\n") { // the control
				t.Fatalf("%+v", r)
			}
			w.WriteFile(t, rules, tt.rules)
			r := mtRun(t, w, []string{"--rules", rules}, line)
			first := fmt.Sprintf("jail: %q is not run: [artifact] run = \"deny\" (%s:2)\n", program, rules)
			again := strings.NewReplacer(`"W"`, strconv.Quote(program), "R:2", rules+":2").Replace(tt.again)
			if name == "told" {
				if want := first + fmt.Sprintf("jail: %q is not run (%s:2)\n", program, rules); r.Stderr != want {
					t.Errorf("told %q, wanted %q", r.Stderr, want)
				}
				first = ""
			}
			if r.Stdout != first+again {
				t.Errorf("%q\nwanted %q\n%s", r.Stdout, first+again, r.Stderr)
			}
			l := w.Run(t, testenv.JailBin(t), "log")
			if strings.Count(l.Stdout, "\n") != 3 || !strings.Contains(l.Stdout, ": bash in ") || strings.Count(l.Stdout, "  refused         -  ~/project/w  by ") != 2 || !strings.HasSuffix(l.Stdout, fmt.Sprintf(": [artifact] run = \"deny\" (%s:2)\n", rules)) {
				t.Errorf("%+v", l)
			}
		})
	}
}

// What an artifact may not, it may not through the supervisor either.
func TestSealDomain(t *testing.T) {
	mtNeed(t)
	mtElsewhere(t) // below a private /tmp all may be written
	evNeedProgram(t, "gcc")
	w := testenv.NewWorld(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer l.Close()
	look := fmt.Sprintf(`cat > d.c <<'E'
#include <stdlib.h>
int main(int c, char **v) { return system(v[1]); }
E
gcc -o d d.c
see='exec 2>&1; echo ${MY_TOKEN-none} ${CI-none}; (exec 3<>/dev/tcp/127.0.0.1/%d) 2>/dev/null && echo connected; echo > tree && echo tree; echo > "$TMPDIR/x" && echo temp; (echo > other/x) 2>/dev/null && echo other'
export MY_TOKEN=t CI=1 see
bash -c "$see"; ./d 'bash -c "$see"'; ./d './d "bash -c \"\$see\""'`, l.Addr().(*net.TCPAddr).Port)
	all, less := "t 1\nconnected\ntree\ntemp\nother\n", "none 1\ntree\ntemp\n"
	evShell("mkdir ~/project/other; touch ~/project/tree")(t, w)
	attackSeal(t, w, "[artifact]\nnetwork = false\nwrite = [\"tree\"]\nenv = { drop = [\"*_TOKEN\"] }\n", look, all+less+less)
	attackSeal(t, w, "", look, all+strings.Repeat("none 1\nconnected\ntree\ntemp\nother\n", 2))
}

// A daemon of the host is not reached, wherever its socket lies.
func TestSealSockets(t *testing.T) {
	mtNeed(t)
	evNeedProgram(t, "python3")
	w := testenv.NewWorld(t)
	daemon := filepath.Join(w.Project, "daemon")
	l, err := net.Listen("unix", daemon)
	must(t, err)
	defer l.Close()
	dial := `python3 -c '
import socket
try: socket.socket(socket.AF_UNIX).connect("daemon"); print("connected")
except OSError as e: print(e.strerror)
l = socket.socket(socket.AF_UNIX); l.bind("own"); l.listen()
socket.socket(socket.AF_UNIX).connect("own"); print("inside")'; rm -f own`
	if r := w.Run(t, "bash", "-c", dial); r.Stdout != "connected\ninside\n" {
		t.Fatalf("control: %+v", r)
	}
	attackSeal(t, w, "", dial, "Permission denied\ninside\n")
	attackSeal(t, w, fmt.Sprintf("[network]\nunix = [%q]\n", daemon), dial, "connected\ninside\n")
}
