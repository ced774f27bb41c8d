package oracle_test

import (
	"slices"
	"strings"
	"testing"

	"jail/oracle"
)

// TestAgreed are the cases that TestOracle has found, and what is right.
func TestAgreed(t *testing.T) {
	c := newCourt(t)
	for i, tt := range []struct {
		scenario
		want bool // the operation succeeds
	}{
		// A rule on what is hidden is not made, so another name has nothing of it.
		{scenario{Mounts: true, Nodes: []node{
			{"dir", "out/d", ""},
			{"file", "out/d/a", ""},
			{"hard", "out/d/b", "out/d/a"},
		}, Rules: []rule{
			{"files.read", "out/d/a"},
			{"files.hide", "out/d/a"},
		}, Ops: []oracle.Op{{Do: "read", Path: "out/d/b"}}}, false},
		// A grant that reopens takes nothing away from another that does, around it.
		{scenario{Mounts: true, Nodes: []node{
			{"dir", "proj/d", ""},
			{"dir", "proj/d/n2", ""},
			{"dir", "proj/d/n2/n4", ""},
			{"file", "proj/d/n2/n4/n7", ""},
		}, Rules: []rule{
			{"files.read", "proj/d/n2/n4"},
			{"files.write", "proj/d/n2"},
			{"files.hide", "proj/d"},
		}, Ops: []oracle.Op{{Do: "rdwr", Path: "proj/d/n2/n4/n7"}}}, true},
		// What may be executed inside of what reopens for writing still may.
		{scenario{Mounts: true, Nodes: []node{
			{"dir", "proj/d", ""},
			{"dir", "proj/d/w", ""},
			{"file", "proj/d/w/x", ""},
		}, Rules: []rule{
			{"files.write", "proj"},
			{"files.write", "proj/d/w"},
			{"files.exec", "proj/d/w/x"},
			{"files.protect", "proj/d"},
		}, Ops: []oracle.Op{{Do: "exec", Path: "proj/d/w/x"}}}, true},
		{scenario{Mounts: true, Nodes: []node{
			{"dir", "proj/d", ""},
			{"dir", "proj/d/w", ""},
			{"file", "proj/d/w/x", ""},
		}, Rules: []rule{
			{"files.write", "proj/d/w"},
			{"files.exec", "proj/d/w/x"},
			{"files.protect", "proj/d"},
		}, Ops: []oracle.Op{{Do: "exec", Path: "proj/d/w/x"}}}, true},
		// A pattern for what is in a directory does not match the directory.
		{scenario{Mounts: true, Nodes: []node{
			{"dir", "proj/d", ""},
			{"file", "proj/d/a", ""},
		}, Rules: []rule{
			{"files.write", "proj"},
			{"files.glob", "proj/d/*"},
		}, Ops: []oracle.Op{{Do: "create", Path: "proj/d/new"}}}, true},
		// What reopens inside of what reopens is held by no mount if it gives nothing else.
		{scenario{Mounts: true, Nodes: []node{
			{"dir", "proj/d", ""},
			{"dir", "proj/d/w", ""},
			{"dir", "proj/d/w/a", ""},
			{"file", "proj/d/w/a/f", ""},
			{"file", "proj/d/w/f", ""},
		}, Rules: []rule{
			{"files.read", "proj"},
			{"files.write", "proj/d/w"},
			{"files.write", "proj/d/w/a/f"},
			{"files.hide", "proj/d"},
		}, Ops: []oracle.Op{{Do: "exchange", Path: "proj/d/w/a", To: "proj/d/w/f"}}}, true},
		// What is denied by one name is denied by all, through another mount too.
		{scenario{Mounts: true, Nodes: []node{
			{"dir", "proj/d", ""},
			{"dir", "out/d", ""},
			{"bind", "proj/d", "out/d"},
			{"dir", "out/d/n1", ""},
			{"file", "out/d/n1/n4", ""},
		}, Rules: []rule{
			{"files.exec", "proj/d"},
			{"commands.deny", "out/d/n1/n4"},
		}, Ops: []oracle.Op{{Do: "exec", Path: "proj/d/n1/n4"}}}, false},
		{scenario{Mounts: true, Nodes: []node{
			{"dir", "proj/d", ""},
			{"dir", "out/d", ""},
			{"bind", "proj/d", "out/d"},
			{"file", "out/d/n4", ""},
		}, Rules: []rule{
			{"files.exec", "proj"},
			{"commands.deny", "out/d/n4"},
		}, Ops: []oracle.Op{{Do: "exec", Path: "proj/d/n4"}}}, false},
		// A denied file that may be written is not executed by way of what is around it.
		{scenario{Mounts: true, Nodes: []node{
			{"dir", "out/d", ""},
			{"dir", "out/d/x", ""},
			{"file", "out/d/x/f", ""},
		}, Rules: []rule{
			{"files.write", "out/d/x/f"},
			{"files.exec", "out/d/x"},
			{"commands.deny", "out/d/x/f"},
		}, Ops: []oracle.Op{{Do: "exec", Path: "out/d/x/f"}}}, false},
		// A write tree stays one, although something in it is denied.
		{scenario{Mounts: true, Nodes: []node{
			{"dir", "proj/d", ""},
			{"dir", "out/d", ""},
			{"dir", "out/d/n0", ""},
			{"bind", "proj/d", "out/d"},
			{"file", "out/d/n0/f", ""},
		}, Rules: []rule{
			{"files.write", "out/d/n0"},
			{"commands.deny", "out/d/n0/f"},
		}, Ops: []oracle.Op{{Do: "create", Path: "out/d/n0/new"}}}, true},
		// What is hidden is hidden where a second mount shows it, too.
		{scenario{Mounts: true, Nodes: []node{
			{"dir", "proj/d", ""},
			{"file", "proj/d/secret", ""},
			{"dir", "out/d", ""},
			{"bind", "out/d", "proj/d"},
		}, Rules: []rule{
			{"files.write", "proj"},
			{"files.write", "out"},
			{"files.hide", "proj/d/secret"},
		}, Ops: []oracle.Op{{Do: "read", Path: "out/d/secret"}}}, false},
		// What is granted entry by entry, because something beside it is denied, is so
		// through every mount: a directory, a file, and what is mounted on either.
		{scenario{Mounts: true, Nodes: []node{
			{"dir", "out/d", ""},
			{"file", "out/d/bad", ""},
			{"dir", "out/d/e", ""},
			{"dir", "proj/d", ""},
			{"bind", "proj/d", "out/d/e"},
		}, Rules: []rule{
			{"files.exec", "out/d"},
			{"commands.deny", "out/d/bad"},
		}, Ops: []oracle.Op{{Do: "read", Path: "proj/d"}}}, true},
		{scenario{Mounts: true, Nodes: []node{
			{"dir", "out/d", ""},
			{"file", "out/d/bad", ""},
			{"file", "out/d/e", ""},
			{"file", "proj/f", ""},
			{"bind", "proj/f", "out/d/e"},
		}, Rules: []rule{
			{"files.exec", "out/d"},
			{"commands.deny", "out/d/bad"},
		}, Ops: []oracle.Op{{Do: "read", Path: "proj/f"}}}, true},
		{scenario{Mounts: true, Nodes: []node{
			{"dir", "out/d", ""},
			{"file", "out/d/bad", ""},
			{"dir", "out/d/e", ""},
			{"dir", "proj/d", ""},
			{"bind", "out/d/e", "proj/d"},
		}, Rules: []rule{
			{"files.exec", "out/d"},
			{"commands.deny", "out/d/bad"},
		}, Ops: []oracle.Op{{Do: "read", Path: "proj/d"}}}, true},
		// An entry is what is there in the granted directory, not what another mount has
		// by the same name.
		{scenario{Mounts: true, Nodes: []node{
			{"dir", "out/d", ""},
			{"file", "out/d/bad", ""},
			{"dir", "out/d/e", ""},
			{"file", "out/d/e/f", ""},
			{"dir", "out/o", ""},
			{"dir", "proj/d", ""},
			{"bind", "proj/d", "out/d"},
			{"bind", "out/d/e", "out/o"},
		}, Rules: []rule{
			{"files.exec", "out/d"},
			{"commands.deny", "out/d/bad"},
		}, Ops: []oracle.Op{{Do: "read", Path: "proj/d/e/f"}}}, false},
		// A denied file mounted on another has no name more for that.
		{scenario{Mounts: true, Nodes: []node{
			{"dir", "out/d", ""},
			{"file", "out/d/a", ""},
			{"file", "out/d/b", ""},
			{"dir", "out/d/share", ""}, // in which no programs are looked for
			{"hard", "out/d/share/c", "out/d/a"},
			{"bind", "out/d/b", "out/d/a"},
		}, Rules: []rule{
			{"files.exec", "out/d"},
			{"commands.deny", "out/d/a"},
		}, Ops: []oracle.Op{{Do: "exec", Path: "out/d/share/c"}}}, false},
		{scenario{Mounts: true, Nodes: []node{
			{"dir", "out/d", ""},
			{"file", "out/d/a", ""},
			{"dir", "out/e", ""},
			{"dir", "out/d/share", ""},
			{"hard", "out/d/share/c", "out/d/a"},
			{"bind", "out/e", "out/d"},
		}, Rules: []rule{
			{"files.exec", "out"},
			{"commands.deny", "out/d/a"},
		}, Ops: []oracle.Op{{Do: "exec", Path: "out/d/share/c"}}}, false},
		// What is denied is not given back inside of a carve-out.
		{scenario{Mounts: true, Nodes: []node{
			{"dir", "proj/d", ""},
			{"dir", "proj/d/e", ""},
			{"file", "proj/d/e/f", ""},
		}, Rules: []rule{
			{"files.exec", "proj/d/e"},
			{"files.write", "proj/d"},
			{"files.write", "proj/d/e/f"},
			{"files.protect", "proj/d/e"},
			{"commands.deny", "proj/d/e/f"},
		}, Ops: []oracle.Op{{Do: "read", Path: "proj/d/e/f"}}}, false},
		// What is hidden is not granted to artifacts, although a rule lets it be written.
		{scenario{Mounts: true, Artifact: true, Nodes: []node{
			{"dir", "proj/d", ""},
			{"dir", "proj/e", ""},
		}, Rules: []rule{
			{"files.write", "proj/d"},
			{"files.write", "proj/e"},
			{"files.hide", "proj/e"},
		}, Ops: []oracle.Op{{Do: "create", Path: "proj/d/new"}}}, true},
		// Artifacts write in the project only, but chmod is up to the mounts.
		{scenario{Mounts: true, Artifact: true, Nodes: []node{
			{"dir", "out/d", ""},
		}, Rules: []rule{
			{"files.write", "out/d"},
		}, Ops: []oracle.Op{{Do: "create", Path: "out/d/new"}}}, false},
		{scenario{Mounts: true, Artifact: true, Nodes: []node{
			{"dir", "out/d", ""},
		}, Rules: []rule{
			{"files.write", "out/d"},
		}, Ops: []oracle.Op{{Do: "chmod", Path: "out/d"}}}, true},
		// A part of what is hidden is hidden where a mount shows it, unless a rule names that.
		{scenario{Mounts: true, Nodes: []node{
			{"dir", "out/d", ""},
			{"dir", "out/d/keys", ""},
			{"file", "out/d/keys/k", ""},
			{"dir", "proj/d", ""},
			{"bind", "proj/d", "out/d/keys"},
		}, Rules: []rule{
			{"files.read", "proj"},
			{"files.hide", "out/d"},
		}, Ops: []oracle.Op{{Do: "read", Path: "proj/d/k"}}}, false},
		{scenario{Mounts: true, Nodes: []node{
			{"dir", "out/d", ""},
			{"dir", "out/d/keys", ""},
			{"file", "out/d/keys/k", ""},
			{"dir", "proj/d", ""},
			{"bind", "proj/d", "out/d/keys"},
		}, Rules: []rule{
			{"files.read", "proj/d"},
			{"files.hide", "out/d"},
		}, Ops: []oracle.Op{{Do: "read", Path: "proj/d/k"}}}, true},
		// A hidden file is hidden by each of its names, also by one that may only be read.
		{scenario{Mounts: true, Nodes: []node{
			{"dir", "out/d", ""},
			{"file", "out/d/a", ""},
			{"hard", "out/b", "out/d/a"},
		}, Rules: []rule{
			{"files.read", "out"},
			{"files.hide", "out/d/a"},
		}, Ops: []oracle.Op{{Do: "read", Path: "out/b"}}}, false},
		{scenario{Mounts: true, Nodes: []node{
			{"dir", "out/d", ""},
			{"file", "out/d/a", ""},
			{"hard", "proj/b", "out/d/a"},
		}, Rules: []rule{
			{"files.write", "proj"},
			{"files.hide", "out/d/a"},
		}, Ops: []oracle.Op{{Do: "read", Path: "proj/b"}}}, false},
		// What is reopened is mounted in what hides the rest, and holds no other name.
		{scenario{Mounts: true, Nodes: []node{
			{"dir", "proj/d", ""},
			{"dir", "out/d", ""},
			{"dir", "out/d/e", ""},
			{"bind", "proj/d", "out/d/e"},
			{"file", "out/d/e/f", ""},
		}, Rules: []rule{
			{"files.read", "out/d/e/f"},
			{"files.write", "proj/d"},
			{"files.hide", "out/d"},
		}, Ops: []oracle.Op{{Do: "unlink", Path: "proj/d/f"}}}, true},
		// What is split at one path of a directory gives another path of it nothing.
		{scenario{Mounts: true, Nodes: []node{
			{"dir", "proj/d", ""},
			{"dir", "out/d", ""},
			{"file", "proj/d/bad", ""},
			{"dir", "proj/d/e", ""},
			{"bind", "out/d", "proj/d/e"},
			{"hard", "proj/d/e/bad", "proj/d/bad"},
			{"file", "proj/d/e/f", ""},
		}, Rules: []rule{
			{"files.read", "out/d"},
			{"files.write", "proj/d/e/f"},
			{"files.exec", "proj/d"},
			{"commands.deny", "proj/d/bad"},
		}, Ops: []oracle.Op{{Do: "exec", Path: "out/d/f"}}}, false},
		// An entry that may be written is not executed because a mount is on it.
		{scenario{Mounts: true, Nodes: []node{
			{"dir", "out/d", ""},
			{"file", "out/d/bad", ""},
			{"dir", "out/d/e", ""},
			{"dir", "proj/d", ""},
			{"bind", "out/d/e", "proj/d"},
			{"file", "proj/d/f", ""},
		}, Rules: []rule{
			{"files.write", "out/d/e"},
			{"files.exec", "out/d"},
			{"commands.deny", "out/d/bad"},
		}, Ops: []oracle.Op{{Do: "exec", Path: "out/d/e/f"}}}, false},
		// A program in a write tree that is not allowed is not written either: another name
		// of it is.
		{scenario{Mounts: true, Nodes: []node{
			{"dir", "out/d", ""},
			{"dir", "out/d/e", ""},
			{"file", "out/d/e/f", ""},
			{"hard", "out/d/g", "out/d/e/f"},
		}, Rules: []rule{
			{"files.write", "out/d"},
			{"files.exec", "out/d/e"},
			{"files.exec", "out/d/g"},
			{"commands.allow", "out/d/e/f"},
		}, Ops: []oracle.Op{{Do: "write", Path: "out/d/g"}}}, false},
	} {
		if !c.binds && slices.ContainsFunc(tt.Nodes, func(n node) bool { return n.Kind == "bind" }) {
			continue
		}
		o, err := c.run(tt.scenario)
		if err != nil || len(o.Results) != 1 {
			t.Errorf("%d: %s %v", i, o.Refused, err)
			continue
		}
		if got := o.Results[0].Errno == 0; got != tt.want || o.Allowed[0] != tt.want {
			t.Errorf("%d: foretold %t, the kernel says %v, and right is %t\n%s", i, o.Allowed[0], o.Results[0].Errno, tt.want, tt.gofmt())
		}
	}
}

// TestRefused are cases in which there must be no plan.
func TestRefused(t *testing.T) {
	c := newCourt(t)
	for i, tt := range []struct {
		scenario
		want string
	}{
		// A file has one name more where it is mounted on another, but not for its link count.
		{scenario{Mounts: true, Nodes: []node{
			{"dir", "out/d", ""},
			{"file", "out/d/a", ""},
			{"file", "out/d/b", ""},
			{"hard", "out/d/c", "out/d/b"},
			{"bind", "out/d/a", "out/d/b"},
		}, Rules: []rule{
			{"files.write", "out/d/c"},
			{"files.exec", "out/d"},
		}, Ops: []oracle.Op{{Do: "write", Path: "out/d/c"}}}, "hard link"},
		// Without mounts a tree is executed wherever its directory is seen, with what is
		// mounted in it there.
		{scenario{Nodes: []node{
			{"dir", "proj/w", ""},
			{"file", "proj/w/f", ""},
			{"dir", "out/d", ""},
			{"dir", "out/d/m", ""},
			{"dir", "proj/x", ""},
			{"bind", "out/d/m", "proj/w"},
			{"bind", "proj/x", "out/d"},
		}, Rules: []rule{
			{"files.write", "proj/w"},
			{"files.exec", "proj/x"},
		}, Ops: []oracle.Op{{Do: "exec", Path: "out/d/m/f"}}}, "same directory"},
	} {
		if !c.binds {
			continue
		}
		o, err := c.run(tt.scenario)
		if err != nil || !strings.Contains(o.Refused, tt.want) {
			t.Errorf("%d: %q does not say %q, %v\n%s", i, o.Refused, tt.want, err, tt.gofmt())
		}
	}
}
