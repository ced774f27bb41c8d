package seccomp

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

// show prints the rules of some calls.
func show(rules []Rule, calls ...string) []string {
	var out []string
	for _, r := range rules {
		if !slices.Contains(calls, r.Call) {
			continue
		}
		s := r.Call + " " + unix.ErrnoName(r.Errno)
		for _, a := range r.Args {
			s += fmt.Sprintf(" %d&%#x==%#x", a.Index, a.Mask, a.Value)
		}
		out = append(out, s)
	}
	slices.Sort(out)
	return out
}

func TestCompile(t *testing.T) {
	rules := Compile(planOf(t, "", 7))
	for _, tt := range []struct {
		calls []string
		want  []string
	}{
		{[]string{"memfd_create", "memfd_secret", "clone3", "openat2", "io_uring_setup"}, []string{
			"clone3 ENOSYS", "io_uring_setup ENOSYS", "memfd_create ENOSYS", "memfd_secret ENOSYS", "openat2 ENOSYS",
		}},
		{[]string{"clone", "unshare"}, []string{
			"clone EPERM 0&0x10000000==0x10000000", "clone EPERM 0&0x20000000==0x20000000", "clone EPERM 0&0x2000000==0x2000000",
			"clone EPERM 0&0x20000==0x20000", "clone EPERM 0&0x40000000==0x40000000", "clone EPERM 0&0x4000000==0x4000000",
			"clone EPERM 0&0x8000000==0x8000000", "unshare EPERM",
		}},
		{[]string{"ioctl"}, []string{
			"ioctl EPERM 1&0xffffffff==0x5412", "ioctl EPERM 1&0xffffffff==0x541c", "ioctl EPERM 1&0xffffffff==0x541d", "ioctl EPERM 1&0xffffffff==0x5423", "ioctl EPERM 1&0xffffffff==0x8901", "ioctl EPERM 1&0xffffffff==0x8902",
		}},
		{[]string{"fchmod"}, []string{"fchmod EPERM 1&0x400==0x400", "fchmod EPERM 1&0x800==0x800"}},
		{[]string{"mknodat"}, []string{
			"mknodat EPERM 2&0x400==0x400", "mknodat EPERM 2&0x800==0x800", "mknodat EPERM 2&0xf000==0x2000", "mknodat EPERM 2&0xf000==0x6000",
		}},
		{[]string{"sendto", "sendmsg", "sendmmsg"}, nil},
	} {
		if d := cmp.Diff(tt.want, show(rules, tt.calls...)); d != "" {
			t.Error(d)
		}
	}
	want := []string{"sendmmsg EPERM 3&0x20000000==0x20000000", "sendmsg EPERM 2&0x20000000==0x20000000", "sendto EPERM 3&0x20000000==0x20000000"}
	if d := cmp.Diff(want, show(Compile(planOf(t, "network.connect = []", 7)), "sendto", "sendmsg", "sendmmsg")); d != "" {
		t.Error(d)
	}
}

// The zero plan, too, has a filter that refuses everything of the list.
func TestRulesAreWellFormed(t *testing.T) {
	for _, n := range networks() {
		seen := map[string]bool{}
		for _, r := range Compile(planOf(t, n.text, n.abi)) {
			if r.Errno == 0 || r.Errno > 4095 {
				t.Errorf("%s answers %d", r.Call, r.Errno)
			}
			for _, a := range r.Args {
				if a.Value&^a.Mask != 0 || a.Index > 5 || a.Mask == 0 || a.Mask>>32 != 0 {
					t.Errorf("%s: argument %+v never matches, always does, or compares more than an int", r.Call, a)
				}
			}
			key := strings.Join(show([]Rule{r}, r.Call), "")
			if seen[key] {
				t.Errorf("%q stands twice", key)
			}
			seen[key] = true
		}
	}
}

// except: for each width and set exactly the values that are not allowed match
// some argument.
func TestExcept(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	type set struct {
		width   int
		allowed []uint64
	}
	sets := []set{
		{6, []uint64{0}},
		{6, []uint64{1, 2, 10}},
		{6, []uint64{1, 2, 10, 16}},
		{4, []uint64{1, 2}},
		{9, []uint64{0, 6}},
		{9, []uint64{0, 6, 262}},
		{9, []uint64{0, 17}},
		{1, nil},
		{1, []uint64{0, 1}},
		{8, nil},
	}
	for range 200 {
		s := set{width: 1 + r.IntN(10)}
		for range r.IntN(6) {
			s.allowed = append(s.allowed, r.Uint64N(1<<s.width))
		}
		sets = append(sets, s)
	}
	for _, s := range sets {
		args := except(3, s.width, s.allowed...)
		for v := range uint64(1) << s.width {
			for _, high := range []uint64{0, 1 << s.width, 1 << 31, 0xdead << 40} {
				if got, want := matches(args, v|high), !slices.Contains(s.allowed, v); got != want {
					t.Fatalf("width %d, allowed %v: %#x refused %t", s.width, s.allowed, v|high, got)
				}
			}
		}
	}
}

func matches(args []Arg, v uint64) bool {
	return slices.ContainsFunc(args, func(a Arg) bool { return a.Index == 3 && v&a.Mask == a.Value })
}

// Every name is a call of this architecture or known not to be one: a typing
// error would drop a rule in silence.
func TestNamesResolve(t *testing.T) {
	absent := map[string][]string{
		"amd64": {"umount", "vm86", "vm86old", "stime"},
		"arm64": {
			"umount", "vm86", "vm86old", "stime", "create_module", "lookup_dcookie", "iopl", "ioperm", "sysfs", "ustat", "uselib", "_sysctl",
			"modify_ldt", "set_thread_area", "get_thread_area", "chmod", "creat", "mkdir", "mknod", "open", "nfsservctl",
		},
	}[runtime.GOARCH]
	missing := map[string]bool{}
	for _, r := range Compile(planOf(t, "network.connect = []", 7)) {
		if _, ok := number(r.Call); !ok {
			missing[r.Call] = true
		}
	}
	for _, name := range absent {
		delete(missing, name)
	}
	if len(missing) > 0 {
		t.Errorf("no such calls here: %v", missing)
	}
}

// The numbers that are written down agree with package unix.
func TestNewerNumbers(t *testing.T) {
	for name, want := range map[string]int{
		"quotactl_fd": unix.SYS_QUOTACTL_FD, "memfd_secret": 447, "process_mrelease": unix.SYS_PROCESS_MRELEASE,
		"set_mempolicy_home_node": unix.SYS_SET_MEMPOLICY_HOME_NODE, "fchmodat2": unix.SYS_FCHMODAT2, "statmount": unix.SYS_STATMOUNT,
		"listmount": unix.SYS_LISTMOUNT, "lsm_set_self_attr": unix.SYS_LSM_SET_SELF_ATTR, "open_tree_attr": unix.SYS_OPEN_TREE_ATTR,
		"file_setattr": 469, "read": 0,
	} {
		if got := newer(name); got != want {
			t.Errorf("%s: want %d, got %d", name, want, got)
		}
	}
}
