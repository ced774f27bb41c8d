package plan_test

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"jail/plan"
)

// promises shows who holds what: "l" landlock, "m" mounts, "s" seccomp. Those that
// depend on no layer are left out: see TestPromisesOfTheStart.
func promises(p plan.Plan) map[string]string {
	out := map[string]string{}
	for _, pr := range p.Promises {
		if pr.ID == "start" || pr.ID == "artifacts" {
			continue
		}
		var by []string
		for _, b := range pr.By {
			by = append(by, b[:1])
		}
		s := strings.Join(by, "")
		if s == "" {
			s = "-"
		}
		if pr.Opened != "" {
			s += " open"
		}
		if pr.Waived {
			s += " waived"
		}
		out[pr.ID] = s
	}
	return out
}

// Whatever the host, a start drops what it has; artifacts are promised a domain
// where some can run.
func TestPromisesOfTheStart(t *testing.T) {
	for text, want := range map[string]string{
		"": "artifacts supervisor, start start", `waive = ["mounts"]`: "start start", "[artifact]\nrun = 'deny'": "start start",
	} {
		var got []string
		for _, pr := range newWorld(t).plan(text).Promises {
			if pr.ID == "start" || pr.ID == "artifacts" {
				got = append(got, pr.ID+" "+strings.Join(pr.By, " "))
			}
		}
		if s := strings.Join(got, ", "); s != want {
			t.Errorf("%q: %s; want %s", text, s, want)
		}
	}
}

// The ids are those of SECURITY.md, in its order.
func TestPromisesAreWrittenDown(t *testing.T) {
	text, err := os.ReadFile("../SECURITY.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(text), "| id | promise |")
	table, _, _ = strings.Cut(table, "\n\n")
	var want, got []string
	for _, m := range regexp.MustCompile(`(?m)^\| ([a-z-]+) \|`).FindAllStringSubmatch(table, -1) {
		want = append(want, m[1])
	}
	for _, pr := range newWorld(t).plan("[commands]\ndeny = ['/bin/sh']").Promises {
		got = append(got, pr.ID)
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

func TestPromises(t *testing.T) {
	no := plan.Fact{Why: "x"}
	all := map[string]string{ // a host with everything, ABI 7
		"paths": "l", "noexec": "m", "memory": "s", "length": "lm", "metadata": "m", "carve-outs": "lm", "signals": "lm", "ptrace": "lm",
		"processes": "m", "kernel": "s", "abstract": "ls", "sockets": "s", "ports": "- open",
	}
	without := func(changes ...string) map[string]string {
		m := map[string]string{}
		for k, v := range all {
			m[k] = v
		}
		for i := 0; i < len(changes); i += 2 {
			m[changes[i]] = changes[i+1]
		}
		return m
	}
	noMounts := []string{"noexec", "-", "length", "l", "metadata", "-", "carve-outs", "l", "signals", "l", "ptrace", "l", "processes", "-"}
	for _, tt := range []struct {
		name string
		host func(h *plan.Host)
		text string
		want map[string]string
	}{
		{"everything", nil, "", all},
		{"no mounts", func(h *plan.Host) { h.Mounts = no }, "", without(noMounts...)},
		{"no seccomp", func(h *plan.Host) { h.Seccomp = no }, "", without("memory", "-", "kernel", "-", "abstract", "l", "sockets", "-")},
		{
			"no seccomp, ports", func(h *plan.Host) { h.Seccomp = no }, "network.connect = [1]",
			without("memory", "-", "kernel", "-", "abstract", "l", "sockets", "-", "ports", "-"), // UDP stays
		},
		{
			"no landlock", func(h *plan.Host) { h.Landlock, h.ABI = no, 0 }, "network.bind = []",
			without("paths", "-", "length", "m", "carve-outs", "m", "signals", "m", "ptrace", "m", "abstract", "s", "ports", "-"),
		},
		{"ABI 1", func(h *plan.Host) { h.ABI = 1 }, "", without("length", "m", "signals", "m", "abstract", "s")},
		{"ABI 2", func(h *plan.Host) { h.ABI = 2 }, "", without("length", "m", "signals", "m", "abstract", "s")},
		{"ABI 3", func(h *plan.Host) { h.ABI = 3 }, "", without("signals", "m", "abstract", "s")},
		{"ABI 3, ports", func(h *plan.Host) { h.ABI = 3 }, "network.connect = []", without("signals", "m", "abstract", "s", "ports", "-")},
		{"ABI 4, ports", func(h *plan.Host) { h.ABI = 4 }, "network.connect = []", without("signals", "m", "abstract", "s", "ports", "ls")},
		{"ABI 5", func(h *plan.Host) { h.ABI = 5 }, "", without("signals", "m", "abstract", "s")},
		{"ABI 6", func(h *plan.Host) { h.ABI = 6 }, "", all},
		{"ABI 8", func(h *plan.Host) { h.ABI = 8 }, "", all},
		// From ABI 9 the filter lets AF_UNIX through: seccomp holds nothing there.
		{"ABI 9", func(h *plan.Host) { h.ABI = 9 }, "", without("abstract", "l", "sockets", "l")},
		{"ABI 11", func(h *plan.Host) { h.ABI = 11 }, "network.connect = [443]", without("abstract", "l", "sockets", "l", "ports", "ls")},
		{"unix any", nil, `network.unix = "any"`, without("abstract", "l", "sockets", "- open")},
		{
			"waived", func(h *plan.Host) { h.Mounts, h.ABI = no, 2 }, `waive = ["mounts", "truncate", "signals", "ports"]`,
			without("noexec", "- waived", "length", "- waived", "metadata", "- waived", "carve-outs", "l", "signals", "- waived", "ptrace", "l", "processes", "- waived", "abstract", "s"),
		},
		{"waivers that are not needed", nil, `waive = ["truncate", "signals", "ports"]`, all},
		{
			"mounts waived where they could be had", nil, `waive = ["mounts"]`,
			without("noexec", "- waived", "length", "l", "metadata", "- waived", "carve-outs", "l", "signals", "l", "ptrace", "l", "processes", "- waived"),
		},
		{
			"a carve-out that a grant reaches", func(h *plan.Host) { h.Mounts = no }, "files = { read = ['.'], hide = ['.', '~/no?'] }",
			without(append(noMounts, "carve-outs", "-")...),
		},
		{
			"carve-outs that no grant reaches", func(h *plan.Host) { h.Mounts = no }, "files = { read = ['.'], protect = ['.'], hide = ['${B}/out'] }",
			without(noMounts...),
		},
		{
			"a pattern below a grant", func(h *plan.Host) { h.Mounts = no }, "files = { read = ['.'], hide = ['**/.env'] }",
			without(append(noMounts, "carve-outs", "-")...),
		},
		{
			"a grant below a carve-out", func(h *plan.Host) { h.Mounts = no }, "files = { read = ['.'], hide = ['~'] }",
			without(append(noMounts, "carve-outs", "-")...),
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t)
			w.host.ABI = 7
			if tt.host != nil {
				tt.host(&w.host)
			}
			p := w.plan(tt.text)
			if d := cmp.Diff(tt.want, promises(p)); d != "" {
				t.Error(d)
			}
			wantErr := false
			for _, pr := range p.Promises {
				wantErr = wantErr || len(pr.By) == 0 && pr.Opened == "" && !pr.Waived
			}
			if err := p.Enforceable(); (err != nil) != wantErr {
				t.Errorf("want an error %t, got %v", wantErr, err)
			}
			// What a layer holds that is not there is held by nobody.
			for _, pr := range p.Promises {
				for layer, fact := range map[string]plan.Fact{"landlock": w.host.Landlock, "mounts": w.host.Mounts, "seccomp": w.host.Seccomp} {
					if !fact.OK && slices.Contains(pr.By, layer) {
						t.Errorf("%s is said to be held by %s, which is not there", pr.ID, layer)
					}
				}
			}
		})
	}
}

func TestEnforceableWords(t *testing.T) {
	w := newWorld(t)
	w.file("home/proj/.env", "")
	w.host.Mounts, w.host.ABI = plan.Fact{Why: "x"}, 2
	p := w.plan("network.connect = [443]\n[files]\nread = ['.']\nwrite = ['.']\nprotect = ['.git/x', '*.md']\nhide = ['.env', 'no?']")
	want := []string{
		strings.Join([]string{
			"this host can't hold what the rules promise:",
			"  what the jail writes is never loaded as code (execve, ld.so, LD_PRELOAD, dlopen, mmap), but from a sealed copy",
			"  files outside write trees keep their length",
			"  files outside write trees keep mode, owner, times and attributes",
			"  protected and hidden paths inside grants",
			"    protect B/home/proj/*.md (f:6)",
			"    hide B/home/proj/.env (f:7)",
			"  no signals to processes outside",
			"  processes outside are not listed",
			"  TCP connections to ports 443 only, no other internet protocol",
		}, "\n"),
		"`jail doctor` tells what is missing on this host; to go on without: --waive mounts --waive truncate --waive signals --waive ports",
	}
	if d := cmp.Diff(want, w.said(p.Enforceable())); d != "" {
		t.Error(d)
	}
	w.host.Seccomp = plan.Fact{}
	w.host.ABI, w.host.Mounts = 7, plan.Fact{OK: true}
	want = []string{
		strings.Join([]string{
			"this host can't hold what the rules promise:",
			"  nothing executes from memory files",
			"  no new namespaces, mounts, io_uring, bpf, keyrings, terminal injection, odd socket families",
			"  no unix sockets with a path to the outside (D-Bus, docker, ssh-agent)",
		}, "\n"),
		"`jail doctor` tells what is missing on this host",
	}
	if d := cmp.Diff(want, w.said(w.plan("waive = ['mounts']").Enforceable())); d != "" {
		t.Error(d)
	}
}

// The origin of a waiver is shown where it counted, and only there.
func TestWaiverOrigin(t *testing.T) {
	w := newWorld(t)
	w.host.Mounts = plan.Fact{}
	var got []string
	for _, pr := range w.plan("\nwaive = ['mounts']").Promises {
		if pr.From != (plan.Origin{}) {
			got = append(got, fmt.Sprint(pr.ID, " ", pr.From))
		}
	}
	if d := cmp.Diff([]string{"noexec f:3", "metadata f:3", "processes f:3"}, got); d != "" {
		t.Error(d)
	}
}

// A kernel that does not tell who listens is no secret.
func TestPeers(t *testing.T) {
	for _, tt := range []struct {
		text string
		abi  int
		ok   bool
		want bool
	}{
		{"", 7, false, true}, {"", 7, true, false}, {"", plan.UnixABI, false, false}, {"network.unix = 'any'", 7, false, false},
	} {
		w := newWorld(t)
		w.host.ABI, w.host.Peers = tt.abi, plan.Fact{OK: tt.ok, Why: "no peers"}
		p := w.plan(tt.text)
		if got := slices.ContainsFunc(p.Remarks, func(r string) bool { return strings.Contains(r, "no peers") }); got != tt.want {
			t.Errorf("%+v: %q", tt, p.Remarks)
		}
	}
}
