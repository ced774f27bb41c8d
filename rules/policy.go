package rules

import (
	"iter"
	"slices"
)

// Policy is the union of the rule files in play, proved to be well formed.
// Only [Parse] makes one.
type Policy struct {
	profiles []string
	grants   []Grant
	carves   []Carve
	seeds    []Seed
	caches   []Cache
	waivers  []Waiver
	network  Network
	noGuard  bool
	pass     []Pattern
	set      []Variable
	limits   []Limit
	options  []StartOption
	allow    []Named
	deny     []Named
	commands []Command
	locks    []Lock

	upgradesOff Origin
	artifact    Artifact
	guides      []Guide
}

// Grant allows Access on Path and all beneath it.
type Grant struct {
	Path   Path
	Access Access
	Create bool // the directory is made, mode 0700, if it is absent
	By     By
	From   Origin
}

// By tells whose rule it is.
type By int

// Whose rule it is.
const (
	ByUser      By = iota // a rule file or a flag
	ByToolchain           // a built-in profile for the system or a toolchain
	ByAgent               // a built-in profile of an agent: its own state
)

// Carve takes rights away inside a grant: writing, or with Hide everything.
type Carve struct {
	Path Path
	Hide bool
	From Origin
}

// Seed is a file copied once, at start, when its target is absent: state that
// a program keeps outside of what it may write.
type Seed struct {
	File, To Path
	From     Origin
}

// Cache is a directory that a toolchain fills and that may be lost. If it is
// there it may be written; if not, the program is pointed, by the environment
// variable, to one in the private TMPDIR, and HOME is left as it is.
type Cache struct {
	Dir      Path
	Variable string // its value, if set, counts instead of Dir
	// Private: Dir is left alone even if it is there. Where another rule lets it be
	// written, or another cache has the variable, this one does not count.
	Private bool
	From    Origin
}

// Waiver accepts the loss of promises that this host can't hold.
type Waiver struct {
	Name string
	From Origin
}

// Ports is a list of TCP ports; the zero value restricts nothing.
type Ports struct {
	Set  bool
	List []uint16
	From Origin
}

// Network says which sockets there are.
type Network struct {
	Connect, Bind Ports
	// UDP allows datagrams although ports are restricted (name resolution).
	UDP bool
	// Interfaces allows the netlink socket that lists interfaces and routes.
	Interfaces bool
	// UnixAny leaves sockets of the AF_UNIX family alone.
	UnixAny bool
	// Unix are sockets of the host that may be connected to.
	Unix []Grant
}

// Restricted tells whether TCP is limited to some ports.
func (n Network) Restricted() bool { return n.Connect.Set || n.Bind.Set }

// NoServers tells whether listen(2) is refused altogether. Without bind(2) it takes a
// free port, which Landlock does not check; a filter can't tell what kind of socket
// it is called on, nor whether that is bound.
func (n Network) NoServers() bool { return n.Bind.Set && len(n.Bind.List) == 0 && !n.UnixAny }

// Pattern names environment variables that are passed on; "*" matches any run
// of characters.
type Pattern struct {
	Text string
	By   By
	From Origin
}

// Variable is an environment variable that jail sets.
type Variable struct {
	Name  string
	Value Path // "~" and "${NAME}" are expanded at the start of the value
	From  Origin
}

// Limit is an upper bound on one process (setrlimit(2)).
type Limit struct {
	Name  string // "open_files", "file_size" (bytes), "cpu" (seconds), "memory" (bytes of address space)
	Value uint64
	From  Origin
}

// StartOption is what a program must be told to work inside jail; it is shown,
// never added behind the user's back.
type StartOption struct {
	Profile string
	Options []string
	Why     string
}

// Profiles names the profiles that took part, in order.
func (p Policy) Profiles() []string { return slices.Clone(p.profiles) }

// Grants yields every grant as it was written.
func (p Policy) Grants() iter.Seq[Grant] { return slices.Values(p.grants) }

// Carves yields every carve-out as it was written.
func (p Policy) Carves() iter.Seq[Carve] { return slices.Values(p.carves) }

// Seeds yields the files to copy at start.
func (p Policy) Seeds() iter.Seq[Seed] { return slices.Values(p.seeds) }

// Caches yields the directories that toolchains fill.
func (p Policy) Caches() iter.Seq[Cache] { return slices.Values(p.caches) }

// Waivers yields the accepted losses.
func (p Policy) Waivers() iter.Seq[Waiver] { return slices.Values(p.waivers) }

// Pass yields the patterns of environment variables that are passed on.
func (p Policy) Pass() iter.Seq[Pattern] { return slices.Values(p.pass) }

// Set yields the environment variables that are set.
func (p Policy) Set() iter.Seq[Variable] { return slices.Values(p.set) }

// Limits yields the lowest limit of each name.
func (p Policy) Limits() iter.Seq[Limit] { return slices.Values(p.limits) }

// Options yields what the chosen programs must be started with.
func (p Policy) Options() iter.Seq[StartOption] { return slices.Values(p.options) }

// Guard tells whether a run ends with a report on what it changed of the files
// that run on the host later.
func (p Policy) Guard() bool { return !p.noGuard }

// Network returns the merged network rules.
func (p Policy) Network() Network { return p.network }
