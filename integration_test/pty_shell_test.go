package integration_test

import (
	"testing"
	"time"

	"jail/internal/testenv"
)

// An interactive shell in the jail has its jobs, its terminal and its keys.
func TestPtyJobControlInside(t *testing.T) {
	ptyModes(t, func(t *testing.T, jail []string) {
		w := testenv.NewWorld(t)
		p := ptyStart(t, w, append(jail, "bash", "--norc", "--noprofile", "--noediting", "-i")...)
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
		time.Sleep(300 * time.Millisecond) // bash says which job, and then gives it the terminal
		p.keys("\x03")
		p.expect(`prompt> `)
		p.line("echo status=$?")
		p.expect(`status=130`)
		p.line("sleep 100 & kill %1; wait %1; echo status=$?")
		p.expect(`status=143`)
		p.line("set -o | grep monitor; exit 4")
		p.expect(`monitor\s+on`)
		p.end(4)
	})
}

// Jail in the middle of two shells: keys go where they belong.
func TestPtyShellInShell(t *testing.T) {
	ptyModes(t, func(t *testing.T, jail []string) {
		p := ptyShell(t, jail)
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
	})
}

func TestPtyTerminal(t *testing.T) {
	mtNeed(t)
	for _, tt := range []struct {
		name, program string
		command, want string
	}{
		{"tty", "tty", `tty`, `^/dev/pts/\d+\r\n$`},
		{"test", "sh", `test -t 0 && test -t 1 && test -t 2 && echo yes`, `^yes\r\n$`},
		{"stty", "stty", `stty -echo; stty -a | grep -o -- -echo; stty echo; stty size`, `(?s)^-echo\r\n.*24 80\r\n$`},
		{"dev tty", "sh", `echo hello > /dev/tty; stty size < /dev/tty`, `^hello\r\n24 80\r\n$`},
		{"python", "python3", `python3 -c 'import os, sys; print(os.isatty(0), os.ttyname(1) == os.ttyname(0), os.get_terminal_size().columns)'`, `^True True 80\r\n$`},
		{"raw mode", "python3", `python3 -c 'import tty, termios; a = termios.tcgetattr(0); tty.setraw(0); termios.tcsetattr(0, termios.TCSADRAIN, a); print("done")'`, `^done\r\n$`},
		{"new terminal", "python3", `python3 -c 'import pty; print(pty.spawn(["tty"]))'`, `^/dev/pts/\d+\r\n0\r\n$`},
		{"script", "script", `script -qec tty /dev/null`, `^/dev/pts/\d+\r\n$`},
		{"node", "node", `node -e 'console.log(process.stdout.isTTY, process.stdout.columns, process.stdin.isTTY)'`, `^(\x1b\[\d+m|true|80| )*\r\n$`},
		{"pager", "less", `less -FX README.md`, `# project`},
		{"git", "git", `git log --oneline --color=auto | wc -l; git -c core.pager=cat log --format=%s`, `^1\r\nfirst\r\n$`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			evNeedProgram(t, tt.program)
			w := testenv.NewWorld(t)
			for _, prefix := range [][]string{nil, evJailed(t), mtJailed(t)} {
				p := ptyStart(t, w, append(prefix, "sh", "-c", tt.command)...)
				p.end(0)
				p.expect(tt.want)
			}
		})
	}
}

// suspend, in the inner shell, gives the terminal back to the outer one.
func TestPtySuspend(t *testing.T) {
	ptyModes(t, func(t *testing.T, jail []string) {
		p := ptyShell(t, jail)
		p.line("$J bash --norc --noprofile --noediting -i")
		p.expect(`bash-[^ ]*[$#] `)
		p.line("PS1='inn''er> '")
		p.expect(`inner> `)
		p.line("suspend")
		p.expect(`Stopped`)
		p.expect(`prompt> `)
		p.line("fg")
		p.expect(`fg\r\n.*bash.*\r\n`)
		p.expect(`inner> `)
		p.line("(exit 6)")
		p.expect(`inner> `)
		p.keys("\x04")
		p.expect(`prompt> `)
		p.line("echo status=$?")
		p.expect(`status=6\r\n`)
	})
}

// After an interactive shell in a jail the script that started it has its
// terminal back.
func TestPtyTerminalComesBack(t *testing.T) {
	ptyModes(t, func(t *testing.T, jail []string) {
		w := testenv.NewWorld(t)
		for _, prefix := range [][]string{nil, jail} {
			p := ptyStart(t, w, append([]string{"sh", "-c", `"$@"; read x; echo go''t $x; exit 5`, "sh"}, append(prefix, "bash", "--norc", "--noprofile", "--noediting", "-i")...)...)
			p.expect(`[$#>] `)
			p.line("exit 3")
			p.expect(`exit`)
			p.line("input")
			p.expect(`got input`)
			p.end(5)
		}
	})
}
