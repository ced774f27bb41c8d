package cli

import (
	"os/exec"
	"strings"

	"jail/rules"
)

// dpkgQuery is where Debian has it: looked up in PATH it could be another.
const dpkgQuery = "/usr/bin/dpkg-query"

// addPackages notes which Debian package has each file. It is for people who
// read the lock file; where there is no dpkg, nothing is noted.
func addPackages(entries []rules.Locked) {
	args := []string{"-S"}
	for _, e := range entries {
		args = append(args, e.Path, strings.TrimPrefix(e.Path, "/usr")) // /bin is /usr/bin, and the package may say either
	}
	owners, _ := exec.Command(dpkgQuery, args...).Output() // it fails if one path is in no package
	byPath := map[string]string{}
	for line := range strings.Lines(string(owners)) {
		pkg, path, ok := strings.Cut(strings.TrimSpace(line), ": ")
		if ok && !strings.HasPrefix(line, "diversion by ") {
			pkg, _, _ = strings.Cut(pkg, ", ")
			byPath[path] = pkg
		}
	}
	versions := packageVersions(byPath)
	for i, e := range entries {
		pkg := byPath[e.Path]
		if pkg == "" {
			pkg = byPath[strings.TrimPrefix(e.Path, "/usr")]
		}
		entries[i].Package, _, _ = strings.Cut(pkg, ":")
		entries[i].Version = versions[pkg]
	}
}

func packageVersions(byPath map[string]string) map[string]string {
	args := []string{"-W", "-f", "${binary:Package} ${Package} ${Version}\n"}
	for _, pkg := range byPath {
		args = append(args, pkg)
	}
	versions := map[string]string{}
	if len(byPath) == 0 {
		return versions
	}
	out, _ := exec.Command(dpkgQuery, args...).Output()
	for line := range strings.Lines(string(out)) {
		if f := strings.Fields(line); len(f) == 3 {
			versions[f[0]], versions[f[1]] = f[2], f[2]
		}
	}
	return versions
}
