//! Programs that look at themselves find nothing unusual: each checks what it sees, and says where it
//! went wrong by its exit status. They are run alone first, so that a wrong check fails too. This is about
//! the engine of our own; QEMU has its own ways with faults and mappings.

#![allow(clippy::unwrap_used, reason = "a failure here is the test failing")]

mod planted;

use planted::{ran, unharmed};

#[test]
fn signals_come_with_their_masks_stacks_and_interrupted_calls() {
    let source = r#"
        #define _GNU_SOURCE
        #include <errno.h>
        #include <signal.h>
        #include <string.h>
        #include <sys/time.h>
        #include <sys/wait.h>
        #include <unistd.h>
        static volatile int users, alarms, nested, on_stack;
        static char stack[65536];
        static void user(int s, siginfo_t *info, void *c) {
            (void)c; char here;
            if (s != SIGUSR1 || info->si_pid != getpid()) _exit(20);
            sigset_t now; sigprocmask(SIG_BLOCK, 0, &now);
            if (!sigismember(&now, SIGUSR1) || !sigismember(&now, SIGUSR2)) _exit(21);
            if (&here > stack && &here < stack + sizeof stack) on_stack++;
            users++;
        }
        static void user2(int s) { (void)s; nested = users; }
        static void alarmed(int s) { (void)s; alarms++; }
        int main(void) {
            stack_t alternate = { .ss_sp = stack, .ss_size = sizeof stack };
            sigaltstack(&alternate, 0);
            struct sigaction a; memset(&a, 0, sizeof a);
            a.sa_sigaction = user; a.sa_flags = SA_SIGINFO | SA_ONSTACK; sigaddset(&a.sa_mask, SIGUSR2);
            sigaction(SIGUSR1, &a, 0);
            signal(SIGUSR2, user2);
            for (int i = 0; i < 500; i++) kill(getpid(), SIGUSR1);
            if (users != 500 || on_stack != 500) return 1;
            /* One that is blocked waits. */
            sigset_t both, old; sigemptyset(&both); sigaddset(&both, SIGUSR2);
            sigprocmask(SIG_BLOCK, &both, &old);
            kill(getpid(), SIGUSR2);
            if (nested) return 2;
            sigset_t none; sigemptyset(&none);
            if (sigsuspend(&none) != -1 || errno != EINTR || nested != 500) return 3;
            sigset_t after; sigprocmask(SIG_SETMASK, &old, &after);
            if (!sigismember(&after, SIGUSR2)) return 4;
            /* A timer in a loop that makes no call. */
            struct sigaction t; memset(&t, 0, sizeof t); t.sa_handler = alarmed; t.sa_flags = SA_RESTART;
            sigaction(SIGALRM, &t, 0);
            struct itimerval every = { {0, 1000}, {0, 1000} }, never = { {0, 0}, {0, 0} };
            setitimer(ITIMER_REAL, &every, 0);
            volatile long turns = 0;
            while (alarms < 10) turns++;
            /* A call that is interrupted is made again. */
            int ends[2]; char byte = 0;
            if (pipe(ends)) return 5;
            if (fork() == 0) { usleep(30000); char x = 7; _exit(write(ends[1], &x, 1) != 1); }
            if (read(ends[0], &byte, 1) != 1 || byte != 7) return 6;
            setitimer(ITIMER_REAL, &never, 0);
            int status; while (wait(&status) < 0 && errno == EINTR) {}
            /* And one that is not says so. */
            t.sa_flags = 0; sigaction(SIGALRM, &t, 0);
            struct itimerval once = { {0, 0}, {0, 20000} };
            setitimer(ITIMER_REAL, &once, 0);
            if (read(ends[0], &byte, 1) != -1 || errno != EINTR) return 7;
            return 0;
        }"#;
    unharmed("signals.c", source, &["-O2"]);
}

#[test]
fn a_fault_shows_every_register_as_the_program_has_it() {
    // All registers hold known values when the load faults, those included that the block writes
    // afterwards without reading them; the handler goes on behind it.
    let source = r#"
        #define _GNU_SOURCE
        #include <signal.h>
        #include <string.h>
        #include <ucontext.h>
        #include <unistd.h>
        extern char faulting[], after[];
        static int bad, faults;
        static void segv(int s, siginfo_t *info, void *c) {
            greg_t *r = ((ucontext_t *)c)->uc_mcontext.gregs;
            int order[] = { REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSI, REG_RDI, REG_R8, REG_R9,
                            REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15 };
            if (s != SIGSEGV || info->si_addr != (void *)0x18) bad |= 1;
            if (r[REG_RIP] != (greg_t)faulting) bad |= 2;
            for (int i = 0; i < 14; i++) if (r[order[i]] != (i == 3 ? 0x10 : 100 + i)) bad |= 4 << i;
            r[REG_RIP] = (greg_t)after;
            r[REG_R12] = 4242;
            faults++;
        }
        static void other(int s, siginfo_t *info, void *c) {
            greg_t *r = ((ucontext_t *)c)->uc_mcontext.gregs;
            if (info->si_signo != s) bad |= 1 << 20;
            if (s == SIGFPE || s == SIGILL) r[REG_RIP] += 2;
            faults++;
        }
        int main(void) {
            struct sigaction a; memset(&a, 0, sizeof a); a.sa_flags = SA_SIGINFO;
            a.sa_sigaction = segv; sigaction(SIGSEGV, &a, 0);
            a.sa_sigaction = other;
            sigaction(SIGFPE, &a, 0); sigaction(SIGILL, &a, 0); sigaction(SIGTRAP, &a, 0);
            for (int turn = 0; turn < 3; turn++) {
                long twelve;
                __asm__ volatile(
                    "mov $100,%%eax\n mov $101,%%ecx\n mov $102,%%edx\n mov $0x10,%%ebx\n mov $104,%%esi\n"
                    "mov $105,%%edi\n mov $106,%%r8d\n mov $107,%%r9d\n mov $108,%%r10d\n mov $109,%%r11d\n"
                    "mov $110,%%r12d\n mov $111,%%r13d\n mov $112,%%r14d\n mov $113,%%r15d\n jmp 1f\n"
                    "1: cmp %%eax,%%ecx\n .globl faulting\nfaulting: mov 8(%%rbx),%%rax\n"
                    "mov 8(%%rax,%%rax,2),%%rcx\n"
                    "mov $1,%%ecx\n mov $1,%%edx\n mov $1,%%esi\n mov $1,%%edi\n mov $1,%%r8d\n mov $1,%%r9d\n"
                    "mov $1,%%r10d\n mov $1,%%r11d\n mov $1,%%r12d\n mov $1,%%r13d\n mov $1,%%r14d\n"
                    "mov $1,%%r15d\n ud2\n .globl after\nafter: mov %%r12,%0\n"
                    : "=m"(twelve) : : "rax", "rcx", "rdx", "rbx", "rsi", "rdi", "r8", "r9", "r10", "r11",
                      "r12", "r13", "r14", "r15", "cc", "memory");
                if (twelve != 4242) return 50;
            }
            __asm__ volatile("xor %%edx,%%edx\n mov $1,%%eax\n xor %%ecx,%%ecx\n div %%ecx\n" ::: "rax", "rcx", "rdx");
            __asm__ volatile("ud2");
            __asm__ volatile("int3");
            if (faults != 6) return 51;
            return bad ? 52 : 0;
        }"#;
    unharmed("faults.c", source, &["-O1", "-no-pie", "-fno-stack-protector"]);
    unharmed("faults-pie.c", source, &["-O2"]);
}

#[test]
fn vectors_flags_and_rounding_survive_calls_and_handlers() {
    let source = r#"
        #include <fenv.h>
        #include <immintrin.h>
        #include <signal.h>
        #include <string.h>
        #include <sys/syscall.h>
        #include <sys/time.h>
        #include <unistd.h>
        static volatile int ticks;
        static void tick(int s) {
            (void)s; ticks++;
            __asm__ volatile("vpcmpeqd %%ymm0,%%ymm0,%%ymm0\n vmovdqa %%ymm0,%%ymm15\n fninit" ::: "xmm0", "xmm15");
        }
        int main(void) {
            signal(SIGALRM, tick);
            struct itimerval every = { {0, 500}, {0, 500} };
            setitimer(ITIMER_REAL, &every, 0);
            long in[4] = { 1, -2, 3, -4 }, out[4], flags;
            fesetround(FE_UPWARD);
            for (long turn = 0; ticks < 20; turn++) {
                __asm__ volatile("vmovdqu %2,%%ymm15\n mov $39,%%eax\n syscall\n"
                    "stc\n mov $2000,%%ecx\n 1: dec %%ecx\n jnz 1b\n pushfq\n pop %1\n vmovdqu %%ymm15,%0\n"
                    : "=m"(out), "=r"(flags) : "m"(in) : "rax", "rcx", "r11", "xmm15", "memory", "cc");
                if (memcmp(in, out, sizeof in)) return 1;
                /* dec leaves the carry, which was set before. */
                if (!(flags & 1) || !(flags & 0x40)) return 2;
                volatile double one = 1.0, three = 3.0;
                if (fegetround() != FE_UPWARD || one / three * three <= 1.0) return 3;
            }
            /* Backwards, and with unaligned accesses forbidden for a moment. */
            char from[64], to[64];
            for (int i = 0; i < 64; i++) from[i] = (char)i;
            char *f = from + 63, *t = to + 63; long n = 64;
            __asm__ volatile("std\n rep movsb\n cld" : "+S"(f), "+D"(t), "+c"(n) : : "memory");
            if (memcmp(from, to, 64)) return 4;
            __asm__ volatile("sub $128,%%rsp\n pushfq\n orl $0x40000,(%%rsp)\n popfq\n mov $39,%%eax\n syscall\n"
                "pushfq\n pop %0\n pushfq\n andl $~0x40000,(%%rsp)\n popfq\n add $128,%%rsp"
                : "=r"(flags) : : "rax", "rcx", "r11", "memory", "cc");
            return flags & 0x40000 ? 0 : 5;
        }"#;
    unharmed(
        "vectors.c",
        source,
        &["-O1", "-mavx2", "-frounding-math", "-Wl,--no-as-needed", "-lm"],
    );
}

#[test]
fn code_written_by_one_thread_and_run_by_another_is_what_was_written() {
    let source = r#"
        #include <pthread.h>
        #include <string.h>
        #include <sys/mman.h>
        static unsigned char *code;
        static volatile int turn, wrong;
        static void *runs(void *none) {
            for (int i = 1; i <= 300; i++) {
                while (turn != 2 * i - 1) {}
                /* What another core wrote is sure to be seen behind this. */
                unsigned a = 0, b, c = 0, d;
                __asm__ volatile("cpuid" : "+a"(a), "=b"(b), "+c"(c), "=d"(d) : : "memory");
                if (((int (*)(void))code)() != 0x66660000 + i) wrong++;
                turn = 2 * i;
            }
            return none;
        }
        int main(void) {
            code = mmap(0, 8192, 7, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
            code += 4093; /* over the end of a page */
            pthread_t t; pthread_create(&t, 0, runs, 0);
            for (int i = 1; i <= 300; i++) {
                int value = 0x66660000 + i;
                code[0] = 0xb8; memcpy(code + 1, &value, 4); code[5] = 0xc3;
                __sync_synchronize();
                turn = 2 * i - 1;
                while (turn != 2 * i) {}
            }
            pthread_join(t, 0);
            return wrong != 0;
        }"#;
    let Some(counts) = unharmed("patched.c", source, &["-O1", "-pthread"]) else { return };
    for value in [1u16, 2, 150, 300] {
        let [low, high] = value.to_le_bytes();
        assert_eq!(ran(&counts, &[0xb8, low, high, 0x66, 0x66]), 1, "{value}");
    }
}

#[test]
fn memory_is_mapped_moved_and_taken_away_as_the_kernel_would() {
    let source = r#"
        #define _GNU_SOURCE
        #include <errno.h>
        #include <fcntl.h>
        #include <setjmp.h>
        #include <signal.h>
        #include <stdint.h>
        #include <string.h>
        #include <sys/mman.h>
        #include <unistd.h>
        static sigjmp_buf back;
        static void segv(int s) { (void)s; siglongjmp(back, 1); }
        int main(void) {
            signal(SIGSEGV, segv);
            char *a = mmap(0, 1 << 20, 3, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
            memset(a, 5, 1 << 20);
            char *b = mmap(0, 4096, 3, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
            char *c = mremap(a, 1 << 20, 4 << 20, MREMAP_MAYMOVE);
            if (c == MAP_FAILED || c[1048575] != 5 || c[1048576]) return 1;
            if (mremap(b, 4096, 1 << 30, 0) != MAP_FAILED && b[1 << 29]) return 2;
            if (munmap(c + 4096, 4096)) return 3;
            if (!sigsetjmp(back, 1)) { c[4096] = 1; return 4; }
            if (mmap(c + 4096, 4096, 3, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != c + 4096 || c[4096]) return 5;
            if (mmap(c, 4096, 3, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0) != MAP_FAILED || errno != EEXIST) return 6;
            mprotect(c, 4096, PROT_READ);
            if (!sigsetjmp(back, 1)) { c[0] = 1; return 7; }
            if (c[0] != 5) return 8;
            char *brk = sbrk(0);
            if (sbrk(3 << 20) != brk) return 9;
            memset(brk, 1, 3 << 20);
            if (sbrk(-(3 << 20)) == (void *)-1 || sbrk(0) != brk) return 10;
            if (!sigsetjmp(back, 1)) { brk[2 << 20] = 1; return 11; }
            int fd = open("/proc/self/exe", O_RDONLY); char magic[4];
            if (fd < 0 || read(fd, magic, 4) != 4 || memcmp(magic, "\177ELF", 4)) return 12;
            if (write(1, (char *)8, 1) != -1 || errno != EFAULT) return 13;
            if (!sigsetjmp(back, 1)) { ((void (*)(void))(uintptr_t)16)(); return 14; }
            return 0;
        }"#;
    unharmed("mapped.c", source, &["-O1"]);
}

#[test]
fn branches_through_tables_deep_returns_and_jumps_out_of_them_arrive() {
    let source = r#"
        #include <setjmp.h>
        #include <stdlib.h>
        static jmp_buf out;
        static long deep(long n, long sum) {
            if (n == 0) longjmp(out, (int)(sum & 0x7fffffff));
            long r = deep(n - 1, sum + n);
            return r + 1;
        }
        static long fib(long n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }
        #define OP(k) op##k: total = total * 3 + k; if (--left == 0) goto done; goto *table[(total >> 5) % 8];
        int main(void) {
            int found = setjmp(out);
            if (!found) { deep(20000, 0); return 1; }
            if (found != 200010000) return 2;
            if (fib(24) != 46368) return 3;
            static void *table[] = { &&op0, &&op1, &&op2, &&op3, &&op4, &&op5, &&op6, &&op7 };
            unsigned long total = 1; long left = 100000;
            goto *table[0];
            OP(0) OP(1) OP(2) OP(3) OP(4) OP(5) OP(6) OP(7)
        done:;
            unsigned long plain = 1; int at = 0;
            for (long i = 0; i < 100000; i++) { plain = plain * 3 + (unsigned long)at; at = (int)((plain >> 5) % 8); }
            return total == plain ? 0 : 4;
        }"#;
    unharmed("branches.c", source, &["-O2", "-fno-optimize-sibling-calls"]);
}
