package supervise

import (
	"testing"
)

// hello is a program that is built inside.
const hello = `cat > hello.c <<'E'
#include <stdio.h>
int main(int argc, char **argv) { printf("hello %s\n", argc > 1 ? argv[1] : ""); return argc - 1; }
E
gcc -o hello hello.c
`

func TestProgram(t *testing.T) {
	c := newCell(t)
	c.want(c.shell(hello, "./hello one; echo $?; $PWD/hello; echo $?; exec ./hello"), "hello one\n1\nhello \n0\nhello \n")
}

func TestCallers(t *testing.T) {
	c := newCell(t)
	c.want(c.shell(hello, `node -e '
const cp=require("child_process");
console.log(cp.execFileSync("./hello",[]).toString().trim());
console.log(cp.execSync("./hello x || true").toString().trim());
const c=cp.spawn("./hello",[],{detached:true}); c.on("exit",(s)=>console.log("exit",s)); c.stdout.pipe(process.stdout)' 2>&1
python3 -c '
import subprocess,os
print(subprocess.call(["./hello","p"]), flush=True)
os.posix_spawn("./hello",["./hello"],os.environ); os.wait()
'`), "hello\nhello x\nhello \nexit 0\nhello p\n1\nhello \n")
}
