package seccomp

import (
	"encoding/binary"
	"fmt"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"

	"jail/internal/testenv"
	"jail/plan"
	"jail/rules"
)

// call is what a filter sees: struct seccomp_data.
type call struct {
	nr   uint32
	arch uint32
	args [6]uint64
}

func (c call) load(off uint32) (uint32, error) {
	var data [64]byte
	binary.LittleEndian.PutUint32(data[0:], c.nr)
	binary.LittleEndian.PutUint32(data[4:], c.arch)
	for i, a := range c.args {
		binary.LittleEndian.PutUint64(data[16+8*i:], a)
	}
	if off%4 != 0 || off > 60 {
		return 0, fmt.Errorf("load at %d", off)
	}
	return binary.LittleEndian.Uint32(data[off:]), nil
}

// program is classic BPF, decoded.
type program []unix.SockFilter

func decode(t testing.TB, text []byte) program {
	t.Helper()
	if len(text)%unix.SizeofSockFilter != 0 {
		t.Fatalf("%d bytes are no program", len(text))
	}
	var p program
	for i := 0; i < len(text); i += 8 {
		p = append(p, unix.SockFilter{
			Code: binary.NativeEndian.Uint16(text[i:]), Jt: text[i+2], Jf: text[i+3], K: binary.NativeEndian.Uint32(text[i+4:]),
		})
	}
	return p
}

// run interprets the program, as far as seccomp programs need it.
func (p program) run(c call) (uint32, error) {
	var a, x uint32
	var mem [unix.BPF_MEMWORDS]uint32
	for pc := 0; pc < len(p); pc++ {
		in := p[pc]
		operand := in.K
		if in.Code&unix.BPF_X != 0 {
			operand = x
		}
		jump := func(yes bool) {
			if yes {
				pc += int(in.Jt)
			} else {
				pc += int(in.Jf)
			}
		}
		var err error
		switch in.Code {
		case unix.BPF_LD | unix.BPF_W | unix.BPF_ABS:
			a, err = c.load(in.K)
		case unix.BPF_LD | unix.BPF_IMM:
			a = in.K
		case unix.BPF_LD | unix.BPF_MEM:
			a = mem[in.K]
		case unix.BPF_ST:
			mem[in.K] = a
		case unix.BPF_MISC | unix.BPF_TAX:
			x = a
		case unix.BPF_MISC | unix.BPF_TXA:
			a = x
		case unix.BPF_ALU | unix.BPF_AND | unix.BPF_K, unix.BPF_ALU | unix.BPF_AND | unix.BPF_X:
			a &= operand
		case unix.BPF_JMP | unix.BPF_JA:
			pc += int(in.K)
		case unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_X:
			jump(a == operand)
		case unix.BPF_JMP | unix.BPF_JGT | unix.BPF_K, unix.BPF_JMP | unix.BPF_JGT | unix.BPF_X:
			jump(a > operand)
		case unix.BPF_JMP | unix.BPF_JGE | unix.BPF_K, unix.BPF_JMP | unix.BPF_JGE | unix.BPF_X:
			jump(a >= operand)
		case unix.BPF_JMP | unix.BPF_JSET | unix.BPF_K, unix.BPF_JMP | unix.BPF_JSET | unix.BPF_X:
			jump(a&operand != 0)
		case unix.BPF_RET | unix.BPF_K:
			return in.K, nil
		case unix.BPF_RET | unix.BPF_A:
			return a, nil
		default:
			return 0, fmt.Errorf("instruction %d: code %#x", pc, in.Code)
		}
		if err != nil {
			return 0, err
		}
	}
	return 0, fmt.Errorf("the program has no end")
}

// action is the answer to a call: "allow" or the errno's name.
func (p program) action(t testing.TB, c call) string {
	t.Helper()
	ret, err := p.run(c)
	if err != nil {
		t.Fatalf("%+v: %v", c, err)
	}
	switch ret & unix.SECCOMP_RET_ACTION_FULL {
	case unix.SECCOMP_RET_ALLOW:
		return "allow"
	case unix.SECCOMP_RET_ERRNO:
		return unix.ErrnoName(unix.Errno(ret & unix.SECCOMP_RET_DATA))
	}
	return fmt.Sprintf("%#x", ret)
}

func arch(t testing.TB) uint32 {
	t.Helper()
	switch runtime.GOARCH {
	case "amd64":
		return unix.AUDIT_ARCH_X86_64
	case "arm64":
		return unix.AUDIT_ARCH_AARCH64
	}
	testenv.Need(t, "a known architecture", fmt.Errorf("this is %s", runtime.GOARCH))
	return 0
}

// on makes the call of a name on this architecture.
func on(t testing.TB, name string, args ...uint64) call {
	t.Helper()
	nr, ok := number(name)
	if !ok {
		t.Fatalf("there is no call %s here", name)
	}
	c := call{nr: uint32(nr), arch: arch(t)}
	copy(c.args[:], args)
	return c
}

func assemble(t testing.TB, text string, abi int) program {
	t.Helper()
	prog, err := Assemble(Compile(planOf(t, text, abi)))
	if err != nil {
		t.Fatal(err)
	}
	return decode(t, prog)
}

func planOf(t testing.TB, text string, abi int) plan.Plan {
	t.Helper()
	pol, err := rules.Parse(rules.Input{Sources: []rules.Source{{Kind: rules.RulesFile, Name: "f", Text: []byte("profiles = []\n" + text)}}})
	if err != nil {
		t.Fatal(err)
	}
	return plan.Plan{Network: pol.Network(), ABI: abi}
}

// networks are the rule files that change the filter, each with an ABI.
func networks() []struct {
	text string
	abi  int
} {
	return []struct {
		text string
		abi  int
	}{
		{"", 7},
		{"", 9},
		{`network.unix = "any"`, 7},
		{"network.interfaces = true", 7},
		{"network.connect = [443]", 7},
		{"network = { bind = [], udp = true, interfaces = true, unix = 'any' }", 4},
		{"network.udp = true", 1},
	}
}
