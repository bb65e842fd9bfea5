//! Threads, forks and execs: every one is accounted for.

#![allow(clippy::unwrap_used, reason = "a failure here is the test failing")]

mod planted;

use planted::{compile, count, ran};
use tracer::counts::ProcessCounts;
use tracer::launch::{EngineChoice, Launch};
use tracer::settings::Listener;

fn launch(program: &str, arguments: &[&str]) -> Launch {
    Launch { arguments: arguments.iter().map(Into::into).collect(), ..Launch::new(program) }
}

#[test]
fn each_of_four_threads_has_its_own_exact_count() {
    let source = r#"
        #include <pthread.h>
        static void *work(void *n) {
            long left = (long)n;
            __asm__ volatile("1: mov $0x33333333, %%eax\n dec %0\n jnz 1b\n" : "+r"(left) : : "rax");
            return 0;
        }
        int main(void) {
            pthread_t t[4];
            for (long i = 0; i < 4; i++) pthread_create(&t[i], 0, work, (void *)(1000 * (i + 1)));
            for (long i = 0; i < 4; i++) pthread_join(t[i], 0);
            return 0;
        }"#;
    let program = compile("threads.c", source, &["-O1", "-pthread"]);
    for _ in 0..3 {
        let (finished, counts) = count(&Launch::new(&program));
        assert!(finished.status.success());
        assert_eq!(counts.len(), 1);
        assert_eq!(counts[0].threads.len(), 5);
        let marker = |thread: u32| {
            let only = counts[0].threads.get_key_value(&thread).map(|(k, v)| (*k, v.clone()));
            let alone = ProcessCounts { threads: only.into_iter().collect(), ..counts[0].clone() };
            ran(&[alone], &[0xb8, 0x33, 0x33, 0x33, 0x33])
        };
        let mut each: Vec<u64> = (0..5).map(marker).collect();
        each.sort_unstable();
        assert_eq!(each, [0, 1000, 2000, 3000, 4000]);
        let of_threads: u64 =
            (0..5).map(|thread| counts[0].thread_totals(thread).instructions).sum();
        assert_eq!(of_threads, counts[0].totals().instructions);
    }
}

#[test]
fn a_lock_taken_by_two_threads_loses_no_instruction() {
    // 16 bytes compared and exchanged: the engine leaves the block and steps over it alone.
    let source = r#"
        #include <pthread.h>
        static unsigned __int128 shared;
        static void *work(void *none) {
            for (int n = 0; n < 2000; n++)
                __asm__ volatile("mov $0x44444444, %%esi\n lock cmpxchg16b %0\n mov $0x55555555, %%esi\n"
                    : "+m"(shared) : : "rax", "rbx", "rcx", "rdx", "rsi", "cc");
            return none;
        }
        int main(void) {
            pthread_t t[2];
            for (int i = 0; i < 2; i++) pthread_create(&t[i], 0, work, 0);
            for (int i = 0; i < 2; i++) pthread_join(t[i], 0);
            return 0;
        }"#;
    let program = compile("lock.c", source, &["-O1", "-pthread"]);
    let (finished, counts) = count(&Launch::new(&program));
    assert!(finished.status.success());
    assert_eq!(ran(&counts, &[0xbe, 0x44, 0x44, 0x44, 0x44]), 4000);
    assert_eq!(ran(&counts, &[0xf0]), 4000 + ran_other_locked(&counts));
    assert_eq!(ran(&counts, &[0xbe, 0x55, 0x55, 0x55, 0x55]), 4000);
}

/// Locked instructions that are not the planted one.
fn ran_other_locked(counts: &[ProcessCounts]) -> u64 {
    let planted = |bytes: &[u8]| bytes.starts_with(&[0xf0, 0x48, 0x0f, 0xc7, 0x0d]);
    let spots = counts.iter().flat_map(ProcessCounts::instructions);
    let others = spots.filter(|(spot, _)| spot.bytes[0] == 0xf0 && !planted(&spot.bytes));
    others.map(|(_, count)| count).sum()
}

#[test]
fn parent_and_child_of_a_fork_count_apart() {
    let source = r#"
        #include <sys/wait.h>
        #include <unistd.h>
        static void spin(long n) {
            __asm__ volatile("1: mov $0x66666666, %%eax\n dec %0\n jnz 1b\n" : "+r"(n) : : "rax");
        }
        int main(void) {
            spin(100);
            if (fork() == 0) { spin(1000); _exit(7); }
            int status; wait(&status);
            spin(10);
            return WEXITSTATUS(status);
        }"#;
    let program = compile("fork.c", source, &["-O1"]);
    let (finished, counts) = count(&Launch::new(&program));
    assert_eq!(finished.status.code(), Some(7));
    assert_eq!(counts.len(), 2);
    let (parents, children): (Vec<_>, Vec<_>) =
        counts.into_iter().partition(|process| process.key == finished.main);
    assert_eq!(ran(&parents, &[0xb8, 0x66, 0x66, 0x66, 0x66]), 110);
    assert_eq!(ran(&children, &[0xb8, 0x66, 0x66, 0x66, 0x66]), 1000);
    assert_eq!(children[0].parent, Some(finished.main));
    assert_eq!(children[0].program, parents[0].program);
}

#[test]
fn a_shell_and_what_it_runs_are_followed() {
    let (finished, counts) =
        count(&launch("sh", &["-c", "/bin/true; exec /bin/echo -n >/dev/null"]));
    assert!(finished.status.success());
    let programs: Vec<&str> =
        counts.iter().filter_map(|process| process.program.rsplit('/').next()).collect();
    // Under our own engine a child that borrows its parent's memory until it becomes `true` counts for its
    // parent; QEMU makes a process of it.
    let borrowed = usize::from(EngineChoice::best() == EngineChoice::Native);
    assert_eq!(counts.len(), 4 - borrowed, "{programs:?}");
    assert!(programs.contains(&"true") && programs.contains(&"echo"), "{programs:?}");
    assert!(counts.iter().all(|process| process.totals().instructions > 0));
    assert!(counts.iter().flat_map(|process| &process.execs).all(|(_, is_followed)| *is_followed));
}

#[test]
fn a_compiler_s_whole_chain_is_followed() {
    let source = compile("chain.c", "int main(void) { return 0; }", &["-O1"]);
    let source = source.with_extension("");
    let out = source.with_extension("o");
    let arguments = ["-c", source.to_str().unwrap(), "-o", out.to_str().unwrap()];
    let (finished, counts) = count(&launch("gcc", &arguments));
    assert!(finished.status.success());
    assert!(out.exists());
    for name in ["cc1", "as"] {
        let of_name = |process: &&ProcessCounts| process.program.ends_with(&format!("/{name}"));
        let process = counts.iter().find(of_name).unwrap_or_else(|| panic!("no {name}"));
        assert!(process.totals().instructions > 100_000);
    }
}

#[test]
fn a_script_runs_as_its_interpreter_and_failures_stay_the_program_s_own() {
    use std::os::unix::fs::PermissionsExt;
    let script = compile("host.c", "int main(void) { return 0; }", &[]).with_extension("sh");
    std::fs::write(&script, "#!/bin/sh\n/no/such/program 2>/dev/null\nexit $?\n").unwrap();
    std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o755)).unwrap();
    let (finished, counts) = count(&Launch::new(&script));
    assert_eq!(finished.status.code(), Some(127));
    assert!(counts[0].images.iter().any(|image| image.ends_with("sh")), "{:?}", counts[0].images);
}

#[test]
fn code_is_placed_in_the_file_that_it_came_from() {
    let program = compile("place.c", "int main(void) { return 0; }", &["-O1"]);
    let (_, counts) = count(&Launch::new(&program));
    let mut checked = 0;
    let files: Vec<_> = counts[0].images.iter().map(|path| std::fs::read(path).unwrap()).collect();
    for (spot, _) in counts[0].instructions() {
        let place = spot.place.expect("all code of this program is in files");
        let start = place.offset as usize;
        let len = usize::from(spot.len);
        assert_eq!(files[place.image as usize][start..start + len], spot.bytes[..len]);
        checked += 1;
    }
    assert!(checked > 1000);
    assert!(counts[0].images.iter().any(|path| path.contains("libc.so")));
}

#[test]
fn code_that_is_written_anew_is_counted_as_what_it_was() {
    // mov $turn,%eax; ret, written over itself a hundred times and called twice each time.
    let source = r#"
        #include <string.h>
        #include <sys/mman.h>
        int main(void) {
            unsigned char *code = mmap(0, 4096, 7, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
            int sum = 0;
            for (int turn = 0; turn < 100; turn++) {
                int value = 0x77770000 + turn;
                code[0] = 0xb8; memcpy(code + 1, &value, 4); code[5] = 0xc3;
                sum += ((int (*)(void))code)() == value;
                sum += ((int (*)(void))code)() == value;
            }
            return sum == 200 ? 0 : 1;
        }"#;
    let program = compile("jit.c", source, &["-O1"]);
    let (finished, counts) = count(&Launch::new(&program));
    assert!(finished.status.success());
    for turn in 0..100u8 {
        assert_eq!(ran(&counts, &[0xb8, turn, 0, 0x77, 0x77]), 2, "turn {turn}");
    }
    let made = counts[0].instructions().into_iter();
    let made = made.filter(|(spot, _)| spot.bytes[3..5] == [0x77, 0x77] && spot.place.is_none());
    assert_eq!(made.count(), 100, "memory without a file has no place");
}

#[test]
fn a_program_finds_its_own_descriptors_arguments_and_environment() {
    // The lowest free descriptor is 3, before and after a fork, with threads about.
    let source = r#"
        #include <fcntl.h>
        #include <pthread.h>
        #include <string.h>
        #include <stdlib.h>
        #include <sys/wait.h>
        #include <unistd.h>
        static void *nothing(void *none) { return none; }
        static int lowest(void) { int fd = open("/dev/null", O_RDONLY); close(fd); return fd; }
        int main(int argc, char **argv) {
            if (argc != 3 || strcmp(argv[1], "a b") || strcmp(argv[2], "")) return 1;
            if (getenv("QEMU_PLUGIN") || !getenv("PATH")) return 2;
            if (lowest() != 3) return 3;
            pthread_t t; pthread_create(&t, 0, nothing, 0); pthread_join(t, 0);
            if (lowest() != 3) return 4;
            int status; if (fork() == 0) _exit(lowest()); wait(&status);
            if (WEXITSTATUS(status) != 3) return 5;
            char link[4096]; ssize_t n = readlink("/proc/self/exe", link, sizeof link - 1);
            if (n <= 0 || (link[n] = 0, strcmp(link, argv[0]))) return 6;
            return 0;
        }"#;
    let program = compile("own.c", source, &["-O1", "-pthread"]);
    let listeners = [
        Listener::Tally { counts_accesses: true },
        Listener::Hash,
        Listener::Trace(program.with_extension("trace")),
    ];
    for listener in listeners {
        let arguments = vec!["a b".into(), "".into()];
        let launch = Launch { arguments, listener, ..Launch::new(&program) };
        assert_eq!(launch.run(planted::engines()).unwrap().status.code(), Some(0));
    }
}

#[test]
fn a_program_that_becomes_itself_is_followed_each_time() {
    let source = r#"
        #include <stdlib.h>
        #include <unistd.h>
        int main(int argc, char **argv) {
            (void)argc;
            int left = atoi(argv[1]);
            char text[2] = { (char)('0' + left - 1), 0 };
            if (left > 0) execl("/proc/self/exe", "again", text, (char *)0);
            return 42;
        }"#;
    let program = compile("again.c", source, &["-O1"]);
    let launch = Launch { arguments: vec!["3".into()], ..Launch::new(&program) };
    let (finished, counts) = count(&launch);
    assert_eq!(finished.status.code(), Some(42));
    let sequences: Vec<u32> = counts.iter().map(|process| process.key.sequence).collect();
    assert_eq!(sequences, [0, 1, 2, 3]);
}

#[test]
fn a_file_that_takes_another_s_place_is_told_apart() {
    // 1: mov $0x5a5a1234,%eax; dec %rdi; jnz 1b; ret. Twice, in files of the same bytes, mapped one
    // over the other.
    let code = [0xb8, 0x34, 0x12, 0x5a, 0x5a, 0x48, 0xff, 0xcf, 0x75, 0xf6, 0xc3];
    let source = r#"
        #include <fcntl.h>
        #include <sys/mman.h>
        int main(int argc, char **argv) {
            for (int i = 1; i < argc; i++) {
                int fd = open(argv[i], O_RDONLY);
                void *code = mmap((void *)0x10000000, 4096, PROT_READ | PROT_EXEC,
                                  MAP_PRIVATE | MAP_FIXED, fd, 0);
                if (code == MAP_FAILED) return 1;
                ((void (*)(long))code)(i == 1 ? 100 : 1000);
            }
            return 0;
        }"#;
    let program = compile("both.c", source, &["-O1"]);
    let files = ["first", "second"].map(|name| program.with_extension(name));
    files.iter().for_each(|file| std::fs::write(file, code).unwrap());
    let arguments = files.iter().map(Into::into).collect();
    let (finished, counts) = count(&Launch { arguments, ..Launch::new(&program) });
    assert!(finished.status.success());
    let spots = counts[0].instructions().into_iter();
    let marked = spots.filter(|(spot, _)| spot.bytes.starts_with(&code[..5]));
    let mut found: Vec<(u64, String, u64)> = marked
        .map(|(spot, count)| {
            let place = spot.place.unwrap();
            (count, counts[0].images[place.image as usize].clone(), place.offset)
        })
        .collect();
    found.sort_unstable();
    let path = |file: &std::path::Path| file.canonicalize().unwrap().display().to_string();
    assert_eq!(found, [(100, path(&files[0]), 0), (1000, path(&files[1]), 0)]);
}

#[test]
fn a_process_without_room_for_its_results_runs_on_and_says_so() {
    // The shell's limit is in units of 512 bytes: room for a header and one chunk, then for nothing.
    let run = |limit: u32| {
        let script =
            format!("ulimit -f {limit}; /bin/sh -c '/bin/true; (exit 5); exit 9'; exit $?");
        count(&launch("/bin/sh", &["-c", &script]))
    };
    let (finished, counts) = run(100);
    assert_eq!(finished.status.code(), Some(9));
    assert!(counts.iter().any(|process| !process.is_complete));
    assert!(counts.iter().any(|process| process.program.ends_with("true")));
    let (finished, counts) = run(2);
    assert_eq!(finished.status.code(), Some(9));
    let main = counts.iter().find(|process| process.key == finished.main).unwrap();
    assert!(main.is_complete && main.totals().instructions > 0);
    assert!(!counts.iter().any(|process| process.program.ends_with("true")));
}
