// Where the kernel starts a program that links this package.

	.text
	.globl jailstart
	.type jailstart, @function
jailstart:
	mov %rsp, %rdi
	push %rdx // what the C library is to call at exit
	push %rdx // twice: calls are made from a multiple of 16
	call jail_runner
	pop %rdx
	pop %rdx
	jmp _start
	.size jailstart, . - jailstart

	// The arguments of a C function, one place further.
	.globl jail_call
	.type jail_call, @function
jail_call:
	mov %rdi, %rax
	mov %rsi, %rdi
	mov %rdx, %rsi
	mov %rcx, %rdx
	mov %r8, %r10
	mov %r9, %r8
	mov 8(%rsp), %r9
	syscall
	ret
	.size jail_call, . - jail_call

	.section .note.GNU-stack, "", @progbits
