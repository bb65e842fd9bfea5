//! What tracing costs, in CPU nanoseconds a traced instruction.
//!
//! ```text
//! cargo run --release -p tracer --example cost -- null|blocks|tally|hash|FILE.trace gzip -9 -c FILE
//! ```
//!
//! The program's output goes where ours goes; the figures go to stderr.

use std::error::Error;
use std::ffi::OsString;
use std::path::Path;
use std::{env, fs};

use tracer::counts::counts;
use tracer::launch::Launch;
use tracer::settings::Listener;

fn main() -> Result<(), Box<dyn Error>> {
    let mut words = env::args_os().skip(1);
    let kind = words.next().ok_or("say who listens")?;
    let program = words.next().ok_or("say what to run")?;
    let arguments: Vec<OsString> = words.collect();
    let plugin = fs::read(tracer_embed::build(
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target").as_path(),
    )?)?;
    let launch = |listener| Launch {
        arguments: arguments.clone(),
        listener,
        is_repeatable: true,
        ..Launch::new(program.clone())
    };
    let listener = match kind.to_str() {
        Some("null") => Listener::Null,
        Some("blocks") => Listener::Tally { counts_accesses: false },
        Some("tally") => Listener::Tally { counts_accesses: true },
        Some("hash") => Listener::Hash,
        _ => Listener::Trace(kind.clone().into()),
    };
    let before = children_seconds();
    launch(listener).run(&plugin)?;
    let seconds = children_seconds() - before;
    let counted = launch(Listener::Tally { counts_accesses: false }).run(&plugin)?;
    let all = counts(&counted.processes);
    let instructions: u64 = all.iter().map(|process| process.totals().instructions).sum();
    let partials: u64 = all
        .iter()
        .flat_map(|process| process.threads.values())
        .flat_map(|thread| &thread.partials)
        .map(|partial| partial.times)
        .sum();
    let each = seconds * 1e9 / instructions as f64;
    eprintln!(
        "{}: {instructions} instructions, {partials} partial runs, {seconds:.2} s CPU, {each:.2} ns each",
        kind.display()
    );
    Ok(())
}

/// The CPU time of children that ended.
fn children_seconds() -> f64 {
    // SAFETY: all-zero is a valid rusage, and the kernel fills it.
    let usage = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        libc::getrusage(libc::RUSAGE_CHILDREN, &raw mut usage);
        usage
    };
    let seconds = |time: libc::timeval| time.tv_sec as f64 + time.tv_usec as f64 * 1e-6;
    seconds(usage.ru_utime) + seconds(usage.ru_stime)
}
