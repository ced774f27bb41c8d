package seccomp

import libseccomp "github.com/seccomp/libseccomp-golang"

// Refusing finds the rule that refuses a call with these arguments; for telling
// why, never for deciding.
func Refusing(rules []Rule, number int, args [6]uint64) (Rule, bool) {
	name, err := libseccomp.ScmpSyscall(number).GetName()
	if err != nil {
		return Rule{}, false
	}
	for _, r := range rules {
		if r.Call == name && !r.Notify && r.matches(args) {
			return r, true
		}
	}
	return Rule{}, false
}

func (r Rule) matches(args [6]uint64) bool {
	for _, a := range r.Args {
		if args[a.Index]&a.Mask != a.Value {
			return false
		}
	}
	return true
}
