//! What tracing costs, in CPU nanoseconds a traced instruction.
//!
//! ```text
//! cargo run --release -p tracer --example cost -- null|blocks|tally|hash|warm|fast|sampled|FILE.trace \
//!     gzip -9 -c FILE
//! ```
//!
//! Another build's plugin is taken in place of this one's where the environment names it as PLUGIN, and
//! another native engine as NATIVE; then nothing is built.
//! The machine is zen4, or what the environment names as MACHINE.
//! The program's output goes where ours goes; the figures go to stderr.

use std::error::Error;
use std::ffi::OsString;
use std::path::Path;
use std::time::Instant;
use std::{env, fs};

use model::core::Settings;
use model::machine::text_of;
use model::stream::{Access, BlockId, CoreListener, StaticBlock};
use tracer::counts::counts;
use tracer::launch::{Engines, Launch};
use tracer::modelled::{CoreAsk, ModelAsk};
use tracer::results::ProcessKey;
use tracer::settings::Listener;
use tracer::stream::{InstructionStream, Recorded};
use tracer::trace::Audience;

fn main() -> Result<(), Box<dyn Error>> {
    let mut words = env::args_os().skip(1);
    let kind = words.next().ok_or("say who listens")?;
    let program = words.next().ok_or("say what to run")?;
    let arguments: Vec<OsString> = words.collect();
    let target = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target");
    // An engine that the environment names runs as it is; nothing need be built for it.
    let (plugin, native) = match (env::var_os("PLUGIN"), env::var_os("NATIVE")) {
        (_, Some(native)) => (Vec::new(), fs::read(native)?),
        (Some(plugin), None) => {
            (fs::read(plugin)?, fs::read(tracer_embed::build(&target)?.native)?)
        }
        (None, None) => {
            let built = tracer_embed::build(&target)?;
            (fs::read(built.plugin)?, fs::read(built.native)?)
        }
    };
    let engines = Engines { plugin: &plugin, native: &native };
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
        Some("warm") => modelled(CoreAsk::Warm)?,
        Some("fast") => modelled(CoreAsk::Fast)?,
        Some("sampled") => modelled(CoreAsk::Sampled { error_ppm: 30_000, seed: 1 })?,
        _ => Listener::Trace(kind.clone().into()),
    };
    let before = children_seconds();
    let finished = launch(listener.clone()).run(&engines)?;
    let seconds = children_seconds() - before;
    let replay_seconds = match &listener {
        Listener::Trace(path) => Some(replay(path)?),
        _ => None,
    };
    let counted = launch(Listener::Tally { counts_accesses: false }).run(&engines)?;
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
    let published = finished.processes.values().flat_map(|process| process.published.values());
    // A hash; the account of a core is long and not for reading.
    for hash in published.filter(|bytes| bytes.len() <= 32) {
        eprintln!("{hash:02x?}");
    }
    if let (Some(replay), Listener::Trace(path)) = (replay_seconds, &listener) {
        let bytes = fs::metadata(path)?.len() as f64;
        let (size, time) = (bytes / instructions as f64, replay * 1e9 / instructions as f64);
        eprintln!("the trace takes {size:.3} bytes and {time:.2} ns an instruction to replay");
    }
    Ok(())
}

/// A modelled core of one machine.
fn modelled(core: CoreAsk) -> Result<Listener, Box<dyn Error>> {
    let name = env::var("MACHINE").unwrap_or_else(|_| "zen4".to_owned());
    let machine = text_of(&name).ok_or("the machine is gone")?.to_owned();
    Ok(Listener::Model(ModelAsk { name, machine, core, settings: Settings::default() }))
}

/// Replays a trace to nobody; the seconds that it takes.
fn replay(path: &Path) -> Result<f64, Box<dyn Error>> {
    let start = Instant::now();
    Recorded { path: path.into() }.play(&mut Nobody)?;
    Ok(start.elapsed().as_secs_f64())
}

struct Nobody;

impl CoreListener for Nobody {
    fn translated(&mut self, _: BlockId, _: &StaticBlock) {}
    fn executed(&mut self, _: BlockId, _: u16, _: &[Access]) {}
}

impl Audience for Nobody {
    type Core = Nobody;

    fn thread(&mut self, _: ProcessKey, _: u32) -> Nobody {
        Nobody
    }

    fn ended(&mut self, _: ProcessKey, _: u32, _: Nobody) {}
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
