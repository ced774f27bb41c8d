package landlock_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	llconf "github.com/landlock-lsm/go-landlock/landlock"
	ll "github.com/landlock-lsm/go-landlock/landlock/syscall"

	"jail/landlock"
	"jail/plan"
	"jail/rules"
)

// compile makes a plan of a rule text in a fresh tree; ${B} is its base.
func compile(t *testing.T, text string) (plan.Plan, string) {
	t.Helper()
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range []string{"home", "proj", "tmp", "r", "w", "x"} {
		if err := os.MkdirAll(filepath.Join(base, d), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, f := range []string{"rf", "wf", "xf"} {
		if err := os.WriteFile(filepath.Join(base, f), nil, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return compileIn(t, base, text), base
}

func compileIn(t *testing.T, base, text string) plan.Plan {
	t.Helper()
	pol, err := rules.Parse(rules.Input{Sources: []rules.Source{{Kind: rules.RulesFile, Name: "f", Text: []byte("profiles = []\n" + text)}}})
	if err != nil {
		t.Fatal(err)
	}
	p, err := plan.Compile(pol, plan.Host{
		Home: base + "/home", Cwd: base + "/proj", UID: os.Getuid(), Temp: base + "/tmp", ABI: 7, Tree: plan.Tree{Root: base + "/proj"},
		Env: []string{"B=" + base}, Landlock: plan.Fact{OK: true}, Seccomp: plan.Fact{OK: true},
	})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// letters names the rights of landlock(7) by one letter each, in their order.
func letters(s llconf.AccessFSSet) string {
	var b strings.Builder
	for i, c := range "xwrldfmMnspbyRTiu" { // execute, write_file, read_file, list, ... resolve_unix
		if s&(1<<i) != 0 {
			b.WriteRune(c)
		}
	}
	if s>>17 != 0 {
		b.WriteString("?")
	}
	return b.String()
}

func TestLetters(t *testing.T) {
	// The order of the bits in the kernel's header.
	for i, bit := range []llconf.AccessFSSet{
		ll.AccessFSExecute, ll.AccessFSWriteFile, ll.AccessFSReadFile, ll.AccessFSReadDir, ll.AccessFSRemoveDir, ll.AccessFSRemoveFile,
		ll.AccessFSMakeChar, ll.AccessFSMakeDir, ll.AccessFSMakeReg, ll.AccessFSMakeSock, ll.AccessFSMakeFifo, ll.AccessFSMakeBlock,
		ll.AccessFSMakeSym, ll.AccessFSRefer, ll.AccessFSTruncate, ll.AccessFSIoctlDev, ll.AccessFSResolveUnix,
	} {
		if bit != 1<<i {
			t.Errorf("bit %d is %x", i, uint64(bit))
		}
	}
}

func TestCompile(t *testing.T) {
	const text = `files = { read = ["${B}/r", "${B}/rf"], write = ["${B}/w", "${B}/wf", "/dev/null", "/dev/pts?"], exec = ["${B}/x", "${B}/xf"] }`
	const base = "xwrldfmMnspby" // what ABI 1 handles
	for _, tt := range []struct {
		abi     int
		handled string
		dir     string // a written directory
		file    string // a written file
		dev     string
		scoped  llconf.ScopedSet
	}{
		{1, base, "wrldfMnspy", "wr", "wr", 0},
		{2, base + "R", "wrldfMnspyR", "wr", "wr", 0},
		{3, base + "RT", "wrldfMnspyRT", "wrT", "wrT", 0},
		{4, base + "RT", "wrldfMnspyRT", "wrT", "wrT", 0},
		{5, base + "RTi", "wrldfMnspyRT", "wrT", "wrTi", 0},
		{6, base + "RTi", "wrldfMnspyRT", "wrT", "wrTi", 3},
		{7, base + "RTi", "wrldfMnspyRT", "wrT", "wrTi", 3},
		{8, base + "RTi", "wrldfMnspyRT", "wrT", "wrTi", 3},
		{9, base + "RTiu", "wrldfMnspyRT", "wrT", "wrTi", 3},
		{10, base + "RTiu", "wrldfMnspyRT", "wrT", "wrTi", 3},
		{11, base + "RTiu", "wrldfMnspyRT", "wrT", "wrTi", 3},
		{12, base + "RTiu", "wrldfMnspyRT", "wrT", "wrTi", 3}, // newer than what is known
		{99, base + "RTiu", "wrldfMnspyRT", "wrT", "wrTi", 3},
	} {
		t.Run(fmt.Sprint(tt.abi), func(t *testing.T) {
			p, b := compile(t, text)
			rs := landlock.Compile(p, tt.abi)
			if got := letters(rs.Handled.HandledAccessFS); got != tt.handled || rs.Handled.Scoped != tt.scoped {
				t.Errorf("handled: want %s %d, got %s %d", tt.handled, tt.scoped, got, rs.Handled.Scoped)
			}
			if rs.Handled.HandledAccessNet != 0 || rs.Connect != nil || rs.Bind != nil {
				t.Errorf("network without a rule: %v %v %v", rs.Handled.HandledAccessNet, rs.Connect, rs.Bind)
			}
			want := map[string]string{
				b + "/r": "rl", b + "/rf": "r", b + "/w": tt.dir, b + "/wf": tt.file, b + "/x": "xrl", b + "/xf": "xr", "/dev/null": tt.dev,
			}
			got := map[string]string{}
			for _, pr := range rs.Paths {
				if got[pr.Path] = letters(pr.Rights); pr.ID == (plan.ID{}) {
					t.Errorf("%s has no identity", pr.Path)
				}
			}
			delete(got, "/dev/pts")
			if d := cmp.Diff(want, got); d != "" {
				t.Error(d)
			}
		})
	}
}

// Whatever is granted, no rule has Execute together with a right to write, make
// or move, and device nodes are never made.
func TestRightsKeepWX(t *testing.T) {
	const writing = ll.AccessFSWriteFile | ll.AccessFSTruncate | ll.AccessFSMakeReg | ll.AccessFSRemoveFile | ll.AccessFSRemoveDir |
		ll.AccessFSMakeDir | ll.AccessFSMakeSym | ll.AccessFSMakeSock | ll.AccessFSMakeFifo | ll.AccessFSRefer
	p, _ := compile(t, `files = { read = ["${B}/r", "${B}/x"], write = ["${B}/w", "${B}/wf", "/dev?"], exec = ["${B}/x", "${B}/xf", "/usr"] }`)
	for abi := 1; abi <= landlock.NewestABI; abi++ {
		for _, pr := range landlock.Compile(p, abi).Paths {
			if pr.Rights&ll.AccessFSExecute != 0 && pr.Rights&writing != 0 {
				t.Errorf("ABI %d: %s has %s", abi, pr.Path, letters(pr.Rights))
			}
			if pr.Rights&(ll.AccessFSMakeChar|ll.AccessFSMakeBlock) != 0 {
				t.Errorf("ABI %d: %s may make device nodes", abi, pr.Path)
			}
		}
	}
}

func TestCompileNetwork(t *testing.T) {
	for _, tt := range []struct {
		text          string
		abi           int
		net           llconf.AccessNetSet
		connect, bind []uint16
		unix          bool // unix sockets with a path are handled
	}{
		{"", 11, 0, nil, nil, true},
		{"network.connect = [443]", 3, 0, nil, nil, false},
		{"network.connect = [443]", 4, ll.AccessNetConnectTCP, []uint16{443}, nil, false},
		{"network.connect = []", 7, ll.AccessNetConnectTCP, nil, nil, false},
		{"network.bind = [80, 8080]", 9, ll.AccessNetBindTCP, nil, []uint16{80, 8080}, true},
		{"network = { bind = [1], connect = [2], udp = true }", 11, ll.AccessNetBindTCP | ll.AccessNetConnectTCP, []uint16{2}, []uint16{1}, true},
		{`network.unix = "any"`, 11, 0, nil, nil, false},
	} {
		p, _ := compile(t, tt.text)
		rs := landlock.Compile(p, tt.abi)
		if rs.Handled.HandledAccessNet != tt.net || len(rs.Connect) != len(tt.connect) || len(rs.Bind) != len(tt.bind) {
			t.Errorf("%s: got %v %v %v", tt.text, rs.Handled.HandledAccessNet, rs.Connect, rs.Bind)
		}
		if d := cmp.Diff(append([]uint16{}, tt.connect...), append([]uint16{}, rs.Connect...)); d != "" {
			t.Error(d)
		}
		if d := cmp.Diff(append([]uint16{}, tt.bind...), append([]uint16{}, rs.Bind...)); d != "" {
			t.Error(d)
		}
		if got := rs.Handled.HandledAccessFS&ll.AccessFSResolveUnix != 0; got != tt.unix {
			t.Errorf("%s, ABI %d: unix handled %t", tt.text, tt.abi, got)
		}
	}
}

// The zero plan grants nothing and handles everything.
func TestCompileZero(t *testing.T) {
	rs := landlock.Compile(plan.Plan{}, 7)
	if len(rs.Paths) != 0 || rs.Handled.HandledAccessFS != llconf.V7.HandledAccessFS || rs.Handled.Scoped != llconf.V7.Scoped {
		t.Errorf("%+v", rs)
	}
}

// Connections has the ports to connect to and nothing of the file system.
func TestConnections(t *testing.T) {
	p, _ := compile(t, "network = { connect = [443], bind = [80] }")
	rs, ok := landlock.Connections(p, 7)
	if !ok || len(rs.Paths) > 0 || rs.Handled.HandledAccessFS != 0 || len(rs.Bind) > 0 {
		t.Errorf("%t %+v", ok, rs)
	}
	if d := cmp.Diff([]uint16{443}, rs.Connect); d != "" {
		t.Error(d)
	}
	for text, abi := range map[string]int{"": 7, "network.bind = [80]": 7, "network.connect = [443]": 3} {
		p, _ := compile(t, text)
		if rs, ok := landlock.Connections(p, abi); ok {
			t.Errorf("%q, ABI %d: %+v", text, abi, rs)
		}
	}
}
