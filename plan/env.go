package plan

import (
	"path"
	"slices"
	"strings"

	"jail/rules"
)

// environment keeps the variables that a rule passes on and adds those that are
// set. TMPDIR is set at start.
func (c *compiler) environment() error {
	known := map[string]bool{"TMPDIR": true} // set at start, like Private
	for _, kv := range c.plan.Env {
		name, _, _ := strings.Cut(kv, "=")
		known[name] = true // a cache
	}
	for _, p := range c.plan.Private {
		known[p.Variable] = true
	}
	for _, kv := range c.host.Env {
		name, _, ok := strings.Cut(kv, "=")
		if !ok || known[name] {
			continue
		}
		if c.passes(name) {
			c.plan.Env = append(c.plan.Env, kv)
		} else {
			c.plan.Dropped = append(c.plan.Dropped, name)
		}
	}
	for v := range c.pol.Set() {
		value, ok := v.Value.Expand(c.host.Home, c.host.getenv)
		if !ok {
			continue
		}
		c.plan.Env = slices.DeleteFunc(c.plan.Env, func(kv string) bool { return strings.HasPrefix(kv, v.Name+"=") })
		c.plan.Env = append(c.plan.Env, v.Name+"="+value)
		c.plan.Dropped = slices.DeleteFunc(c.plan.Dropped, func(name string) bool { return name == v.Name })
		c.plan.Private = slices.DeleteFunc(c.plan.Private, func(p Private) bool { return p.Variable == v.Name })
	}
	slices.Sort(c.plan.Dropped)
	return nil
}

// passes tells whether some rule names the variable. A pattern never reaches
// one that makes programs load code: those must be written out.
func (c *compiler) passes(name string) bool { return len(c.passedBy(name)) > 0 }

// passedBy lists whose rules name the variable.
func (c *compiler) passedBy(name string) []rules.By {
	var by []rules.By
	for p := range c.pol.Pass() {
		ok := p.Text == name
		if !ok && strings.Contains(p.Text, "*") && !loadsCode(name) {
			ok, _ = path.Match(p.Text, name)
		}
		if ok {
			by = append(by, p.By)
		}
	}
	return by
}

// agentsOwn lists variables that only an agent's profile passes on: its keys and
// settings, whatever their names.
func (c *compiler) agentsOwn() []string {
	var names []string
	for _, kv := range c.plan.Env {
		name, _, _ := strings.Cut(kv, "=")
		by := c.passedBy(name)
		if len(by) > 0 && !slices.ContainsFunc(by, func(b rules.By) bool { return b != rules.ByAgent }) {
			names = append(names, name)
		}
	}
	return names
}

// loadsCode names variables through which a program that is started runs code
// of somebody else's choice. The list follows ld.so(8), bash(1) and the
// interpreters' manuals.
func loadsCode(name string) bool {
	for _, prefix := range []string{"LD_", "BASH_FUNC_", "GIT_CONFIG_", "DYLD_", "MALLOC_", "GLIBC_"} {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return slices.Contains([]string{
		"BASH_ENV", "ENV", "SHELLOPTS", "BASHOPTS", "PS4", "PROMPT_COMMAND",
		"PYTHONSTARTUP", "PYTHONPATH", "PYTHONHOME", "PYTHONINSPECT", "PERL5LIB", "PERL5OPT", "PERL5DB", "PERLLIB",
		"RUBYOPT", "RUBYLIB", "NODE_OPTIONS", "NODE_REPL_EXTERNAL_MODULE", "JAVA_TOOL_OPTIONS", "_JAVA_OPTIONS", "JDK_JAVA_OPTIONS",
		"GIT_SSH", "GIT_SSH_COMMAND", "GIT_ASKPASS", "GIT_EDITOR", "GIT_PAGER", "GIT_EXTERNAL_DIFF", "GIT_EXEC_PATH", "GIT_TEMPLATE_DIR",
		"SSH_ASKPASS", "LESSOPEN", "LESSCLOSE", "GCONV_PATH", "LOCPATH", "NLSPATH", "GTK_MODULES", "GTK_PATH", "QT_PLUGIN_PATH",
		"OPENSSL_CONF", "OPENSSL_MODULES", "OPENSSL_ENGINES", "RUSTC_WRAPPER", "TCLLIBPATH", "AWKPATH", "LUA_INIT", "LUA_PATH", "LUA_CPATH",
	}, name)
}
