package attack

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Word is the name under which a program that links this package is an
// attacker: its argv[0], or the last part of it.
const Word = "jail-attack"

// Called tells whether a program was started as an attacker.
func Called(args []string) bool { return len(args) > 0 && filepath.Base(args[0]) == Word }

// The parts that it can play. All others are a program that does nothing, well.
const (
	attackRole = "attack"
	victimRole = "victim"
	echoRole   = "echo"   // prints its words
	touchRole  = "touch"  // makes a file
	asIsRole   = "as-is"  // is this the file itself, or a sealed copy?
	lookRole   = "look"   // is there a variable?
	createRole = "create" // makes a file, and says how that went

	readRole      = "read"      // reads a file
	traceRole     = "trace"     // traces a process
	becomeRole    = "become"    // as-is, in the place of the attacker
	handleRole    = "handle"    // becomes a program that it names by a handle
	whichRole     = "which"     // as-is, unless it is the second file: ENOENT
	interpretRole = "interpret" // as-is, for the interpreter of a script
)

// Main plays the part that the words name.
func Main(args []string) (status int) {
	if len(args) < 2 {
		if len(args) == 1 && args[0] == victimRole {
			playVictim()
		}
		return 0
	}
	switch args[0] {
	case attackRole:
		playAttacker(args[1:])
	case echoRole:
		fmt.Println(strings.Join(args[1:], "\n"))
	case touchRole:
		return answer(os.WriteFile(args[1], nil, 0o600))
	case createRole:
		return answer(create(args[1]))
	case asIsRole:
		return answer(asIs(args[1]))
	case readRole:
		return answer(readSome(args[1]))
	case traceRole:
		return answer(trace(args[1]))
	case handleRole:
		return answer(becomeHandle(args[1]))
	case becomeRole:
		fmt.Println(outcome(asIs(args[1])))
		fmt.Println(endLine)
	case whichRole:
		return answer(which(args[1], args[len(args)-1]))
	case interpretRole:
		return answer(asIs(os.Args[0]))
	case lookRole:
		return answer(present(args[1]))
	}
	return 0
}

// Part are the words with which a program is an attacker.
func Part(program, name string, w World) []string {
	text, err := json.Marshal(w)
	if err != nil {
		panic(err) // strings and numbers
	}
	return []string{program, attackRole, name, string(text)}
}

// playAttacker makes one attack and says how it went. The last line shows that
// nothing has ended the attacker before its time.
func playAttacker(args []string) {
	runtime.LockOSThread() // attacks change their thread
	var w World
	if err := json.Unmarshal([]byte(args[1]), &w); err != nil {
		fmt.Println("attacker:", err)
		return
	}
	all := All()
	i := slices.IndexFunc(all, func(a Attack) bool { return a.Name == args[0] })
	if i < 0 {
		fmt.Printf("attacker: no attack is called %q\n", args[0])
		return
	}
	fmt.Println(outcome(all[i].run(w)))
	fmt.Println(endLine)
}

const (
	okLine  = "RESULT ok"
	endLine = "END"
)

func outcome(err error) string {
	var e Errno
	switch {
	case err == nil:
		return okLine
	case errors.As(err, &e):
		return "RESULT errno=" + Name(e)
	}
	return "RESULT error=" + strings.ReplaceAll(err.Error(), "\n", " ")
}

// Parse reads the attacker's report: 0 is success. One that has not said that it
// came to its end was stopped by something else than a refusal.
func Parse(stdout string) (Errno, error) {
	lines := strings.Split(strings.TrimSpace(stdout), "\n")
	if len(lines) < 2 || lines[len(lines)-1] != endLine {
		return 0, errors.New("the attacker did not reach its end")
	}
	last := lines[len(lines)-2]
	if last == okLine {
		return 0, nil
	}
	name, ok := strings.CutPrefix(last, "RESULT errno=")
	if e := byName(name); ok && e != 0 {
		return e, nil
	}
	return 0, fmt.Errorf("the attacker failed for a reason of its own: %s", strings.TrimPrefix(last, "RESULT error="))
}

// Name is how an answer is written.
func Name(e Errno) string {
	switch e {
	case 0:
		return "success"
	case Sealed:
		return "sealed"
	}
	return unix.ErrnoName(e)
}

func byName(name string) Errno {
	if name == Name(Sealed) {
		return Sealed
	}
	for e := Errno(1); e < 200; e++ {
		if unix.ErrnoName(e) == name {
			return e
		}
	}
	return 0
}

// sealedStatus is the exit status for Sealed; errnos are their own.
const sealedStatus = 250

// answer is an exit status that says how it went.
func answer(err error) (status int) {
	var e Errno
	switch {
	case err == nil:
		return 0
	case errors.Is(err, Sealed):
		return sealedStatus
	case errors.As(err, &e):
		return int(e)
	}
	return sealedStatus + 1
}

// execute starts a copy of this program, in a part if one is named, and returns
// what it answers.
func execute(path string, part ...string) error {
	cmd := exec.Command(path, part...)
	cmd.Args[0] = Word
	return exitErrno(cmd.Run())
}

// refusedStatus is that of jail's runner, which says in words why it starts nothing.
const refusedStatus = 126

// exitErrno reads the answer of a program.
func exitErrno(err error) error {
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() <= 0 || exit.ExitCode() > sealedStatus {
		return err
	}
	switch exit.ExitCode() {
	case sealedStatus:
		return Sealed
	case refusedStatus:
		return unix.EACCES
	}
	return Errno(exit.ExitCode())
}

// asIs tells whether this process executes the very file at path.
func asIs(path string) error {
	var runs, file unix.Stat_t
	if err := errors.Join(unix.Stat("/proc/self/exe", &runs), unix.Stat(path, &file)); err != nil {
		return err
	}
	if runs.Dev != file.Dev || runs.Ino != file.Ino {
		return Sealed
	}
	return nil
}

// trace attaches to a process.
func trace(pid string) error {
	n, err := strconv.Atoi(pid)
	if err != nil {
		return err
	}
	runtime.LockOSThread()
	return unix.PtraceSeize(n) // the end of this process lets go
}

func which(written, other string) error {
	if asIs(other) == nil {
		return unix.ENOENT
	}
	return asIs(written)
}

// secretVariable holds the secret in the victim's environment.
const secretVariable = "VICTIM_SECRET"

// signalled is what a victim leaves in its working directory when a signal
// has reached it.
const signalled = "signalled"

// playVictim is a process with something to lose: the secret is in its memory,
// its environment and its descriptor 3. It lives until its input ends.
func playVictim() {
	// Under Yama only a tracer that was named may attach. What jail refuses
	// must not be refused by Yama already.
	_ = unix.Prctl(unix.PR_SET_PTRACER, ^uintptr(0), 0, 0, 0)
	got := make(chan os.Signal, 1)
	signal.Notify(got, unix.SIGUSR1)
	go func() {
		<-got
		_ = os.WriteFile(signalled, nil, 0o600)
	}()
	memory, err := unix.Mmap(-1, 0, os.Getpagesize(), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		fmt.Println(err)
		return
	}
	copy(memory, os.Getenv(secretVariable))
	fmt.Println(uintptr(unsafe.Pointer(&memory[0])))
	_, _ = io.Copy(io.Discard, os.Stdin)
}

// Victim starts a victim: program is a copy of one that is an attacker, dir its
// working directory, and secret the file that it has open and whose text it
// knows. It has a process group of its own. stop ends it.
func Victim(program, dir, secret string, env []string) (pid int, address uint64, stop func(), err error) {
	text, err := os.ReadFile(secret)
	if err != nil {
		return 0, 0, nil, err
	}
	file, err := os.Open(secret)
	if err != nil {
		return 0, 0, nil, err
	}
	defer file.Close()
	cmd := exec.Command(program, victimRole)
	cmd.Args[0], cmd.Dir = Word, dir
	cmd.Env = append(slices.Clone(env), secretVariable+"="+strings.TrimSpace(string(text)))
	cmd.ExtraFiles = []*os.File{file}
	cmd.SysProcAttr = &unix.SysProcAttr{Setpgid: true}
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return 0, 0, nil, err
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return 0, 0, nil, err
	}
	if err := cmd.Start(); err != nil {
		return 0, 0, nil, err
	}
	stop = func() {
		stdin.Close()
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if err == nil {
		_, err = fmt.Sscan(line, &address)
	}
	if err != nil {
		stop()
		return 0, 0, nil, fmt.Errorf("the victim does not start: %w", err)
	}
	return cmd.Process.Pid, address, stop, nil
}
