//! Programs that use GS, which the native engine has in use itself.

#![allow(clippy::unwrap_used, reason = "a failure here is the test failing")]

mod planted;

use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;

use model::stream::{Access, BlockId, CoreListener, StaticBlock};
use planted::{assemble, compile, engines, unharmed};
use tracer::launch::{EngineChoice, Launch, can_run_natively};
use tracer::results::ProcessKey;
use tracer::settings::Listener;
use tracer::stream::{InstructionStream, Recorded};
use tracer::trace::Audience;

#[test]
fn a_program_finds_in_gs_what_it_put_there() {
    let source = r#"
        #define _GNU_SOURCE
        #include <errno.h>
        #include <pthread.h>
        #include <setjmp.h>
        #include <signal.h>
        #include <stdint.h>
        #include <stdlib.h>
        #include <sys/syscall.h>
        #include <sys/wait.h>
        #include <ucontext.h>
        #include <unistd.h>
        enum { SET_GS = 0x1001, SET_FS = 0x1002, GET_GS = 0x1004 };
        static uint64_t first[64], second[64];
        static long base(void) { uint64_t got; if (syscall(SYS_arch_prctl, GET_GS, &got)) exit(90); return got; }
        static int check(uint64_t *own) {
            if (base() != (long)own) return 1;
            uint64_t rax, rbx = 16, index = 3, flags;
            own[1] = 11; own[5] = 55; own[7] = 7;
            __asm__ volatile("mov %%gs:8,%0" : "=r"(rax));
            if (rax != 11) return 2;
            /* Base, index and displacement; flags of before stay. */
            __asm__ volatile("stc\n mov %%gs:(%2,%3,8),%0\n pushfq\n pop %1"
                : "=&r"(rax), "=&r"(flags) : "r"(rbx), "r"(index) : "cc");
            if (rax != 55 || !(flags & 1)) return 3;
            __asm__ volatile("movq $77,%%gs:0x38\n lock incq %%gs:0x38\n addq $2,%%gs:0x38" ::: "memory", "cc");
            if (own[7] != 80) return 4;
            __asm__ volatile("push %%gs:0x38\n pop %0" : "=r"(rax) :: "memory");
            if (rax != 80) return 5;
            uint64_t a = 80, d = 81;
            __asm__ volatile("lock cmpxchg %2,%%gs:0x38" : "+a"(a), "+m"(own[7]) : "r"(d) : "cc");
            if (own[7] != 81) return 6;
            __asm__ volatile("movdqu %%gs:0x30,%%xmm3\n movdqu %%xmm3,%%gs:0x60" ::: "xmm3", "memory");
            if (own[13] != 81) return 7;
            /* The address alone knows no segment. */
            __asm__ volatile("lea %%gs:8(%1),%0" : "=r"(rax) : "r"(rbx));
            if (rax != 24) return 8;
            return 0;
        }
        static int called; static void procedure(void) { called++; }
        static void *thread(void *unused) {
            (void)unused;
            if (check(first)) return (void *)1;
            if (syscall(SYS_arch_prctl, SET_GS, second) || check(second)) return (void *)2;
            return 0;
        }
        static sigjmp_buf back; static volatile long fault_at, rcx_then;
        static void on_fault(int s, siginfo_t *info, void *context) {
            (void)s; fault_at = (long)info->si_addr;
            rcx_then = ((ucontext_t *)context)->uc_mcontext.gregs[REG_RCX];
            siglongjmp(back, 1);
        }
        int main(void) {
            if (base() != 0) return 10;
            if (syscall(SYS_arch_prctl, SET_GS, first)) return 11;
            int wrong = check(first);
            if (wrong) return 20 + wrong;
            first[20] = (uint64_t)procedure;
            __asm__ volatile("sub $136,%%rsp\n call *%%gs:160\n call *%%gs:(%0)\n add $136,%%rsp"
                : : "b"(160L) : "rax", "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11", "memory", "cc");
            if (called != 2) return 12;
            pthread_t other; void *said = 0;
            if (pthread_create(&other, 0, thread, 0) || pthread_join(other, &said) || said) return 13;
            if (base() != (long)first) return 14;
            pid_t child = fork();
            if (!child) _exit(check(first));
            int status; waitpid(child, &status, 0);
            if (status) return 15;
            uint64_t got = 1; uint32_t half = 0;
            __asm__ volatile("wrgsbase %1\n rdgsbase %0" : "=r"(got) : "r"(second));
            if (got != (uint64_t)second || (wrong = check(second))) return 40 + wrong;
            __asm__ volatile("rdgsbase %0" : "=r"(half));
            if (half != (uint32_t)(uint64_t)second) return 16;
            __asm__ volatile("wrgsbase %0" : : "r"(0xfffff000u));
            if (base() != 0xfffff000) return 17;
            syscall(SYS_arch_prctl, SET_GS, 0x7000);
            struct sigaction action = { .sa_sigaction = on_fault, .sa_flags = SA_SIGINFO };
            sigaction(SIGSEGV, &action, 0);
            if (!sigsetjmp(back, 1))
                __asm__ volatile("mov $4242,%%ecx\n mov $99,%%eax\n mov %%eax,%%gs:0x18" ::: "rax", "rcx", "memory");
            if (fault_at != 0x7018 || rcx_then != 4242) return 18;
            for (int which = SET_GS; which <= SET_FS; which++)
                if (syscall(SYS_arch_prctl, which, 1L << 62) != -1 || errno != EPERM) return 19;
            return 0;
        }"#;
    unharmed("gs.c", source, &["-O1", "-pthread", "-mfsgsbase"]);
    unharmed("gs-fixed.c", source, &["-O2", "-pthread", "-mfsgsbase", "-fno-pie", "-no-pie"]);
}

/// Puts down where stores went.
#[derive(Default)]
struct Stores(Vec<u64>);

impl CoreListener for Stores {
    fn translated(&mut self, _: BlockId, _: &StaticBlock) {}

    fn executed(&mut self, _: BlockId, _: u16, accesses: &[Access]) {
        self.0.extend(accesses.iter().filter(|access| access.is_store).map(|one| one.address));
    }
}

#[derive(Default)]
struct All(Vec<u64>);

impl Audience for All {
    type Core = Stores;

    fn thread(&mut self, _: ProcessKey, _: u32) -> Stores {
        Stores::default()
    }

    fn ended(&mut self, _: ProcessKey, _: u32, core: Stores) {
        self.0.extend(core.0);
    }
}

#[test]
fn what_a_program_touches_by_gs_is_told_where_it_is() {
    // Each store by GS is followed by the same one without it; GS moves from turn to turn.
    let program = assemble(
        ".globl _start\n_start: lea words(%rip), %r12\n mov $100, %ebx\n\
         1: mov %r12, %rsi\n mov $0x1001, %edi\n mov $158, %eax\n syscall\n mov $3, %r13d\n\
         mov %eax, %gs:8\n mov %eax, 8(%r12)\n mov %eax, %gs:16(,%r13,8)\n mov %eax, 16(%r12,%r13,8)\n\
         mov %eax, %gs:-8(%r13)\n mov %eax, -8(%r12,%r13)\n\
         add $64, %r12\n dec %ebx\n jnz 1b\n mov $60, %eax\n xor %edi, %edi\n syscall\n\
         .bss\n .balign 64\n .skip 64\nwords: .skip 8192\n",
    );
    let name = format!("{}-gs.trace", std::process::id());
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let listener = Listener::Trace(path.clone());
    let finished = Launch { listener, ..Launch::new(program) }.run(engines()).unwrap();
    assert_eq!(finished.status.code(), Some(0));
    let mut all = All::default();
    Recorded { path: path.clone() }.play(&mut all).unwrap();
    fs::remove_file(path).unwrap();
    assert_eq!(all.0.len(), 600);
    assert!(all.0.chunks(2).all(|pair| pair[0] == pair[1]), "{:x?}", all.0);
}

#[test]
fn what_is_not_done_with_gs_is_an_instruction_that_is_missing_and_said_so() {
    let source = "int main(void) { __asm__ volatile(\"mov %0, %%gs\" : : \"r\"(0)); return 0; }";
    if !can_run_natively() {
        eprintln!("skipped: this machine cannot run the native engine");
        return;
    }
    let program = compile("selector.c", source, &[]);
    let launch = Launch { engine: EngineChoice::Native, ..Launch::new(program) };
    let finished = launch.run(engines()).unwrap();
    assert_eq!(finished.status.signal(), Some(4));
    assert!(finished.missing_instruction().unwrap().contains("does not have"));
}
