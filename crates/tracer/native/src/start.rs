//! From the command line to the program's first instruction.

use std::env;
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use model::stream::Code;
use tracer::block::LiveBlock;
use tracer::inside::{Inside, fork, images};
use tracer::launch::can_run_natively;

use crate::cache::{self, Cache};
use crate::context::Vectors;
use crate::load::{self, Problem, Start};
use crate::space::Space;
use crate::thread::{Thread, new_context};
use crate::{found, memory, signals};

/// Where translated code lies.
static CODE: [AtomicU64; 2] = [AtomicU64::new(0), AtomicU64::new(0)];

/// The program's file.
static PROGRAM: OnceLock<PathBuf> = OnceLock::new();

/// The program's file, by its own name.
pub(crate) fn program() -> Option<&'static Path> {
    PROGRAM.get().map(PathBuf::as_path)
}

/// Whether an address of the host's is translated code. Asked by the signal handler, which may take
/// no lock.
pub(crate) fn is_translated(host: u64) -> bool {
    CODE[0].load(Relaxed) <= host && host < CODE[1].load(Relaxed)
}

/// Runs the program that the command line names; returns only if it cannot.
pub(crate) fn run() -> Result<(), Problem> {
    let (dir, start) = command_line().ok_or("the tracer's engine is started by whither alone")?;
    check_host()?;
    let inside = Inside::start(dir);
    let start = Start { random: random(inside), ..start };
    let mut space = Space::new(load::layout(&start.executable)?);
    let wider = wider_vectors();
    Cache::start(space.layout.code, wider, intern).ok_or(
        "this system gives no memory for translated code, which must be writable and executable; \
         QEMU may do (--engine qemu)",
    )?;
    let range = cache::lock().map(|cache| cache.range()).unwrap_or_default();
    CODE[0].store(range.start, Relaxed);
    CODE[1].store(range.end, Relaxed);
    let loaded = load::load(&start, &mut space)?;
    let _ = PROGRAM.set(std::fs::canonicalize(&start.executable).unwrap_or_default());
    memory::start(space);
    if let Some(inside) = inside {
        fork::prepare(fork::Hooks { forget_others: |_| (), survived: |_| () });
        let path = std::path::absolute(&start.executable).unwrap_or(start.executable);
        images::record_first(&mut inside.process(), Some(path.to_string_lossy().into_owned()));
    }
    found::restore();
    signals::inherit();
    signals::start();
    let mut context = new_context();
    context.pc = loaded.pc;
    context.registers[4] = loaded.rsp;
    context.flags = 0x202;
    let mut thread = Thread::new(context, Vectors::fresh());
    thread.is_main = true;
    thread.signals.mask = signals::kernel_mask();
    thread.begin(|| ());
    thread.run();
    Ok(())
}

/// `DIR COUNT ASSIGNMENT... EXECUTABLE NAME ARGUMENT...`
fn command_line() -> Option<(PathBuf, Start)> {
    let mut words = env::args_os().skip(1);
    let dir = PathBuf::from(words.next()?);
    let count: usize = words.next()?.to_str()?.parse().ok()?;
    let added: Vec<OsString> = words.by_ref().take(count).collect();
    let executable = PathBuf::from(words.next()?);
    let own = env::vars_os().map(|(name, value)| {
        let mut assignment = name.into_vec();
        assignment.push(b'=');
        assignment.extend(value.into_vec());
        OsString::from_vec(assignment)
    });
    let environment = own.chain(added).collect();
    Some((dir, Start { executable, arguments: words.collect(), environment, random: [0; 16] }))
}

fn check_host() -> Result<(), Problem> {
    match can_run_natively() {
        true => Ok(()),
        false => {
            Err("this processor or kernel is too old for the tracer's own engine; QEMU may do"
                .to_owned())
        }
    }
}

/// Whether the host's vectors are wider than those that the program knows of.
fn wider_vectors() -> bool {
    // SAFETY: saving state was found to be there.
    unsafe { std::arch::x86_64::_xgetbv(0) & !7 != 0 }
}

/// The bytes that the kernel makes up for a program: the same every time where runs are to be.
fn random(inside: Option<&Inside>) -> [u8; 16] {
    let mut bytes = [0; 16];
    match inside.and_then(|inside| inside.settings.seed) {
        Some(seed) => {
            let mut state = seed;
            for byte in &mut bytes {
                state = state
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1_442_695_040_888_963_407);
                *byte = (state >> 56) as u8;
            }
        }
        // SAFETY: the kernel writes into bytes of ours.
        None => unsafe {
            libc::getrandom(bytes.as_mut_ptr().cast(), bytes.len(), 0);
        },
    }
    bytes
}

/// Makes a block known to the process.
fn intern(codes: Vec<Code>) -> &'static LiveBlock {
    match Inside::get() {
        Some(inside) => inside.process().intern(codes),
        None => untraced(codes),
    }
}

/// A block of a program that nobody listens to.
fn untraced(codes: Vec<Code>) -> &'static LiveBlock {
    use std::sync::{LazyLock, Mutex, PoisonError};
    use tracer::block::BlockTable;
    static BLOCKS: LazyLock<Mutex<BlockTable>> =
        LazyLock::new(|| Mutex::new(BlockTable::new(false)));
    BLOCKS.lock().unwrap_or_else(PoisonError::into_inner).intern(codes).0
}
