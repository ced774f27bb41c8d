package integration_test

import (
	"strings"
	"testing"

	"jail/internal/testenv"
)

// mtShell starts an interactive bash, bare; lines typed to it find a jail with
// the mounts layer in $J.
func mtShell(t *testing.T) *ptyRun {
	t.Helper()
	mtNeed(t)
	w := testenv.NewWorld(t)
	p := ptyStart(t, w, "bash", "--norc", "--noprofile", "--noediting", "-i")
	p.expect(`prompt> `)
	p.line("J='" + testenv.JailBin(t) + " --'")
	p.expect(`prompt> `)
	return p
}

func TestMountsPtyInterrupt(t *testing.T) {
	p := mtShell(t)
	for key, status := range map[string]string{"\x03": "130", "\x1c": "131"} {
		p.line("$J sh -c 'echo sta''rted; exec sleep 100'")
		p.expect(`started`)
		p.keys(key)
		p.expect(`prompt> `)
		p.line("echo status=$?; jobs; echo en''d")
		if got := p.expect(`status=(\d+)\r\n([^$]*)end`); got[1] != status || got[2] != "" {
			t.Errorf("status %s, jobs %q", got[1], got[2])
		}
		p.expect(`prompt> `)
	}
}

// One key is one signal.
func TestMountsPtyInterruptOnce(t *testing.T) {
	p := mtShell(t)
	p.line(`$J bash -c 'trap "echo interru""pted" INT; echo sta''rted; for i in 1 2; do read -r x; echo li""ne $x; done; sleep 0.3; echo fini''shed'`)
	p.expect(`started`)
	p.keys("\x03")
	p.expect(`interrupted`)
	p.line("a")
	p.expect(`line a`)
	p.keys("\x03")
	p.expect(`interrupted`)
	p.line("b")
	if got := p.expect(`(?s)(.*)finished`); strings.Contains(got[1], "interrupted") {
		t.Errorf("a third signal came: %q", got[1])
	}
}

func TestMountsPtyStop(t *testing.T) {
	p := mtShell(t)
	p.line("$J sh -c 'echo sta''rted; read x; echo go''t $x; exit 9'")
	p.expect(`started`)
	for range 2 {
		p.keys("\x1a")
		p.expect(`Stopped`)
		p.expect(`prompt> `)
		p.line("jobs -s | wc -l")
		p.expect(`\n1\r\n`)
		p.expect(`prompt> `)
		p.line("fg")
		p.expect(`fg\r\n.*read x.*\r\n`)
	}
	p.line("input")
	p.expect(`got input`)
	p.expect(`prompt> `)
	p.line("echo status=$?")
	p.expect(`status=9\r\n`)
}

// A command that stops itself stops its jail, or the shell outside would wait
// for ever.
func TestMountsPtyStopsItself(t *testing.T) {
	p := mtShell(t)
	p.line("$J sh -c 'echo sta''rted; kill -STOP $$; echo go''es on; exit 9'")
	p.expect(`started`)
	p.expect(`Stopped`)
	p.expect(`prompt> `)
	p.line("fg")
	p.expect(`goes on`)
	p.expect(`prompt> `)
	p.line("echo status=$?")
	p.expect(`status=9\r\n`)
}

// In the background, reading from the terminal stops the command.
func TestMountsPtyBackground(t *testing.T) {
	p := mtShell(t)
	p.line("$J sh -c 'read x; echo go''t $x' &")
	p.expect(`prompt> `)
	p.line("sleep 0.5; jobs")
	p.expect(`Stopped`)
	p.line("fg")
	p.expect(`fg\r\n.*read x.*\r\n`)
	p.line("input")
	p.expect(`got input`)
}

func TestMountsPtyHangup(t *testing.T) {
	mtNeed(t)
	w := testenv.NewWorld(t)
	p := ptyStart(t, w, append(mtJailed(t), "sh", "-c", "trap 'echo hup > hup; exit 3' HUP; echo started; while :; do sleep 0.02; done")...)
	p.expect(`started`)
	if err := p.master.Close(); err != nil {
		t.Fatal(err)
	}
	p.end(3)
}

func TestMountsPtyWindowSize(t *testing.T) {
	mtNeed(t)
	w := testenv.NewWorld(t)
	script := `stty size; trap 'echo changed; stty size; n=1' WINCH; echo started; for i in $(seq 400); do sleep 0.05; test $n && echo idle; n=; done`
	p := ptyStart(t, w, append(mtJailed(t), "bash", "-c", script)...)
	p.expect(`24 80\r\n`)
	p.expect(`started`)
	ptySize(t, p.master, 50, 132)
	p.expect(`changed\r\n50 132\r\nidle`)
	ptySize(t, p.master, 10, 20)
	p.expect(`changed\r\n10 20\r\n`)
}

// An interactive shell in the jail has its jobs, its terminal and its keys.
func TestMountsPtyJobControlInside(t *testing.T) {
	mtNeed(t)
	w := testenv.NewWorld(t)
	p := ptyStart(t, w, append(mtJailed(t), "bash", "--norc", "--noprofile", "--noediting", "-i")...)
	if got := p.expect(`(?s)^(.*)[$#] `); len(got[1]) > len("bash-5.2") {
		t.Errorf("the shell complains: %q", got[1])
	}
	p.line("PS1='prom''pt> '")
	p.expect(`prompt> `)
	p.line("sh -c 'echo sta''rted; exec sleep 100'")
	p.expect(`started`)
	p.keys("\x1a")
	p.expect(`Stopped`)
	p.expect(`prompt> `)
	p.line("bg; jobs")
	p.expect(`Running`)
	p.expect(`prompt> `)
	p.line("fg")
	p.expect(`fg\r\n.*sleep 100'\r\n`)
	p.keys("\x03")
	p.expect(`prompt> `)
	p.line("echo status=$?")
	p.expect(`status=130`)
	p.line("sleep 100 & kill %1; wait %1; echo status=$?")
	p.expect(`status=143`)
	p.line("set -o | grep monitor; exit 4")
	p.expect(`monitor\s+on`)
	p.end(4)
}

// Jail in the middle of two shells: keys go where they belong.
func TestMountsPtyShellInShell(t *testing.T) {
	p := mtShell(t)
	p.line("$J bash --norc --noprofile --noediting -i")
	p.expect(`bash-[^ ]*[$#] `)
	p.line("PS1='inn''er> '")
	p.expect(`inner> `)
	p.line("sh -c 'echo sta''rted; exec sleep 100'")
	p.expect(`started`)
	p.keys("\x03")
	p.expect(`inner> `)
	p.line("(exit 6)")
	p.expect(`inner> `)
	p.keys("\x04")
	p.expect(`prompt> `)
	p.line("echo status=$?")
	p.expect(`status=6\r\n`)
}

// suspend, in the inner shell, gives the terminal back to the outer one.
func TestMountsPtySuspend(t *testing.T) {
	p := mtShell(t)
	p.line("$J bash --norc --noprofile --noediting -i")
	p.expect(`bash-[^ ]*[$#] `)
	p.line("PS1='inn''er> '")
	p.expect(`inner> `)
	p.line("suspend")
	p.expect(`Stopped`)
	p.expect(`prompt> `)
	p.line("fg")
	p.expect(`fg\r\n.*bash.*\r\n`)
	p.line("exit 6")
	p.expect(`prompt> `)
}

// After an interactive shell in a jail the script that started it has its
// terminal back.
func TestMountsPtyTerminalComesBack(t *testing.T) {
	mtNeed(t)
	w := testenv.NewWorld(t)
	for _, prefix := range [][]string{nil, mtJailed(t)} {
		p := ptyStart(t, w, append([]string{"sh", "-c", `"$@"; read x; echo go''t $x; exit 5`, "sh"}, append(prefix, "bash", "--norc", "--noprofile", "--noediting", "-i")...)...)
		p.expect(`[$#>] `)
		p.line("exit 3")
		p.expect(`exit`)
		p.line("input")
		p.expect(`got input`)
		p.end(5)
	}
}

func TestMountsPtyTerminal(t *testing.T) {
	mtNeed(t)
	for _, tt := range []struct {
		name, program string
		command, want string
	}{
		{"tty", "tty", `tty`, `^/dev/pts/\d+\r\n$`},
		{"stty", "stty", `stty -echo; stty -a | grep -o -- -echo; stty echo; stty size`, `(?s)^-echo\r\n.*24 80\r\n$`},
		{"dev tty", "sh", `echo hello > /dev/tty; stty size < /dev/tty`, `^hello\r\n24 80\r\n$`},
		{"python", "python3", `python3 -c 'import os, sys; print(os.isatty(0), os.ttyname(1) == os.ttyname(0), os.get_terminal_size().columns)'`, `^True True 80\r\n$`},
		{"new terminal", "python3", `python3 -c 'import pty; print(pty.spawn(["tty"]))'`, `^/dev/pts/\d+\r\n0\r\n$`},
		{"script", "script", `script -qec tty /dev/null`, `^/dev/pts/\d+\r\n$`},
		{"pager", "less", `less -FX README.md`, `# project`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			evNeedProgram(t, tt.program)
			w := testenv.NewWorld(t)
			for _, prefix := range [][]string{nil, mtJailed(t)} {
				p := ptyStart(t, w, append(prefix, "sh", "-c", tt.command)...)
				p.end(0)
				p.expect(tt.want)
			}
		})
	}
}
