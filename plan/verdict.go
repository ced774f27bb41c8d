package plan

import (
	"fmt"
	"path/filepath"
	"slices"
)

// RefusedCommand words the refusal of a path by a deny rule or the allow list: at is
// the rule. ok is false if neither is the cause.
func (p Plan) RefusedCommand(path string) (message string, at Origin, ok bool) {
	if len(p.Denied)+len(p.Allowed) == 0 {
		return "", Origin{}, false
	}
	v := newView()
	real, _, err := v.real(filepath.Clean(path))
	if err != nil {
		return "", Origin{}, false
	}
	n := v.lstat(real)
	id := n.id
	if d, ok := p.denied(id, real); ok {
		return d.Words(filepath.Base(path)), d.At, true
	}
	if a, why := p.explain(v, real); len(p.Allowed) == 0 || a&Exec != 0 || len(why) == 0 && !(n.mode.IsRegular() && p.shrunk(real)) {
		return "", Origin{}, false
	}
	at = p.Allowed[0].At
	at = Origin{File: at.File, Line: at.Line}
	message = fmt.Sprintf("%s is not in commands.allow (%s)", filepath.Base(path), at)
	if told := p.told(filepath.Base(path), id); told != "" {
		message += ": " + told
	}
	return message, at, true
}

// shrunk tells whether a real path lies in an exec tree of which the allow list has
// left some entries only.
func (p Plan) shrunk(real string) bool {
	return slices.ContainsFunc(p.grants, func(g Grant) bool {
		executed := slices.ContainsFunc(g.From, func(u Use) bool { return u.Access&Exec != 0 })
		return g.Split && executed && within(real, g.Path)
	})
}

// Words says that a denied command is, for whoever tried it under a name.
func (d Denied) Words(name string) string {
	message := fmt.Sprintf("%s is denied (%s)", name, d.At)
	if d.Of != "" && !d.Applet {
		message = fmt.Sprintf("%s is %s, which is denied (%s)", name, filepath.Base(d.Of), d.At)
	}
	if d.Message != "" {
		message += ": " + d.Message
	}
	return message
}

// refusedByCommand explains a refusal by a deny rule or by the allow list, nil
// if neither is the cause.
func (p Plan) refusedByCommand(path string) error {
	v := newView()
	real, _, err := v.real(filepath.Clean(path))
	if err != nil {
		return nil
	}
	id := v.lstat(real).id
	if d, ok := p.denied(id, real); ok {
		what := fmt.Sprintf("%q may not be executed: %q is denied (%s)", path, d.Text, d.At)
		switch {
		case d.Applet:
			what += ", and this has it built in"
		case d.Of != "":
			what += fmt.Sprintf(", and this is the same file or a copy of %q", d.Of)
		}
		return &Problem{What: what, Hint: hintOr(d.Message, "drop the rule if the command should run"), Status: statusRefused}
	}
	if len(p.Allowed) == 0 {
		return nil
	}
	at := p.Allowed[0].At
	return &Problem{
		What:   fmt.Sprintf("%q may not be executed: it is not in commands.allow (%s)", path, Origin{File: at.File, Line: at.Line}),
		Hint:   hintOr(p.told(filepath.Base(path), id), fmt.Sprintf("add %q to the list if it should run", filepath.Base(path))),
		Status: statusRefused,
	}
}

func hintOr(message, hint string) string {
	if message != "" {
		return message
	}
	return hint
}

func (p Plan) denied(id ID, real string) (Denied, bool) {
	for _, same := range []func(Denied) bool{
		func(d Denied) bool { return d.Path == real },
		func(d Denied) bool { return d.ID == id },
	} {
		if i := slices.IndexFunc(p.Denied, same); i >= 0 {
			return p.Denied[i], true
		}
	}
	return Denied{}, false
}

// told is the message of [[command]] for a file, "" if there is none.
func (p Plan) told(name string, id ID) string {
	for _, m := range p.Messages {
		if m.Name == name || m.ID == id {
			return m.Text
		}
	}
	return ""
}

// Deciding names the rule by which a path is executed: of the allow list, or the
// exec grant.
func (p Plan) Deciding(path string) string {
	a, why := p.Explain(path)
	if a&Exec == 0 {
		return ""
	}
	u := rule(why, Exec)
	for _, al := range p.Allowed {
		if al.At != u.At || al.Text != u.Text {
			continue
		}
		if real, _, err := newView().real(filepath.Clean(path)); err == nil && within(real, al.Path) {
			return fmt.Sprintf("%s: %q is allowed%s", u.At, u.Text, comesWith(al))
		}
	}
	return fmt.Sprintf("%s: exec %q", u.At, u.Text)
}

func comesWith(a Allowed) string {
	if a.For == "" {
		return ""
	}
	return ", and this is its " + a.For
}
