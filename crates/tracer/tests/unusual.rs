//! Instructions, faults and endings that few programs have. Each program says by its exit status where it
//! went wrong.

#![allow(clippy::unwrap_used, reason = "a failure here is the test failing")]

mod planted;

use std::os::unix::process::ExitStatusExt;

use planted::{assemble, count, ran, unharmed};
use tracer::launch::{EngineChoice, Launch, can_run_natively};

const ALONE: [&str; 2] = ["-nostdlib", "-static"];

#[test]
fn a_system_call_with_a_prefix_is_one() {
    let source = r#"
        .globl _start
        _start:
            mov $39, %eax
            .byte 0x48, 0x0f, 0x05      # getpid
            mov %eax, %ebx
            mov $39, %eax
            .byte 0x2e, 0x0f, 0x05
            mov %eax, %edi
            sub %ebx, %edi
            mov $60, %eax
            .byte 0x48, 0x0f, 0x05
        "#;
    let Some(counts) = unharmed("prefixed.S", source, &ALONE) else { return };
    assert_eq!(counts[0].totals().instructions, 9);
}

#[test]
fn calls_as_32_bit_programs_make_them_are_carried_out_and_what_ran_before_the_last_is_counted() {
    let source = r#"
        .globl _start
        _start:
            mov $39, %eax
            syscall
            mov %eax, %esi
            mov $20, %eax               # getpid by its other number
            int $0x80
            sub %eax, %esi
            mov $90, %eax               # an mmap with a structure: not known
            int $0x80
            add $38, %eax               # ENOSYS
            mov %esi, %ebx
            or %eax, %ebx
            mov $1, %eax
            int $0x80
            ud2
        "#;
    if std::fs::read_to_string("/proc/cmdline").is_ok_and(|line| line.contains("ia32_emulation=0"))
    {
        return eprintln!("skipped: this kernel has no such calls");
    }
    if !can_run_natively() {
        return eprintln!("skipped: this machine cannot run the native engine");
    }
    // Alone the call that is not known here fails in another way.
    let launch = Launch { engine: EngineChoice::Native, ..Launch::new(assemble(source)) };
    let (finished, counts) = count(&launch);
    assert_eq!(finished.status.code(), Some(0));
    assert_eq!(counts[0].totals().instructions, 13);
    assert_eq!(ran(&counts, &[0xcd, 0x80]), 3);
}

#[test]
fn a_program_does_not_leave_the_engine_by_a_far_return() {
    if !can_run_natively() {
        return eprintln!("skipped: this machine cannot run the native engine");
    }
    for (way, before) in
        [("mov %cs, %eax; push %rax; push %rcx; lretq", 4), ("push %rcx; iretq", 2)]
    {
        let source = format!(
            ".globl _start\n_start: lea 1f(%rip), %rcx; {way}\n1: mov $60, %eax; xor %edi, %edi; syscall\n"
        );
        let launch = Launch { engine: EngineChoice::Native, ..Launch::new(assemble(&source)) };
        let (finished, counts) = count(&launch);
        assert_eq!(finished.status.signal(), Some(libc::SIGILL), "{way}");
        assert_eq!(counts[0].totals().instructions, before, "{way}");
    }
}

#[test]
fn repeated_instructions_that_fault_in_the_middle_go_on_and_are_told_to_where_they_came() {
    // What a handler that maps pages one by one makes of them; the memory below is not touched
    // otherwise, so that slots of earlier blocks would point anywhere.
    let source = r#"
        #define _GNU_SOURCE
        #include <signal.h>
        #include <string.h>
        #include <sys/mman.h>
        #include <unistd.h>
        enum { PAGE = 4096, ALL = 64 * PAGE };
        static char *base;
        static volatile int faults;
        static void fault(int s, siginfo_t *info, void *c) {
            (void)s; (void)c;
            char *page = (char *)((unsigned long)info->si_addr & -(unsigned long)PAGE);
            if (page < base || page >= base + ALL) _exit(9);
            mprotect(page, PAGE, 3);
            faults++;
        }
        static void close_all(void) { mprotect(base, ALL, 0); }
        int main(void) {
            base = mmap(0, ALL, 0, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
            struct sigaction a; memset(&a, 0, sizeof a);
            a.sa_sigaction = fault; a.sa_flags = SA_SIGINFO; sigaction(SIGSEGV, &a, 0);
            void *to = base + 100, *from = base + 3;
            unsigned long count = 20 * PAGE;
            __asm__ volatile("rep stosb" : "+D"(to), "+c"(count) : "a"(7) : "memory");
            if (count || to != base + 100 + 20 * PAGE || faults != 21) return 1;
            close_all();
            to = base + 30 * PAGE + 1; count = 10 * PAGE / 8;
            __asm__ volatile("rep movsq" : "+D"(to), "+S"(from), "+c"(count) : : "memory");
            if (count || memcmp(base + 3, base + 30 * PAGE + 1, 10 * PAGE)) return 2;
            close_all();
            to = base + 10 * PAGE; count = 5 * PAGE / 8;
            __asm__ volatile("std; rep stosq; cld" : "+D"(to), "+c"(count) : "a"(0L) : "memory");
            if (count || to != base + 5 * PAGE) return 3;
            close_all();
            to = base; count = 9 * PAGE;
            __asm__ volatile("repne scasb" : "+D"(to), "+c"(count) : "a"(99) : "memory", "cc");
            return count ? 4 : 0;
        }"#;
    unharmed("repeated.c", source, &["-O1"]);
}

#[test]
fn a_handler_begins_with_rounding_and_exceptions_as_a_program_does() {
    let source = r#"
        #define _GNU_SOURCE
        #include <fenv.h>
        #include <signal.h>
        #include <ucontext.h>
        #include <unistd.h>
        #include <xmmintrin.h>
        static volatile int traps;
        static void handler(int s, siginfo_t *info, void *c) {
            unsigned short control;
            __asm__ volatile("fnstcw %0" : "=m"(control));
            if (_mm_getcsr() != 0x1f80 || control != 0x37f) _exit(2);
            if (s == SIGTRAP) {
                traps++;
                /* Behind the instruction, however long it is. */
                if (((unsigned char *)((ucontext_t *)c)->uc_mcontext.gregs[REG_RIP])[-1] != 3) _exit(3);
                if (info->si_code != SI_KERNEL) _exit(4);
            }
        }
        int main(void) {
            struct sigaction a = { .sa_sigaction = handler, .sa_flags = SA_SIGINFO };
            sigaction(SIGUSR1, &a, 0); sigaction(SIGTRAP, &a, 0);
            fesetround(FE_UPWARD);
            feenableexcept(FE_DIVBYZERO);
            unsigned before = _mm_getcsr();
            raise(SIGUSR1);
            __asm__ volatile(".byte 0xcd, 3");
            if (_mm_getcsr() != before || fegetround() != FE_UPWARD || traps != 1) return 1;
            return 0;
        }"#;
    unharmed("rounding.c", source, &["-O1", "-Wl,--no-as-needed", "-lm"]);
}

#[test]
fn what_a_handler_writes_into_registers_is_in_them() {
    let source = r#"
        #define _GNU_SOURCE
        #include <signal.h>
        #include <ucontext.h>
        static void handler(int s, siginfo_t *info, void *c) {
            (void)s; (void)info;
            ucontext_t *u = c;
            u->uc_mcontext.gregs[REG_RIP] += 2;
            u->uc_mcontext.gregs[REG_RAX] = 77;
            u->uc_mcontext.gregs[REG_EFL] |= 1;
            u->uc_mcontext.fpregs->_xmm[5].element[0] = 0xabcd;
            sigaddset(&u->uc_sigmask, SIGUSR2);
        }
        int main(void) {
            struct sigaction a = { .sa_sigaction = handler, .sa_flags = SA_SIGINFO };
            sigaction(SIGILL, &a, 0);
            long whole; unsigned vector; unsigned char carry;
            /* As at a program's beginning. */
            __asm__ volatile("vzeroall\n ud2\n setc %1\n movd %%xmm5, %2"
                : "=a"(whole), "=r"(carry), "=r"(vector) : : "xmm5", "cc", "memory");
            sigset_t now; sigprocmask(SIG_BLOCK, 0, &now);
            if (whole != 77) return 1;
            if (!carry) return 2;
            if (vector != 0xabcd) return 3;
            return !sigismember(&now, SIGUSR2);
        }"#;
    unharmed("written.c", source, &["-O1"]);
}

#[test]
fn locks_of_a_thread_that_ended_are_given_up_when_it_is_said_to_have_ended() {
    let source = r#"
        #define _GNU_SOURCE
        #include <errno.h>
        #include <pthread.h>
        static pthread_mutex_t held[2];
        static void *holder(void *unused) {
            pthread_mutex_lock(&held[0]); pthread_mutex_lock(&held[1]);
            return unused;
        }
        int main(void) {
            for (int turn = 0; turn < 100; turn++) {
                pthread_mutexattr_t robust;
                pthread_mutexattr_init(&robust);
                pthread_mutexattr_setrobust(&robust, PTHREAD_MUTEX_ROBUST);
                for (int i = 0; i < 2; i++) pthread_mutex_init(&held[i], &robust);
                pthread_t thread;
                pthread_create(&thread, 0, holder, 0);
                pthread_join(thread, 0);
                for (int i = 0; i < 2; i++) {
                    if (pthread_mutex_trylock(&held[i]) != EOWNERDEAD) return 1;
                    pthread_mutex_consistent(&held[i]);
                    pthread_mutex_unlock(&held[i]);
                    if (pthread_mutex_trylock(&held[i])) return 2;
                    pthread_mutex_unlock(&held[i]);
                    pthread_mutex_destroy(&held[i]);
                }
            }
            return 0;
        }"#;
    unharmed("robust.c", source, &["-O1", "-pthread"]);
}

#[test]
fn signals_that_are_faults_by_their_number_can_be_blocked_and_waited_for() {
    let source = r#"
        #define _GNU_SOURCE
        #include <signal.h>
        #include <time.h>
        #include <unistd.h>
        int main(void) {
            int faults[] = { SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP };
            sigset_t all, pending;
            sigfillset(&all); sigprocmask(SIG_BLOCK, &all, 0);
            struct timespec soon = { 2, 0 };
            for (int i = 0; i < 5; i++) {
                siginfo_t info;
                kill(getpid(), faults[i]);
                sigpending(&pending);
                if (!sigismember(&pending, faults[i]) || sigismember(&pending, SIGUSR1)) return 1 + i;
                if (sigtimedwait(&all, &info, &soon) != faults[i]) return 11 + i;
                if (info.si_signo != faults[i] || info.si_pid != getpid()) return 21 + i;
                sigpending(&pending);
                if (sigismember(&pending, faults[i])) return 31 + i;
            }
            return 0;
        }"#;
    unharmed("blocked.c", source, &["-O1"]);
}

#[test]
fn a_child_that_would_share_its_parent_s_memory_for_good_is_refused_at_once() {
    if !can_run_natively() {
        return eprintln!("skipped: this machine cannot run the native engine");
    }
    let source = r#"
        #define _GNU_SOURCE
        #include <errno.h>
        #include <sched.h>
        #include <signal.h>
        #include <sys/wait.h>
        static char stack[65536];
        static int child(void *unused) { (void)unused; return 0; }
        int main(void) {
            if (clone(child, stack + sizeof stack, CLONE_VM | CLONE_FS | CLONE_FILES, 0) != -1) return 1;
            if (errno != EINVAL) return 2;
            int pid = clone(child, stack + sizeof stack, SIGCHLD, 0), status;
            return waitpid(pid, &status, 0) != pid || status;
        }"#;
    let program = planted::compile("sharing.c", source, &[]);
    let launch = Launch { engine: EngineChoice::Native, ..Launch::new(program) };
    assert_eq!(count(&launch).0.status.code(), Some(0));
}

#[test]
fn a_child_is_made_with_what_was_asked_for() {
    let source = r#"
        #define _GNU_SOURCE
        #include <errno.h>
        #include <fcntl.h>
        #include <sched.h>
        #include <signal.h>
        #include <sys/syscall.h>
        #include <sys/wait.h>
        #include <unistd.h>
        static long make(unsigned long flags, int *told) { return syscall(SYS_clone, flags, 0, told, 0, 0); }
        int main(void) {
            int told = 0, status;
            long child = make(CLONE_PARENT_SETTID | SIGCHLD, &told);
            if (!child) _exit(2);
            if (told != child || waitpid(child, &status, 0) != child || WEXITSTATUS(status) != 2) return 1;
            told = -1;
            child = make(CLONE_PIDFD | SIGCHLD, &told);
            if (!child) _exit(0);
            if (child < 0 || fcntl(told, F_GETFD) < 0 || waitpid(child, &status, 0) != child) return 2;
            /* Descriptors that are shared are closed for both. */
            child = make(CLONE_FILES | SIGCHLD, 0);
            if (!child) { close(told); _exit(0); }
            waitpid(child, &status, 0);
            if (fcntl(told, F_GETFD) != -1 || errno != EBADF) return 3;
            /* Another signal at the end, or none. */
            child = make(0, 0);
            if (!child) _exit(5);
            if (waitpid(child, &status, 0) != -1 || errno != ECHILD) return 4;
            if (waitpid(child, &status, __WCLONE) != child || WEXITSTATUS(status) != 5) return 5;
            /* A process space of its own, where that is permitted. */
            child = make(CLONE_NEWUSER | CLONE_NEWPID | SIGCHLD, 0);
            if (!child) {
                child = fork();
                if (!child) _exit(getpid());
                waitpid(child, &status, 0);
                _exit(getpid() == 1 && WEXITSTATUS(status) == 2 ? 9 : 8);
            }
            return child > 0 && (waitpid(child, &status, 0) != child || WEXITSTATUS(status) != 9) ? 6 : 0;
        }"#;
    unharmed("asked.c", source, &["-O1"]);
}

#[test]
fn programs_under_sanitizers_find_memory_where_they_expect_it() {
    // What they do is theirs; here it is enough that they come to their own end.
    let source = r#"
        #include <pthread.h>
        #include <stdlib.h>
        #include <string.h>
        static void *work(void *place) { memset(place, 1, 1000); return place; }
        int main(void) {
            char *place = malloc(1000);
            pthread_t thread;
            pthread_create(&thread, 0, work, place);
            pthread_join(thread, 0);
            int last = place[999];
            free(place);
            return last != 1;
        }"#;
    let nothing = "int main(void) { return 0; }";
    for sanitizer in ["address", "thread", "undefined"] {
        let option = format!("-fsanitize={sanitizer}");
        if !planted::compiles(nothing, &[&option]) {
            eprintln!("skipped: no {sanitizer} sanitizer");
            continue;
        }
        let source = format!(
            "const char *__asan_default_options(void) {{ return \"detect_leaks=0\"; }}\n{source}"
        );
        unharmed(&format!("{sanitizer}.c"), &source, &["-O1", "-pthread", &option]);
    }
}
