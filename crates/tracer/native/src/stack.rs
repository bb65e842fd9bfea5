//! The program's first stack: arguments, environment, and what the kernel tells.
//!
//! ```text
//! count, pointers to arguments, pointers to the environment, facts     from where it begins
//! sixteen bytes made up, the processor's name
//! arguments, one behind the other; the environment; the file's name     to the top
//! ```
//!
//! Programs that show a title write over their arguments, which others find where the kernel says that
//! they are: it is told.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use crate::guest;
use crate::load::{Start, map};
use crate::space::{PAGE, Space};

/// Bytes of the stack where the system sets no bound, and the least and most that are mapped.
const STACK_BYTES: u64 = 8 << 20;
const STACK_MAX: u64 = 1 << 30;

/// Makes it. Says where it begins.
pub(crate) fn make(start: &Start, space: &mut Space, facts: &[(u64, u64)]) -> Option<u64> {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: writes a struct of ours.
    unsafe { libc::getrlimit(libc::RLIMIT_STACK, &raw mut limit) };
    let strings: usize =
        start.arguments.iter().chain(&start.environment).map(|string| string.len() + 9).sum();
    let wanted = if limit.rlim_cur > STACK_MAX { STACK_BYTES } else { limit.rlim_cur };
    let len = (wanted.max(1 << 20) + strings as u64 * 2).next_multiple_of(PAGE);
    let bottom = space.place(len, false)?;
    let protection = libc::PROT_READ | libc::PROT_WRITE;
    map(bottom, len, protection, None)?;
    space.add(bottom, bottom + len, protection);
    let text = Text::put(start, bottom + len - 16)?;
    let platform_at = (text.arguments_start - 32) & !15;
    let random_at = platform_at - 16;
    guest::write(platform_at, b"x86_64\0");
    guest::write(random_at, &start.random);
    let told = [
        (libc::AT_RANDOM, random_at),
        (libc::AT_EXECFN, text.name),
        (libc::AT_PLATFORM, platform_at),
    ];
    let facts = facts.iter().copied().chain(told).chain(inherited()).chain([(libc::AT_NULL, 0)]);
    let facts: Vec<u64> = facts.flat_map(|(key, value)| [key, value]).collect();
    let mut words = vec![start.arguments.len() as u64];
    words.extend(&text.arguments);
    words.push(0);
    words.extend(&text.environment);
    words.push(0);
    words.extend(&facts);
    let rsp = (random_at - words.len() as u64 * 8) & !15;
    guest::write_words(rsp, &words).then_some(())?;
    tell_kernel(&text, &facts);
    name_thread(&start.executable);
    Some(rsp)
}

/// What the kernel told the engine and holds for the program too.
fn inherited() -> Vec<(u64, u64)> {
    let keys = [
        libc::AT_PAGESZ,
        libc::AT_CLKTCK,
        libc::AT_UID,
        libc::AT_EUID,
        libc::AT_GID,
        libc::AT_EGID,
        libc::AT_SECURE,
        libc::AT_FLAGS,
        libc::AT_HWCAP,
        libc::AT_MINSIGSTKSZ,
    ];
    // SAFETY: asks the C library for numbers.
    keys.map(|key| (key, unsafe { libc::getauxval(key) })).to_vec()
}

/// Where the strings are.
struct Text {
    arguments_start: u64,
    environment_start: u64,
    end: u64,
    arguments: Vec<u64>,
    environment: Vec<u64>,
    /// The file's name, as it was given.
    name: u64,
}

impl Text {
    /// Puts them so that they end at an address.
    fn put(start: &Start, end: u64) -> Option<Text> {
        let name = start.executable.as_os_str();
        let strings = start.arguments.iter().chain(&start.environment).map(OsString::as_os_str);
        let bytes: u64 = strings.clone().chain([name]).map(|string| string.len() as u64 + 1).sum();
        let mut at = end - bytes;
        let first = at;
        let mut all = Vec::with_capacity(bytes as usize);
        let mut add = |string: &OsStr| {
            all.extend_from_slice(string.as_bytes());
            all.push(0);
            let here = at;
            at += string.len() as u64 + 1;
            here
        };
        let arguments: Vec<u64> = start.arguments.iter().map(|string| add(string)).collect();
        let environment: Vec<u64> = start.environment.iter().map(|string| add(string)).collect();
        let name = add(name);
        let environment_start = environment.first().copied().unwrap_or(name);
        guest::write(first, &all).then_some(Text {
            arguments_start: first,
            environment_start,
            end: name,
            arguments,
            environment,
            name,
        })
    }
}

/// Tells the kernel where arguments, environment and facts are, for all who ask it about the process. One
/// that does not let itself be told shows those of the engine.
fn tell_kernel(text: &Text, facts: &[u64]) -> Option<()> {
    const SET_MM: i32 = 35;
    const SET_MM_MAP: u64 = 14;
    let about = std::fs::read_to_string("/proc/self/stat").ok()?;
    // Behind the name, which may hold anything, fields are numbered from 3 on.
    let fields: Vec<&str> = about.rsplit_once(')')?.1.split_whitespace().collect();
    let field = |number: usize| fields.get(number - 3)?.parse::<u64>().ok();
    // SAFETY: asks where the heap ends.
    let heap_end = unsafe { libc::syscall(libc::SYS_brk, 0) } as u64;
    // Code, data, heap and stack stay the engine's.
    let map: [u64; 13] = [
        field(26)?,
        field(27)?,
        field(45)?,
        field(46)?,
        field(47)?,
        heap_end,
        field(28)?,
        text.arguments_start,
        text.environment_start,
        text.environment_start,
        text.end,
        facts.as_ptr() as u64,
        // The length of the facts, and no other file.
        (facts.len() as u64 * 8) | (u64::from(u32::MAX) << 32),
    ];
    // SAFETY: the kernel reads what is ours, and checks it.
    unsafe { libc::prctl(SET_MM, SET_MM_MAP, map.as_ptr(), size_of_val(&map), 0) };
    Some(())
}

/// Names the process after the program, as the kernel does.
fn name_thread(executable: &Path) {
    let mut name = [0u8; 16];
    let own = executable.file_name().unwrap_or_default().as_bytes();
    let len = own.len().min(15);
    name[..len].copy_from_slice(&own[..len]);
    // SAFETY: the kernel reads sixteen bytes of ours.
    unsafe { libc::prctl(libc::PR_SET_NAME, name.as_ptr()) };
}
