//! New processes under the engine of our own: what they share with their parents, and what they find of
//! themselves. Each program says by its exit status where it went wrong.

#![allow(clippy::unwrap_used, reason = "a failure here is the test failing")]

mod planted;

use std::process::{Command, Stdio};

use planted::{compile, count, ran, unharmed};
use tracer::launch::{EngineChoice, Launch, can_run_natively};

#[test]
fn a_child_that_borrows_its_parent_s_memory_writes_there_and_leaves_all_else_alone() {
    let source = r#"
        #define _GNU_SOURCE
        #include <errno.h>
        #include <signal.h>
        #include <spawn.h>
        #include <stdio.h>
        #include <string.h>
        #include <sys/wait.h>
        #include <unistd.h>
        extern char **environ;
        static volatile int written, told;
        static void handler(int s) { (void)s; told++; }
        int main(void) {
            pid_t child; int status;
            char *arguments[] = { "true", 0 };
            /* That there is no such program is said through memory. */
            if (posix_spawn(&child, "/no/such/program", 0, 0, arguments, environ) != ENOENT) return 1;
            if (posix_spawnp(&child, "no-such-program", 0, 0, arguments, environ) != ENOENT) return 2;
            if (posix_spawnp(&child, "true", 0, 0, arguments, environ)) return 3;
            if (waitpid(child, &status, 0) != child || status) return 4;
            signal(SIGUSR1, handler);
            sigset_t set; sigemptyset(&set); sigaddset(&set, SIGUSR2);
            sigprocmask(SIG_BLOCK, &set, 0);
            for (int turn = 0; turn < 20; turn++) {
                child = vfork();
                if (child == 0) {
                    signal(SIGUSR1, SIG_IGN);
                    sigset_t none; sigemptyset(&none); sigprocmask(SIG_SETMASK, &none, 0);
                    __asm__ volatile("mov $0x66667777, %%eax" : : : "rax");
                    written++;
                    _exit(5);
                }
                /* It has written by now: the parent waits for that. */
                if (written != turn + 1) return 5;
                if (waitpid(child, &status, 0) != child || WEXITSTATUS(status) != 5) return 6;
                kill(getpid(), SIGUSR1);
                if (told != turn + 1) return 7;
                sigset_t now; sigprocmask(SIG_BLOCK, 0, &now);
                if (!sigismember(&now, SIGUSR2)) return 8;
            }
            child = vfork();
            if (child == 0) { *(volatile int *)0 = 0; _exit(0); }
            if (waitpid(child, &status, 0) != child || !WIFSIGNALED(status) || WTERMSIG(status) != SIGSEGV) return 9;
            child = vfork();
            if (child == 0) { execl("/bin/sh", "sh", "-c", "exit 6", (char *)0); _exit(1); }
            if (waitpid(child, &status, 0) != child || WEXITSTATUS(status) != 6) return 10;
            FILE *all = popen("exit 3", "r");
            return all && WEXITSTATUS(pclose(all)) == 3 ? 0 : 11;
        }"#;
    let Some(counts) = unharmed("borrowed.c", source, &["-O1"]) else { return };
    assert_eq!(ran(&counts, &[0xb8, 0x77, 0x77, 0x66, 0x66]), 20, "counted where its parent is");
}

#[test]
fn others_go_on_when_the_first_thread_has_ended() {
    let source = r#"
        #include <pthread.h>
        #include <stdlib.h>
        #include <sys/syscall.h>
        #include <sys/wait.h>
        #include <unistd.h>
        static pthread_t first;
        static void *goes_on(void *none) {
            int status;
            pthread_join(first, 0);
            usleep(20000);
            pid_t child = fork();
            if (child == 0) { syscall(SYS_exit, 9); }
            if (waitpid(child, &status, 0) != child || WEXITSTATUS(status) != 9) exit(1);
            child = fork();
            if (child == 0) { execl("/bin/sh", "sh", "-c", "exit 6", (char *)0); _exit(1); }
            if (waitpid(child, &status, 0) != child || WEXITSTATUS(status) != 6) exit(2);
            exit(0);
            return none;
        }
        int main(void) {
            pthread_t t;
            first = pthread_self();
            pthread_create(&t, 0, goes_on, 0);
            pthread_exit(0);
        }"#;
    unharmed("first.c", source, &["-O1", "-pthread"]);
}

#[test]
fn a_program_goes_by_its_own_name_and_arguments() {
    let source = r#"
        #include <fcntl.h>
        #include <string.h>
        #include <sys/auxv.h>
        #include <sys/prctl.h>
        #include <unistd.h>
        int main(int argc, char **argv, char **environment) {
            char all[4096], name[17] = { 0 };
            if (argc > 1) {
                char *expected = argv[0];
                int fd = open("/proc/self/cmdline", O_RDONLY);
                long n = read(fd, all, sizeof all);
                close(fd);
                char *end = argv[argc - 1] + strlen(argv[argc - 1]) + 1;
                if (n != end - argv[0] || memcmp(all, argv[0], (unsigned long)n)) return 1;
                for (int i = 0; i < argc; i++) {
                    if (argv[i] != expected) return 2;
                    expected += strlen(expected) + 1;
                }
                if (environment[0] && environment[0] != expected) return 3;
                fd = open("/proc/self/environ", O_RDONLY);
                n = read(fd, all, sizeof all);
                close(fd);
                if (environment[0] && (n < 1 || strncmp(all, environment[0], (unsigned long)n > 20 ? 20 : 1))) return 4;
                unsigned long facts[80];
                fd = open("/proc/self/auxv", O_RDONLY);
                n = read(fd, facts, sizeof facts);
                close(fd);
                for (long i = 0; i < n / 16; i++)
                    if (facts[2 * i] == AT_ENTRY && facts[2 * i + 1] != getauxval(AT_ENTRY)) return 5;
                char *file = strrchr((char *)getauxval(AT_EXECFN), '/');
                prctl(PR_GET_NAME, name);
                return file && !strncmp(name, file + 1, 15) ? 0 : 6;
            }
            execl("/proc/self/exe", "another", "a b", "", "c", (char *)0);
            return 7;
        }"#;
    unharmed("named.c", source, &["-O1"]);
}

#[test]
fn a_stream_that_is_closed_stays_closed() {
    if !can_run_natively() {
        return;
    }
    let source = r#"
        #include <errno.h>
        #include <fcntl.h>
        #include <unistd.h>
        int main(int argc, char **argv) {
            if (argc > 1) return fcntl(0, F_GETFD) == -1 && errno == EBADF ? 0 : 1;
            close(0);
            execl(argv[0], argv[0], "again", (char *)0);
            return 2;
        }"#;
    let program = compile("closed.c", source, &["-O1"]);
    let alone = Command::new(&program).stdin(Stdio::null()).status().unwrap();
    assert_eq!(alone.code(), Some(0));
    let launch = Launch { engine: EngineChoice::Native, ..Launch::new(&program) };
    assert_eq!(count(&launch).0.status.code(), Some(0));
}
