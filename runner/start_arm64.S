// Where the kernel starts a program that links this package.

	.text
	.globl jailstart
	.type jailstart, %function
jailstart:
	mov x19, x0 // what the C library is to call at exit
	mov x0, sp
	bl jail_runner
	mov x0, x19
	b _start
	.size jailstart, . - jailstart

	// The arguments of a C function, one place further.
	.globl jail_call
	.type jail_call, %function
jail_call:
	mov x8, x0
	mov x0, x1
	mov x1, x2
	mov x2, x3
	mov x3, x4
	mov x4, x5
	mov x5, x6
	svc #0
	ret
	.size jail_call, . - jail_call

	.section .note.GNU-stack, "", %progbits
