//! The same stream, whichever way it is had: inside the plugin, over the socket, from a file.

#![allow(clippy::unwrap_used, reason = "a failure here is the test failing")]

mod planted;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use model::stream::{Access, BlockId, CoreListener, StaticBlock};
use planted::{assemble, compile, engines};
use tracer::hash::StreamHash;
use tracer::launch::Launch;
use tracer::record::ProcessRecord;
use tracer::results::ProcessKey;
use tracer::settings::Listener;
use tracer::stream::{InstructionStream, Live, Recorded, StreamError};
use tracer::trace::{Audience, Replayed};

/// Hashes every thread.
#[derive(Default)]
struct Hashes {
    of_threads: BTreeMap<(ProcessKey, u32), [u8; 16]>,
    records: usize,
}

impl Audience for Hashes {
    type Core = StreamHash;

    fn thread(&mut self, _: ProcessKey, _: u32) -> StreamHash {
        StreamHash::default()
    }

    fn record(&mut self, _: ProcessKey, _: &ProcessRecord) {
        self.records += 1;
    }

    fn ended(&mut self, process: ProcessKey, thread: u32, core: StreamHash) {
        self.of_threads.insert((process, thread), core.to_bytes());
    }
}

impl Hashes {
    /// The hashes alone: process numbers differ from run to run.
    fn sorted(&self) -> Vec<[u8; 16]> {
        let mut all: Vec<_> = self.of_threads.values().copied().collect();
        all.sort_unstable();
        all
    }
}

fn trace_path(name: &str) -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{}-{name}.trace", std::process::id()))
}

fn record(launch: &Launch, name: &str) -> PathBuf {
    let path = trace_path(name);
    let listener = Listener::Trace(path.clone());
    Launch { listener, ..launch.clone() }.run(engines()).unwrap();
    path
}

fn replay(path: &Path) -> (Hashes, Replayed) {
    let mut hashes = Hashes::default();
    let (replayed, ()) = Recorded { path: path.into() }.play(&mut hashes).unwrap();
    (hashes, replayed)
}

/// The hashes that listeners inside the plugin published.
fn inside(launch: &Launch) -> Vec<[u8; 16]> {
    let finished = Launch { listener: Listener::Hash, ..launch.clone() }.run(engines()).unwrap();
    let published = finished.processes.values().flat_map(|process| process.published.values());
    let mut all: Vec<[u8; 16]> =
        published.map(|bytes| bytes.as_slice().try_into().unwrap()).collect();
    all.sort_unstable();
    all
}

fn same_three_ways(launch: &Launch, name: &str) -> Replayed {
    let inside = inside(launch);
    let path = record(launch, name);
    let (recorded, replayed) = replay(&path);
    assert_eq!(recorded.sorted(), inside, "recorded");
    assert_eq!((replayed.skipped_bytes, replayed.broken.len()), (0, 0));
    let mut hashes = Hashes::default();
    let live = Live { launch: launch.clone(), engines: *engines() };
    let (over_socket, finished) = live.play(&mut hashes).unwrap();
    assert_eq!(hashes.sorted(), inside, "live");
    assert_eq!(over_socket.executed, replayed.executed);
    assert!(finished.status.success());
    fs::remove_file(path).unwrap();
    replayed
}

const SORT: &str = r#"
    #include <signal.h>
    #include <stdlib.h>
    #include <string.h>
    #include <unistd.h>
    static int order(const void *a, const void *b) { return *(const int *)a - *(const int *)b; }
    static void nothing(int s) { (void)s; }
    int main(void) {
        int *n = malloc(20000 * sizeof *n); unsigned x = 1;
        for (int i = 0; i < 20000; i++) n[i] = (x = x * 1103515245 + 12345) >> 8;
        qsort(n, 20000, sizeof *n, order);
        char *p = malloc(1 << 20);
        __asm__ volatile("rep stosb" : "+D"(p) : "a"(1), "c"(1L << 20) : "memory");
        signal(SIGUSR1, nothing);
        for (int i = 0; i < 50; i++) raise(SIGUSR1);
        return 0;
    }"#;

#[test]
fn a_sort_streams_the_same_three_ways() {
    let launch = Launch { is_repeatable: true, ..Launch::new(compile("sort.c", SORT, &["-O1"])) };
    let replayed = same_three_ways(&launch, "sort");
    assert!(replayed.executed > 100_000);
}

/// No shell: that minds the end of a child with a handler, and when it runs is up to the scheduler, since
/// a child may end before its parent waits for it; and it writes its parent's number down in digits.
const PARENT: &str = r#"
    #include <spawn.h>
    #include <sys/wait.h>
    #include <unistd.h>
    extern char **environ;
    int main(void) {
        char *arguments[] = { "echo", "-n", 0 };
        pid_t other, child;
        int status = 0, all = 0;
        if (posix_spawn(&other, "/bin/echo", 0, 0, arguments, environ) != 0) return 1;
        waitpid(other, &status, 0);
        all |= status;
        if ((child = fork()) == 0) _exit(0);
        waitpid(child, &status, 0);
        return (all | status) != 0;
    }"#;

#[test]
fn a_parent_with_its_children_streams_the_same_three_ways() {
    let parent = compile("parent.c", PARENT, &["-O1"]);
    let launch = Launch { is_repeatable: true, ..Launch::new(parent) };
    let replayed = same_three_ways(&launch, "parent");
    assert!(replayed.executed > 10_000);
}

/// Counts instructions and accesses.
#[derive(Default, Clone, Copy, PartialEq, Debug)]
struct Sum {
    instructions: u64,
    stores: u64,
}

impl CoreListener for Sum {
    fn translated(&mut self, _: BlockId, _: &StaticBlock) {}

    fn executed(&mut self, _: BlockId, ran: u16, accesses: &[Access]) {
        self.instructions += u64::from(ran);
        self.stores += accesses.iter().filter(|access| access.is_store).count() as u64;
    }
}

#[derive(Default)]
struct Sums(Vec<Sum>);

impl Audience for Sums {
    type Core = Sum;

    fn thread(&mut self, _: ProcessKey, _: u32) -> Sum {
        Sum::default()
    }

    fn ended(&mut self, _: ProcessKey, _: u32, core: Sum) {
        self.0.push(core);
    }
}

fn killed(n: u64) -> PathBuf {
    assemble(&format!(
        ".globl _start\n_start: mov ${n}, %ecx\n1: push %rcx\n dec %ecx\n jnz 1b\n\
         mov $39, %eax\n syscall\n mov %eax, %edi\n mov $9, %esi\n mov $62, %eax\n syscall\n"
    ))
}

#[test]
fn the_trace_of_a_killed_program_is_whole() {
    // Few turns stay in the tail; many fill chunks.
    for n in [10, 1000, 200_000] {
        let path = record(&Launch::new(killed(n)), &format!("killed{n}"));
        let mut sums = Sums::default();
        Recorded { path: path.clone() }.play(&mut sums).unwrap();
        assert_eq!(sums.0, [Sum { instructions: 1 + 3 * n + 6, stores: n }]);
        fs::remove_file(path).unwrap();
    }
}

#[test]
fn a_trace_cut_short_tells_what_it_has() {
    let path = record(&Launch::new(killed(100_000)), "cut");
    let bytes = fs::read(&path).unwrap();
    let whole = replay(&path).1.executed;
    assert_eq!(whole, 100_000 + 2);
    let mut last = 0;
    for part in 1..=20 {
        fs::write(&path, &bytes[..bytes.len() * part / 20]).unwrap();
        let (_, replayed) = replay(&path);
        assert!(last <= replayed.executed && replayed.executed <= whole);
        last = replayed.executed;
    }
    assert_eq!(last, whole);
    fs::write(&path, b"not a trace").unwrap();
    let foreign = Recorded { path: path.clone() }.play(&mut Hashes::default()).unwrap_err();
    assert!(matches!(foreign, StreamError::Foreign(_)));
    fs::remove_file(path).unwrap();
}

#[test]
fn every_thread_of_a_recorded_program_is_whole() {
    let source = r#"
        #include <pthread.h>
        static void *work(void *n) {
            long left = (long)n;
            __asm__ volatile("1: push %%rax\n pop %%rax\n dec %0\n jnz 1b\n" : "+r"(left) : : "memory");
            return 0;
        }
        int main(void) {
            pthread_t t[4];
            for (long i = 0; i < 4; i++) pthread_create(&t[i], 0, work, (void *)100000);
            for (long i = 0; i < 4; i++) pthread_join(t[i], 0);
            return 0;
        }"#;
    let program = compile("four.c", source, &["-O1", "-pthread", "-mno-red-zone"]);
    let path = record(&Launch::new(program), "four");
    let mut sums = Sums::default();
    let (replayed, ()) = Recorded { path: path.clone() }.play(&mut sums).unwrap();
    assert!(replayed.broken.is_empty());
    assert_eq!(sums.0.len(), 5);
    let workers = sums.0.iter().filter(|sum| sum.instructions >= 400_000);
    assert_eq!(workers.filter(|sum| sum.stores >= 100_000 && sum.stores < 110_000).count(), 4);
    fs::remove_file(path).unwrap();
}
