package launch

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"jail/plan"
)

// The order can't be changed by anybody once it is sealed.
func TestSealed(t *testing.T) {
	f, err := memory()
	if err != nil {
		t.Fatal(err)
	}
	if err := (order{Cwd: "/somewhere"}).write(f); err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteAt([]byte("x"), 0); !errors.Is(err, unix.EPERM) {
		t.Errorf("writing: %v", err)
	}
	if err := f.Truncate(0); !errors.Is(err, unix.EPERM) {
		t.Errorf("truncating: %v", err)
	}
	text := make([]byte, 1<<16)
	if n, err := f.ReadAt(text, 0); err != io.EOF || !strings.Contains(string(text[:n]), "/somewhere") {
		t.Errorf("%q, %v", text[:n], err)
	}
}

// What the stage says on the pipe is the parent's error; silence means that the
// command runs.
func TestRefusal(t *testing.T) {
	for _, tt := range []struct {
		said string
		want string
	}{
		{"", ""},
		{`{"What":"no room","Hint":"make some","Status":126}`, "no room"},
		{`{"What":"no room","Hint":"make some","Status":126,"NoMounts":true}`, "no room"},
	} {
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(w, tt.said); err != nil {
			t.Fatal(err)
		}
		w.Close()
		err = refused(plan.Plan{}, r)
		var p *plan.Problem
		if strings.Contains(tt.said, "NoMounts") {
			if !errors.As(err, &p) || !strings.Contains(p.What, "private namespaces can't be made here (no room)") {
				t.Errorf("%s: %#v", tt.said, err)
			}
			continue
		}
		switch {
		case tt.want == "" && err != nil:
			t.Errorf("silence: %v", err)
		case tt.want != "" && (!errors.As(err, &p) || !strings.Contains(p.What, tt.want) || p.Hint != "make some" || p.Status != 126):
			t.Errorf("%s: %#v", tt.said, err)
		}
	}
}

// An init that a signal has ended is no exit status of the command's.
func TestExitStatus(t *testing.T) {
	for _, tt := range []struct {
		line string
		want int
		fail bool
	}{
		{"exit 0", 0, false}, {"exit 7", 7, false}, {"exit 137", 137, false}, {"exit 255", 255, false}, {"kill -KILL $$", 0, true},
	} {
		got, err := exitStatus(exec.Command("sh", "-c", tt.line).Run())
		if got != tt.want || (err != nil) != tt.fail {
			t.Errorf("%s: %d, %v", tt.line, got, err)
		}
	}
}
