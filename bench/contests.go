package main

import (
	"os"
	"os/exec"
	"slices"
)

// contests lists what is compared: start-up, then work of kinds that agents do all day.
func contests(p place, jail string, rounds int) ([]contest, error) {
	exec1, err := p.buildExec1()
	if err != nil {
		return nil, err
	}
	truth, err := exec.LookPath("true")
	if err != nil {
		return nil, err
	}
	denied, allowed, err := p.commandRules(jail)
	if err != nil {
		return nil, err
	}
	start := contest{command: "start-up of true", rounds: rounds, contenders: append(starters(jail, exec1, truth),
		contender{"jail --waive mounts, git denied", []string{jail, "--waive", "mounts", "--rules", denied, truth}},
		contender{"jail --waive mounts, 20 commands allowed and locked", []string{jail, "--waive", "mounts", "--rules", allowed, truth}},
	)}
	list := append([]contest{start}, work(p, jail, max(3, rounds/20))...)
	built, err := builtPrograms(p, jail, max(3, rounds/20))
	return append(list, built...), err
}

func starters(jail, exec1, truth string) []contender {
	list := []contender{
		{"bare", []string{truth}},
		{"a static Go program that execs", []string{exec1, truth}},
		{"jail --waive mounts", []string{jail, "--waive", "mounts", truth}},
		{"jail", []string{jail, truth}},
	}
	if bwrap, err := exec.LookPath("bwrap"); err == nil {
		list = append(list, contender{
			"bwrap --ro-bind / / --dev /dev --proc /proc",
			[]string{bwrap, "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", truth},
		})
	}
	if landrun := findLandrun(); landrun != "" {
		list = append(list, contender{
			"landrun --rox /usr --ro /etc --rw /dev/null",
			[]string{landrun, "--rox", "/usr", "--ro", "/etc", "--rw", "/dev/null", truth},
		})
	}
	return list
}

func findLandrun() string {
	if file := os.Getenv("LANDRUN"); file != "" {
		return file
	}
	file, err := exec.LookPath("landrun")
	if err != nil {
		return ""
	}
	return file
}

// work repeats short commands in one shell, so that jail's own start hardly counts.
func work(p place, jail string, rounds int) []contest {
	list := []contest{
		inAndOut(jail, "go build, 8 packages and the link", "go build -o out ."),
		inAndOut(jail, "git status, 20 times", "for i in $(seq 20); do git status >/dev/null; done"),
		inAndOut(jail, "find /usr/share -type f", "find /usr/share -type f >/dev/null 2>&1 || :"),
		inAndOut(jail, "300 short processes", "for i in $(seq 300); do /bin/true; done"),
	}
	return builds(p, list, rounds)
}

// builds are contests of which the first compiles the project anew each time.
func builds(p place, list []contest, rounds int) []contest {
	for i := range list {
		list[i].rounds = rounds
	}
	list[0].prepare = func(turn int) error { return p.edit(turn + 1) }
	return list
}

// builtPrograms are what only runs sealed: tests are built anew each time, as an
// agent's are, and one program runs often.
func builtPrograms(p place, jail string, rounds int) ([]contest, error) {
	if err := p.buildHello(); err != nil {
		return nil, err
	}
	list := []contest{
		sealed(jail, "go test, 8 packages, built anew", "go test ./..."),
		sealed(jail, "100 runs of a program that was built there", "for i in $(seq 100); do ./hello; done"),
	}
	if _, err := exec.LookPath("npm"); err == nil {
		list = append(list, sealed(jail, "npm test, 40 files by node --test", "npm test"))
	}
	return builds(p, list, rounds), nil
}

func sealed(jail, name, script string) contest {
	c := inAndOut(jail, name, script)
	c.contenders = slices.DeleteFunc(c.contenders, func(d contender) bool { return slices.Contains(d.argv, "--waive") })
	return c
}

func inAndOut(jail, name, script string) contest {
	sh := []string{"sh", "-c", script}
	return contest{command: name, contenders: []contender{
		{"bare", sh},
		{"jail --waive mounts", append([]string{jail, "--waive", "mounts"}, sh...)},
		{"jail", append([]string{jail}, sh...)},
	}}
}
