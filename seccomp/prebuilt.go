package seccomp

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"hash"
	"runtime"
)

// prebuilt holds programs that Assemble made, one for each set of rules that a
// plan leads to on amd64. Assembling takes longer than all the rest of a start.
//
//go:embed prebuilt/*.bpf
var prebuilt embed.FS

// Program returns the BPF of rules: the prebuilt one if there is one for these
// very rules, else what libseccomp makes of them now. The name of a prebuilt
// program is the digest of its rules and of how they are assembled; a test
// assembles each again and compares.
func Program(rules []Rule) ([]byte, error) {
	if prog, err := prebuilt.ReadFile(prebuiltName(rules)); err == nil {
		return prog, nil
	}
	return Assemble(rules)
}

// assembly names what Assemble adds to the rules. Change it with that.
const assembly = "foreign architectures ENOSYS; openat, ioctl first"

func prebuiltName(rules []Rule) string {
	sum := sha256.New()
	fmt.Fprintln(sum, assembly)
	for _, r := range rules {
		r.digest(sum)
	}
	return "prebuilt/" + runtime.GOARCH + "-" + hex.EncodeToString(sum.Sum(nil)[:16]) + ".bpf"
}

func (r Rule) digest(sum hash.Hash) {
	fmt.Fprintf(sum, "%s %d", r.Call, r.Errno)
	if r.Notify {
		fmt.Fprint(sum, " notify")
	}
	for _, a := range r.Args {
		fmt.Fprintf(sum, " %d&%x=%x", a.Index, a.Mask, a.Value)
	}
	fmt.Fprintln(sum)
}
