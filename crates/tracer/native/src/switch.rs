//! Into translated code and out of it again.

use std::arch::global_asm;
use std::mem::offset_of;

use crate::context::Context;

unsafe extern "C" {
    /// Runs translated code from `context.target` until it is left. The context is this thread's, at
    /// its GS base.
    pub(crate) fn whither_enter(context: *mut Context);

    /// Where translated code goes to be left: not to be called.
    pub(crate) fn whither_leave();

    /// Makes a system call: its number and six arguments. If the word at `has_signal` is set, or gets
    /// set before the kernel is entered, it is not made, and `NOT_MADE` is the answer.
    pub(crate) fn whither_call(call: *const [u64; 7], has_signal: *const u64) -> i64;
    /// From here on a signal would come too late for `whither_call` to see it ...
    pub(crate) fn whither_call_from();
    /// ... to here, the instruction that enters the kernel included.
    pub(crate) fn whither_call_made();
    /// Where it goes instead.
    pub(crate) fn whither_call_not();

    /// Makes a process that has this one's memory and calls `child` with `argument`, which must not
    /// return, on what is left of this stack; the caller waits until it has become another program or
    /// ended. `call` is the system call that makes it. Gives the kernel's answer.
    pub(crate) fn whither_lend(
        call: *const [u64; 7],
        child: unsafe extern "C" fn(*mut libc::c_void) -> !,
        argument: *mut libc::c_void,
    ) -> i64;

    /// What the kernel calls for a signal.
    pub(crate) fn whither_signal(
        signal: i32,
        info: *mut libc::siginfo_t,
        context: *mut libc::c_void,
    );
    /// What the kernel returns to from there.
    pub(crate) fn whither_restore();
}

/// A system call that was not made.
pub(crate) const NOT_MADE: i64 = -512;

// Everything of the program is kept: nothing of ours may be seen by it. FS is the thread pointer of
// both C libraries in turn. Of vectors the halves beyond AVX are not the program's: it is told that
// there are none.
global_asm!(
    ".globl whither_enter",
    "whither_enter:",
    "push rbx", "push rbp", "push r12", "push r13", "push r14", "push r15",
    "mov gs:[{host_rsp}], rsp",
    "mov rcx, gs:[{vectors}]", "mov eax, 7", "xor edx, edx", "xrstor64 [rcx]",
    "push qword ptr gs:[{flags}]", "popfq",
    "mov rax, gs:[{guest_fs}]", "wrfsbase rax",
    "mov rax, gs:[{r} + 0]", "mov rcx, gs:[{r} + 8]", "mov rdx, gs:[{r} + 16]", "mov rbx, gs:[{r} + 24]",
    "mov rsp, gs:[{r} + 32]", "mov rbp, gs:[{r} + 40]", "mov rsi, gs:[{r} + 48]", "mov rdi, gs:[{r} + 56]",
    "mov r8, gs:[{r} + 64]", "mov r9, gs:[{r} + 72]", "mov r10, gs:[{r} + 80]", "mov r11, gs:[{r} + 88]",
    "mov r12, gs:[{r} + 96]", "mov r13, gs:[{r} + 104]", "mov r14, gs:[{r} + 112]", "mov r15, gs:[{r} + 120]",
    "jmp qword ptr gs:[{target}]",

    ".globl whither_leave",
    "whither_leave:",
    "mov gs:[{r} + 0], rax", "mov gs:[{r} + 8], rcx", "mov gs:[{r} + 16], rdx", "mov gs:[{r} + 24], rbx",
    "mov gs:[{r} + 32], rsp", "mov gs:[{r} + 40], rbp", "mov gs:[{r} + 48], rsi", "mov gs:[{r} + 56], rdi",
    "mov gs:[{r} + 64], r8", "mov gs:[{r} + 72], r9", "mov gs:[{r} + 80], r10", "mov gs:[{r} + 88], r11",
    "mov gs:[{r} + 96], r12", "mov gs:[{r} + 104], r13", "mov gs:[{r} + 112], r14", "mov gs:[{r} + 120], r15",
    "mov rsp, gs:[{host_rsp}]",
    "pushfq", "pop qword ptr gs:[{flags}]", "cld",
    // A program that has unaligned accesses trap does so for itself.
    "test dword ptr gs:[{flags}], 0x40000", "jz 3f", "push 0x202", "popfq", "3:",
    "rdfsbase rax", "mov gs:[{guest_fs}], rax",
    "mov rax, gs:[{host_fs}]", "wrfsbase rax",
    "mov rcx, gs:[{vectors}]", "mov eax, 7", "xor edx, edx", "xsave64 [rcx]",
    "vzeroupper", "fninit", "ldmxcsr [rip + 2f]",
    "pop r15", "pop r14", "pop r13", "pop r12", "pop rbp", "pop rbx",
    "ret",
    "2: .long 0x1f80",

    ".globl whither_call", ".globl whither_call_from", ".globl whither_call_made", ".globl whither_call_not",
    "whither_call:",
    "push rbx", "push r12",
    "mov rbx, rdi", "mov r12, rsi",
    "mov rdi, [rbx + 8]", "mov rsi, [rbx + 16]", "mov rdx, [rbx + 24]",
    "mov r10, [rbx + 32]", "mov r8, [rbx + 40]", "mov r9, [rbx + 48]",
    "whither_call_from:",
    "cmp qword ptr [r12], 0", "jne whither_call_not",
    "mov rax, [rbx]",
    "syscall",
    "whither_call_made:",
    "pop r12", "pop rbx", "ret",
    "whither_call_not:",
    "mov rax, {not_made}",
    "pop r12", "pop rbx", "ret",

    // Parent and child have one stack. The child only writes below where it begins.
    ".globl whither_lend",
    "whither_lend:",
    "push rbx", "push r12", "push r13",
    "mov rbx, rdi", "mov r12, rsi", "mov r13, rdx",
    "mov rdi, [rbx + 8]", "mov rsi, [rbx + 16]", "mov rdx, [rbx + 24]",
    "mov r10, [rbx + 32]", "mov r8, [rbx + 40]", "mov r9, [rbx + 48]",
    "mov rax, [rbx]",
    "syscall",
    "test rax, rax", "jz 2f",
    "pop r13", "pop r12", "pop rbx", "ret",
    "2:",
    "mov rdi, r13", "call r12", "ud2",

    // The handler runs with our thread pointer, whichever was in place.
    ".globl whither_signal", ".globl whither_restore",
    "whither_signal:",
    "push rbx", "rdfsbase rbx",
    "mov rax, gs:[{host_fs}]", "wrfsbase rax",
    "call {on_signal}",
    "wrfsbase rbx", "pop rbx",
    "ret",
    "whither_restore:",
    "mov eax, 15", "syscall",
    r = const offset_of!(Context, registers),
    flags = const offset_of!(Context, flags),
    host_rsp = const offset_of!(Context, host_rsp),
    host_fs = const offset_of!(Context, host_fs),
    guest_fs = const offset_of!(Context, guest_fs),
    target = const offset_of!(Context, target),
    vectors = const offset_of!(Context, vectors),
    not_made = const NOT_MADE,
    on_signal = sym crate::signals::on_signal,
);
