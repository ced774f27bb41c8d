package cli

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"

	"jail/advice"
	"jail/plan"
)

// pathAnswer is the answer of `jail why PATH`.
type pathAnswer struct {
	Version int             `json:"version"`
	Path    string          `json:"path"`
	Secret  bool            `json:"secret,omitempty"`
	Access  []advice.Answer `json:"access"`
}

// whyPath explains what may be done at a path.
func (a app) whyPath(o options, name string) error {
	p, err := compile(o, "", probe)
	if err != nil {
		return err
	}
	if !filepath.IsAbs(name) {
		name = filepath.Join(p.Cwd, name)
	}
	places := placesOf(p.Home, p.Tree.Root)
	answer := pathAnswer{Version: 1, Path: filepath.Clean(name), Secret: places.Secret(name), Access: advice.At(p, places, name)}
	if o.json {
		enc := json.NewEncoder(a.stdout)
		enc.SetIndent("", "  ")
		return enc.Encode(answer)
	}
	_, err = fmt.Fprint(a.stdout, printable(answer.text(p)))
	return err
}

func (w pathAnswer) text(p plan.Plan) string {
	b := &page{home: p.Home}
	fmt.Fprintln(b, b.path(w.Path))
	for _, one := range w.Access {
		word := "no"
		if one.Allowed {
			word = "yes"
		}
		b.line("%-6s %-4s %s", one.Access, word, oneLine(strings.TrimSuffix(one.Why, "; "+advice.OfSecret)))
		if one.At != "" {
			b.line("            %s", oneLine(one.At))
		}
		if one.Allow != nil {
			b.line("            allow: %s", oneLine(one.Allow.String()))
		}
	}
	if w.Secret {
		b.line("%s", advice.OfSecret)
	}
	return b.String()
}
