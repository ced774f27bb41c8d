package cli

import (
	"fmt"
	"slices"
	"strings"

	"jail/plan"
)

// reportProof is the W^X proof: the trees, and why no file is in two of them.
type reportProof struct {
	Write     []reportTree    `json:"write"`
	Exec      []reportTree    `json:"exec"`
	Nested    []reportNested  `json:"nested"`
	Symlinks  []reportSymlink `json:"symlinks"`
	Mounts    int             `json:"mounts"`
	Overlays  []string        `json:"overlays"`
	HardLinks reportLinks     `json:"hard_links"`
}

// reportTree is a tree and the layers that take the other right away: execution
// of a write tree, writing of an exec tree.
type reportTree struct {
	Path string   `json:"path"`
	At   string   `json:"at"`
	By   []string `json:"by"`
}

type reportNested struct {
	Outer string   `json:"outer"`
	Inner string   `json:"inner"`
	Is    string   `json:"is"` // what the inner one may be
	By    []string `json:"by"`
}

type reportSymlink struct {
	Path string `json:"path"`
	Real string `json:"real"`
	At   string `json:"at"`
}

type reportLinks struct {
	Searched []string `json:"searched"`
	Files    int      `json:"files"`
}

func proofOf(p plan.Plan) reportProof {
	r := reportProof{
		Write: treesOf(p, plan.Write), Exec: treesOf(p, plan.Exec), Mounts: p.Proof.Mounts,
		Overlays:  append([]string{}, p.Proof.Overlays...),
		HardLinks: reportLinks{Searched: append([]string{}, p.Proof.Searched...), Files: p.Proof.Linked},
		Nested: each(p.Nested(), func(n plan.Nested) reportNested {
			is := "executed"
			if n.Inner.Access&plan.Write != 0 {
				is = "written"
			}
			return reportNested{Outer: n.Outer.Path, Inner: n.Inner.Path, Is: is, By: []string{"mounts"}}
		}),
		Symlinks: each(p.Proof.Symlinks, func(s plan.Symlink) reportSymlink { return reportSymlink{s.Path, s.Real, s.At.String()} }),
	}
	if p.Mounts {
		r.Write = append(r.Write, reportTree{"/tmp, /var/tmp, /dev/shm", "private to the run", []string{"landlock", "mounts"}})
	} else {
		r.Write = append(r.Write, reportTree{p.Temp + "/jail-tmp-*", "private TMPDIR", []string{"landlock"}})
	}
	if p.Seals() {
		r.Exec = append(r.Exec, reportTree{plan.SealsDir, "sealed copies of this run", []string{"landlock", "mounts"}})
	}
	return r
}

// treesOf lists the grants of one kind. Devices are no files that could execute.
func treesOf(p plan.Plan, a plan.Access) []reportTree {
	by := []string{"landlock"}
	if p.Mounts {
		by = append(by, "mounts")
	}
	out := []reportTree{}
	for g := range p.Grants() {
		if g.Access&a == 0 || strings.HasPrefix(g.Path, "/dev/") {
			continue
		}
		at := ""
		if i := slices.IndexFunc(g.From, func(u plan.Use) bool { return u.Access&a != 0 }); i >= 0 {
			at = g.From[i].At.String()
		}
		out = append(out, reportTree{g.Path, at, by})
	}
	return out
}

// proofText is the proof as a person follows it: what is in each tree, and why no
// file is in two.
func (r report) proofText(p *page) {
	x := r.Proof
	p.head("W^X: no file may be both written and executed")
	p.line("write trees: may be written; execve is refused there, and so is mapping as code where mounts hold it")
	p.trees(x.Write)
	p.line("exec trees: may be executed; writing is refused there")
	p.trees(x.Exec)
	p.line("what separates them:")
	apart := "no tree is both, nor lies in one of the other kind"
	if len(x.Nested) > 0 {
		apart = "no tree is both; where one lies in another kind the inner one counts"
	}
	p.why("paths", apart+" (real paths, and inodes)")
	for _, n := range x.Nested {
		p.why("nested", fmt.Sprintf("%s in %s may only be %s: its own mount says so (%s)", p.path(n.Inner), p.path(n.Outer), n.Is, strings.Join(n.By, ", ")))
	}
	for _, s := range x.Symlinks {
		p.why("symlink", fmt.Sprintf("%s is %s, and that was compared  %s", p.path(s.Path), p.path(s.Real), s.At))
	}
	p.why("mounts", fmt.Sprintf("%d parts of file systems below these trees: no directory is seen in both kinds", x.Mounts))
	for _, o := range x.Overlays {
		p.why("overlay", p.path(o)+" is an overlay; its layers were compared as well")
	}
	p.why("hard links", r.linkWords(p))
	if r.Artifacts.Run == "seal" {
		p.why("crossing", "a written file executes only as a sealed copy, which no tree above lets anybody write (supervisor)")
	} else {
		p.why("crossing", "none: a written file never executes")
	}
}

func (r report) linkWords(p *page) string {
	l := r.Proof.HardLinks
	if len(l.Searched) == 0 {
		return "none can be there: no exec tree is on a file system with a write tree and yours to link from"
	}
	where := strings.Join(each(l.Searched, p.path), ", ")
	return fmt.Sprintf("looked through %s: %d files with several names, none of them in a write tree", where, l.Files)
}

func (p *page) trees(all []reportTree) {
	for _, t := range all {
		p.line("    %-54s %s (%s)", p.path(t.Path), t.At, strings.Join(t.By, ", "))
	}
}

func (p *page) why(what, words string) { p.line("    %-11s %s", what, oneLine(words)) }
