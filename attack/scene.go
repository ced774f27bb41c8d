package attack

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// NewKit makes a kit in dir, of copies of a program that is an attacker.
func NewKit(dir, program string) (Kit, error) {
	k := Kit{Tools: filepath.Join(dir, "tools"), Program: filepath.Join(dir, "programs", "program"), Readable: filepath.Join(dir, "readable")}
	k.Denied = filepath.Join(k.Tools, "denied")
	for _, dir := range []string{k.Tools, filepath.Dir(k.Program), k.Readable} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return k, err
		}
	}
	text, err := os.ReadFile(program)
	if err != nil {
		return k, err
	}
	// Other bytes, or what is denied would be the attacker itself.
	denied := append(append([]byte{}, text...), "denied"...)
	programs := map[string][]byte{
		k.Attacker(): text, k.tool("spare"): text, k.Program: text, k.readable("program"): text,
		k.tool("idle"): text, // to write to: the others run
		k.Denied:       denied, k.readable("denied"): denied, k.readable("note"): []byte("note\n"),
	}
	for name, elf := range tinyPrograms() {
		programs[k.tool(name)] = elf
	}
	for path, text := range programs {
		if err := os.WriteFile(path, text, 0o755); err != nil {
			return k, err
		}
	}
	return k, os.Link(k.Denied, k.tool("renamed"))
}

func (k Kit) tool(name string) string { return filepath.Join(k.Tools, name) }

// Attacker is the copy that makes attacks.
func (k Kit) Attacker() string { return k.tool(Word) }

// readable returns a path that may be read and not written.
func (k Kit) readable(name string) string { return filepath.Join(k.Readable, name) }

// NewWorld makes a scratch home in base, with a project in it and things that a
// jail must not reach.
func NewWorld(base string, k Kit) (World, error) {
	home := filepath.Join(base, "home")
	w := World{
		Kit: k, Home: home, Project: filepath.Join(home, "project"), Outside: filepath.Join(home, "outside"),
		Secret: filepath.Join(home, ".ssh", "id_test"), Temp: filepath.Join(base, "tmp"), State: filepath.Join(base, "state"),
	}
	for _, dir := range []string{w.Temp, w.Project, w.Outside, filepath.Dir(w.Secret), w.in(".git/objects"), w.in(".git/refs")} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return World{}, err
		}
	}
	files := map[string]string{
		w.Secret: "secret-" + random() + "\n", filepath.Join(home, ".gitconfig"): "# none\n",
		w.in("README.md"): "# project\n", w.in(".git/HEAD"): "ref: refs/heads/main\n", w.in(".git/config"): "[core]\n",
	}
	if err := writeFiles(files); err != nil {
		return World{}, err
	}
	return w.Furnish()
}

// Furnish adds what attacks need besides a kit, a home, a repository and a secret.
func (w World) Furnish() (World, error) {
	for _, dir := range []string{w.State, w.out("empty"), w.in("protected/open"), w.in("hidden/open"), w.in(".git/hooks")} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return w, err
		}
	}
	secret, err := os.ReadFile(w.Secret)
	if err != nil {
		return w, err
	}
	w.Shared = map[string]string{}
	for _, dir := range []string{"/tmp", "/var/tmp", "/dev/shm"} {
		w.Shared[dir] = identity(dir)
	}
	return w, writeFiles(map[string]string{
		w.out("old"): "old\n", w.in("protected/kept"): "kept\n",
		w.in("hidden/secret"): string(secret), w.in("hidden/open/note"): "note\n",
	})
}

func random() string {
	b := make([]byte, 12)
	_, _ = rand.Read(b) // never fails
	return hex.EncodeToString(b)
}

func writeFiles(files map[string]string) error {
	for path, text := range files {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			return err
		}
	}
	return nil
}

// Rules is a rule file that lets the attacker run and names what it attacks in
// the scratch project. It widens nothing outside of it. allow is set where other
// rules have a list of commands, carves where carve-outs can be held.
func (w World) Rules(a Attack, allow, carves bool) string {
	var b strings.Builder
	list := func(key string, paths ...string) {
		quoted := make([]string, len(paths))
		for i, p := range paths {
			quoted[i] = fmt.Sprintf("%q", p)
		}
		fmt.Fprintf(&b, "%s = [%s]\n", key, strings.Join(quoted, ", "))
	}
	b.WriteString("version = 1\n[files]\n")
	list("exec", w.Tools)
	if carves {
		list("read", w.Readable, w.in("hidden/open"))
		list("write", w.State, w.in("protected/open"))
		list("protect", w.in("protected"), w.in(".git/hooks"), w.in(".git/config"))
		list("hide", w.in("hidden"))
	} else {
		list("read", w.Readable)
		list("write", w.State)
	}
	b.WriteString("[commands]\n")
	list("deny", w.Denied)
	if allow {
		programs := []string{w.Attacker(), w.tool("spare")}
		for name := range tinyPrograms() {
			programs = append(programs, w.tool(name))
		}
		list("allow", programs...)
	}
	b.WriteString("[artifact.env]\n")
	list("drop", "JAIL_ATTACK_*")
	return b.String() + a.Rules
}

// Neighbours are services on this host, outside of any jail.
type Neighbours struct {
	tcp, udp         int
	stream, datagram string
	abstract         string
	open             []interface{ Close() error }
}

// NewNeighbours has them listen, in dir where they have a path.
func NewNeighbours(dir string) (*Neighbours, error) {
	n := &Neighbours{
		stream: filepath.Join(dir, "stream"), datagram: filepath.Join(dir, "datagram"), abstract: "@jail-attack-" + random(),
	}
	tcp, err1 := net.Listen("tcp4", "127.0.0.1:0")
	udp, err2 := net.ListenPacket("udp4", "127.0.0.1:0")
	stream, err3 := net.Listen("unix", n.stream)
	abstract, err4 := net.Listen("unix", n.abstract)
	datagram, err5 := net.ListenPacket("unixgram", n.datagram)
	other, err6 := net.ListenPacket("unixgram", n.abstract+"-datagram")
	if err := errors.Join(err1, err2, err3, err4, err5, err6); err != nil {
		return nil, err
	}
	n.tcp, n.udp = tcp.Addr().(*net.TCPAddr).Port, udp.LocalAddr().(*net.UDPAddr).Port
	n.open = []interface{ Close() error }{tcp, udp, stream, abstract, datagram, other}
	return n, nil
}

// Close ends them.
func (n *Neighbours) Close() {
	for _, c := range n.open {
		_ = c.Close()
	}
}

// With tells an attacker of its neighbours.
func (w World) With(n *Neighbours) World {
	w.TCP, w.UDP, w.Stream, w.Datagram, w.Abstract = n.tcp, n.udp, n.stream, n.datagram, n.abstract
	return w
}

// Inherited opens what a careless parent leaves open; see [FirstInherited].
func (w World) Inherited() (files []*os.File, err error) {
	dir, err1 := os.Open(w.Outside)
	secret, err2 := os.Open(w.Secret)
	pair, err3 := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err := errors.Join(err1, err2, err3); err != nil {
		return nil, err
	}
	return []*os.File{dir, secret, os.NewFile(uintptr(pair[0]), "socket"), os.NewFile(uintptr(pair[1]), "peer")}, nil
}
