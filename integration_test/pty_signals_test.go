package integration_test

import (
	"strings"
	"testing"
	"time"

	"jail/internal/testenv"
)

func TestPtyInterrupt(t *testing.T) {
	ptyModes(t, func(t *testing.T, jail []string) {
		p := ptyShell(t, jail)
		p.line("$J sh -c 'echo sta''rted; exec sleep 100'")
		p.expect(`started`)
		p.keys("\x03")
		p.expect(`prompt> `)
		p.line("echo status=$?; jobs; echo en''d")
		if got := p.expect(`status=(\d+)\r\n([^$]*)end`); got[1] != "130" || got[2] != "" {
			t.Errorf("status %s, jobs %q", got[1], got[2])
		}
	})
}

// One key is one signal: a command that counts gets each Ctrl-C once.
func TestPtyInterruptOnce(t *testing.T) {
	ptyModes(t, func(t *testing.T, jail []string) {
		p := ptyShell(t, jail)
		p.line(`$J bash -c 'trap "echo interru""pted" INT; echo sta''rted; for i in 1 2; do read -r x; echo li""ne $x; done; sleep 0.3; echo fini''shed'`)
		p.expect(`started`)
		// Bash keeps a signal that arrives just before it reads until it has read.
		time.Sleep(300 * time.Millisecond)
		p.keys("\x03")
		p.expect(`interrupted`)
		p.line("a")
		p.expect(`line a`)
		time.Sleep(300 * time.Millisecond)
		p.keys("\x03")
		p.expect(`interrupted`)
		p.line("b")
		if got := p.expect(`(?s)(.*)finished`); strings.Contains(got[1], "interrupted") {
			t.Errorf("a third signal came: %q", got[1])
		}
	})
}

func TestPtyQuit(t *testing.T) {
	ptyModes(t, func(t *testing.T, jail []string) {
		p := ptyShell(t, jail)
		p.line("$J sh -c 'echo sta''rted; exec sleep 100'")
		p.expect(`started`)
		p.keys("\x1c")
		p.expect(`prompt> `)
		p.line("echo status=$?; ls core* 2>/dev/null; echo en''d")
		if got := p.expect(`status=(\d+)\r\n([^$]*)end`); got[1] != "131" || got[2] != "" {
			t.Errorf("status %s, core dump %q", got[1], got[2])
		}
	})
}

func TestPtyStop(t *testing.T) {
	ptyModes(t, func(t *testing.T, jail []string) {
		p := ptyShell(t, jail)
		p.line("$J sh -c 'echo sta''rted; while read x; do echo go''t $x; done; exit 9'")
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
			p.line("input") // a key that comes before bash has continued its job is lost
			p.expect(`got input`)
		}
		p.keys("\x04")
		p.expect(`prompt> `)
		p.line("echo status=$?")
		p.expect(`status=9\r\n`)
	})
}

// A script's jail is no job of its own, but stops with the script.
func TestPtyStopInScript(t *testing.T) {
	ptyModes(t, func(t *testing.T, jail []string) {
		p := ptyShell(t, jail)
		p.line(`export J; bash -c '$J sh -c "echo sta""rted; while read x; do echo go""t \$x; done"; echo script o""ver'`)
		p.expect(`started`)
		for range 2 {
			p.keys("\x1a")
			p.expect(`Stopped`)
			p.expect(`prompt> `)
			// The shell has seen the script stop; a reader that is traced may still be about to.
			time.Sleep(300 * time.Millisecond)
			p.line("fg")
			p.expect(`fg\r\n.*script o.*\r\n`)
			p.line("input")
			p.expect(`got input`)
		}
		p.keys("\x04")
		p.expect(`script over`)
	})
}

// Who ends in the background, to which its shell has sent it, leaves the terminal to
// that shell.
func TestPtyEndsInBackground(t *testing.T) {
	ptyModes(t, func(t *testing.T, jail []string) {
		p := ptyShell(t, jail)
		p.line("$J sh -c 'echo sta''rted; until test -e go; do sleep 0.02; done'")
		p.expect(`started`)
		p.keys("\x1a")
		p.expect(`Stopped`)
		p.expect(`prompt> `)
		p.line("bg")
		p.expect(`prompt> `)
		p.line("touch go; wait; echo fini''shed")
		p.expect(`finished`)
		p.expect(`prompt> `)
		p.line("read x; echo go''t $x")
		p.line("input")
		p.expect(`got input`)
	})
}

// In the background, reading from the terminal stops the command.
func TestPtyBackground(t *testing.T) {
	ptyModes(t, func(t *testing.T, jail []string) {
		p := ptyShell(t, jail)
		p.line("$J sh -c 'read x; echo go''t $x' &")
		p.expect(`prompt> `)
		p.line("sleep 0.5; jobs")
		p.expect(`Stopped`)
		p.line("fg")
		p.expect(`fg\r\n.*read x.*\r\n`)
		p.line("input")
		p.expect(`got input`)
	})
}

func TestPtyHangup(t *testing.T) {
	ptyModes(t, func(t *testing.T, jail []string) {
		w := testenv.NewWorld(t)
		p := ptyStart(t, w, append(jail, "sh", "-c", "trap 'echo hup > hup; exit 3' HUP; echo started; while :; do sleep 0.02; done")...)
		p.expect(`started`)
		if err := p.master.Close(); err != nil {
			t.Fatal(err)
		}
		p.end(3)
	})
}

func TestPtyWindowSize(t *testing.T) {
	ptyModes(t, func(t *testing.T, jail []string) {
		w := testenv.NewWorld(t)
		// Bash loses a signal that arrives while its trap runs: wait until it is idle.
		script := `stty size; trap 'echo changed; stty size; n=1' WINCH; echo started; for i in $(seq 400); do sleep 0.05; test $n && echo idle; n=; done`
		p := ptyStart(t, w, append(jail, "bash", "-c", script)...)
		p.expect(`24 80\r\n`)
		p.expect(`started`)
		ptySize(t, p.master, 50, 132)
		p.expect(`changed\r\n50 132\r\nidle`)
		ptySize(t, p.master, 10, 20)
		p.expect(`changed\r\n10 20\r\n`)
	})
}

// A command that stops itself stops its jail, or the shell outside would wait
// for ever. Editors take Ctrl-Z as a key and then send the signal to themselves, or
// to their process group.
func TestPtyStopsItself(t *testing.T) {
	ptyModes(t, func(t *testing.T, jail []string) {
		for _, how := range []string{"STOP $$", "TSTP $$", "TSTP 0"} {
			p := ptyShell(t, jail)
			p.line("$J sh -c 'echo sta''rted; kill -" + how + "; echo go''es on; exit 9'")
			p.expect(`started`)
			p.expect(`Stopped`)
			p.expect(`prompt> `)
			p.line("fg")
			p.expect(`goes on`)
			p.expect(`prompt> `)
			p.line("echo status=$?")
			p.expect(`status=9\r\n`)
		}
	})
}

// A command that Ctrl-Z does not stop goes on, and its jail with it.
func TestPtyStopIgnored(t *testing.T) {
	ptyModes(t, func(t *testing.T, jail []string) {
		p := ptyShell(t, jail)
		p.line(`$J bash -c 'trap "" TSTP; echo sta""rted; read x; echo go""t $x; exit 9'`)
		p.expect(`started`)
		p.keys("\x1a")
		p.line("input")
		p.expect(`got input`)
		p.expect(`prompt> `)
		p.line("echo status=$?")
		p.expect(`status=9\r\n`)
	})
}

// Ctrl-Z stops a command that starts others all the time.
func TestPtyStopBusy(t *testing.T) {
	ptyModes(t, func(t *testing.T, jail []string) {
		p := ptyShell(t, jail)
		p.line(`$J bash -c 'while echo wai""ts; read x; do echo on $x; for i in {1..20}; do /bin/true; (: | cat); done; done; exit 9'`)
		for range 5 {
			p.expect(`waits`)
			p.line("input")
			p.expect(`on input`)
			p.keys("\x1a")
			p.expect(`Stopped`)
			p.expect(`prompt> `)
			p.line("fg")
		}
		p.expect(`waits`)
		p.keys("\x04")
		p.expect(`prompt> `)
		p.line("echo status=$?")
		p.expect(`status=9\r\n`)
	})
}
