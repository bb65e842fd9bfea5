//! Signals under the engine of our own, as a program finds them that was not told: who may be interrupted
//! when, by what, and what becomes of it. Each program says by its exit status where it went wrong.

mod planted;

use planted::unharmed;

#[test]
fn a_signal_that_is_blocked_is_not_told_and_handlers_that_block_each_other_do_not_meet() {
    let source = r#"
        #define _GNU_SOURCE
        #include <errno.h>
        #include <poll.h>
        #include <pthread.h>
        #include <signal.h>
        #include <string.h>
        #include <sys/epoll.h>
        #include <sys/select.h>
        #include <unistd.h>
        static volatile int inside, blocked, bad, told, over;
        static void handler(int s) {
            (void)s;
            if (inside || blocked) bad++;
            inside = 1; for (volatile int i = 0; i < 200; i++) {} inside = 0;
            told++;
        }
        static void *sends(void *none) {
            for (int i = 0; i < 20000; i++) kill(getpid(), i & 1 ? SIGUSR1 : SIGUSR2);
            over = 1;
            return none;
        }
        int main(void) {
            struct sigaction a; memset(&a, 0, sizeof a);
            a.sa_handler = handler; a.sa_flags = SA_RESTART; sigfillset(&a.sa_mask);
            sigaction(SIGUSR1, &a, 0); sigaction(SIGUSR2, &a, 0);
            sigset_t both, none; sigemptyset(&none); sigemptyset(&both);
            sigaddset(&both, SIGUSR1); sigaddset(&both, SIGUSR2);
            pthread_t t; sigprocmask(SIG_BLOCK, &both, 0); pthread_create(&t, 0, sends, 0);
            while (!over) {
                blocked = 1; for (volatile int i = 0; i < 300; i++) {} blocked = 0;
                sigprocmask(SIG_SETMASK, &none, 0);
                for (volatile int i = 0; i < 50; i++) {}
                sigprocmask(SIG_BLOCK, &both, 0);
            }
            pthread_join(t, 0);
            sigprocmask(SIG_SETMASK, &none, 0);
            if (bad || !told) return 1;
            /* Waiting with another mask. */
            sigprocmask(SIG_BLOCK, &both, 0);
            struct timespec long_s = { 20, 0 };
            int before = told;
            kill(getpid(), SIGUSR1);
            if (ppoll(0, 0, &long_s, &none) != -1 || errno != EINTR || told != before + 1) return 2;
            kill(getpid(), SIGUSR2);
            if (pselect(0, 0, 0, 0, &long_s, &none) != -1 || errno != EINTR || told != before + 2) return 3;
            int e = epoll_create1(0); struct epoll_event one;
            kill(getpid(), SIGUSR1);
            if (epoll_pwait(e, &one, 1, 20000, &none) != -1 || errno != EINTR || told != before + 3) return 4;
            /* What is blocked is there for whoever asks. */
            kill(getpid(), SIGUSR2);
            sigset_t waits; sigpending(&waits);
            siginfo_t info;
            if (!sigismember(&waits, SIGUSR2) || sigwaitinfo(&both, &info) != SIGUSR2) return 5;
            return info.si_pid == getpid() && told == before + 3 ? 0 : 6;
        }"#;
    unharmed("blocked.c", source, &["-O1", "-pthread"]);
}

#[test]
fn a_signal_that_is_sent_ends_a_program_that_does_nothing_about_it() {
    // Those that instructions raise, too; and that of a broken pipe, which our own runtime ignores.
    let source = r#"
        #include <signal.h>
        #include <stdlib.h>
        #include <sys/wait.h>
        #include <unistd.h>
        static int end_of(int signal_number, int is_ignored) {
            int status;
            pid_t child = fork();
            if (child == 0) {
                if (is_ignored) signal(signal_number, SIG_IGN);
                kill(getpid(), signal_number);
                _exit(77);
            }
            waitpid(child, &status, 0);
            return WIFSIGNALED(status) ? WTERMSIG(status) : -WEXITSTATUS(status);
        }
        int main(void) {
            int all[] = { SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGPIPE, SIGTERM, SIGABRT };
            for (int i = 0; i < 8; i++) {
                if (end_of(all[i], 0) != all[i]) return 1 + i;
                if (end_of(all[i], 1) != -77) return 11 + i;
            }
            int ends[2]; if (pipe(ends)) return 30;
            close(ends[0]);
            if (fork() == 0) _exit(write(ends[1], "x", 1) == -1);
            int status; wait(&status);
            return WIFSIGNALED(status) && WTERMSIG(status) == SIGPIPE ? 0 : 31;
        }"#;
    unharmed("sent.c", source, &["-O1"]);
}

#[test]
fn a_wait_with_an_end_ends_though_a_timer_interrupts_it_again_and_again() {
    let source = r#"
        #include <errno.h>
        #include <linux/futex.h>
        #include <signal.h>
        #include <string.h>
        #include <sys/syscall.h>
        #include <sys/time.h>
        #include <unistd.h>
        static void tick(int s) { (void)s; }
        int main(void) {
            struct sigaction a; memset(&a, 0, sizeof a); a.sa_handler = tick; a.sa_flags = SA_RESTART;
            sigaction(SIGALRM, &a, 0);
            struct itimerval every = { {0, 20000}, {0, 20000} };
            setitimer(ITIMER_REAL, &every, 0);
            struct timespec longer = { 0, 200000000 };
            int word = 0;
            long r = syscall(SYS_futex, &word, FUTEX_WAIT, 0, &longer, 0, 0);
            return r == -1 && errno == EINTR ? 0 : 1;
        }"#;
    unharmed("ends.c", source, &["-O1"]);
}
