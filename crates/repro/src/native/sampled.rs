//! What `whither record` sees of a command on this machine, over as many runs as there is time for.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use store::{Database, EpochEntry};
use vocab::ImageKind;

use super::{as_traced, clock_hz};
use crate::context::Context;
use crate::peers::{file, our_binary};
use crate::run::{self, Task, Wrap};

/// The one event that every machine has.
const EVENT: &str = "cpu-clock";
/// Samples a second, run by run: primes, so that a program that always takes the same time is not
/// always interrupted at the same places.
const HERTZ: [u64; 5] = [4999, 4801, 4603, 4397, 4201];
/// The format of what is kept.
const FORMAT: &str = "2";

/// Samples of a task's runs.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Sampled {
    /// How often it ran.
    pub runs: u64,
    /// Nanoseconds that a sample stands for, on average.
    pub period_ns: f64,
    /// The core's clock meanwhile.
    pub clock_hz: f64,
    /// (offset, samples) by the file's path.
    pub images: BTreeMap<String, Vec<(u64, u64)>>,
    /// Samples in the kernel.
    pub kernel: u64,
    /// Samples in code of no file: generated, or the kernel's page for clocks.
    pub elsewhere: u64,
    /// Samples that nobody could place, and those that were lost.
    pub unplaced: u64,
}

impl Sampled {
    /// Samples in files.
    pub fn in_files(&self) -> u64 {
        self.images.values().flatten().map(|(_, samples)| samples).sum()
    }

    /// The kernel's part of all.
    pub fn kernel_share(&self) -> f64 {
        let all = self.in_files() + self.kernel + self.elsewhere + self.unplaced;
        self.kernel as f64 / all.max(1) as f64
    }
}

/// Samples a task until a few seconds are over, kept from an earlier time or now.
///
/// # Errors
///
/// A run's sentence, or that of the database.
pub fn sampled(context: &Context, task: &Task) -> Result<Sampled, String> {
    let seconds = if context.quick { 3 } else { 15 };
    let key = context.key("native-samples", task, &[FORMAT], seconds);
    if let Some(sampled) = context.kept.find(&key) {
        return Ok(sampled);
    }
    let streams = context.work.streams()?;
    let database = streams.join("native-samples");
    let began = Instant::now();
    let mut clocks = vec![clock_hz()];
    for hertz in HERTZ.iter().cycle() {
        run::run(task, &recording(context, &streams, *hertz)?, &streams)?;
        clocks.push(clock_hz());
        if began.elapsed() >= Duration::from_secs(seconds as u64) {
            break;
        }
    }
    clocks.sort_by(f64::total_cmp);
    let median = clocks.get(clocks.len() / 2).copied().unwrap_or_default();
    let sampled = Sampled { clock_hz: median, ..read(&database)? };
    context.kept.put(&key, &sampled)?;
    Ok(sampled)
}

fn recording(context: &Context, streams: &Path, hertz: u64) -> Result<Wrap, String> {
    let mut wrap = as_traced();
    let (whither, database) = (our_binary(context)?, file(streams, "native-samples"));
    let hertz = hertz.to_string();
    let words = [whither.as_str(), "record", "-e", EVENT, "-F", &hertz, "-o", &database, "--"];
    wrap.words.extend(words.map(str::to_owned));
    Ok(wrap)
}

/// All runs together.
fn read(database: &Path) -> Result<Sampled, String> {
    let epochs = Database::open(database).epochs().map_err(|e| e.to_string())?.value;
    let mut sums: BTreeMap<String, BTreeMap<u64, u64>> = BTreeMap::new();
    let mut sampled = Sampled::default();
    let (mut events, mut all) = (0.0, 0.0);
    for epoch in &epochs {
        let stood_for = add(epoch, &mut sampled, &mut sums)?;
        let taken = epoch.tally().stored.as_f64();
        events += stood_for as f64 * taken;
        all += taken;
    }
    if all == 0.0 {
        return Err("no samples came: it may run too short a time".to_owned());
    }
    let list =
        |(path, offsets): (String, BTreeMap<u64, u64>)| (path, offsets.into_iter().collect());
    sampled.images = sums.into_iter().map(list).collect();
    sampled.period_ns = events / all;
    Ok(sampled)
}

/// Adds a run; the period of its samples comes back.
fn add(
    epoch: &EpochEntry,
    sampled: &mut Sampled,
    sums: &mut BTreeMap<String, BTreeMap<u64, u64>>,
) -> Result<u64, String> {
    let profile = epoch.load().map_err(|e| e.to_string())?.value;
    for (spot, count) in &profile.counts {
        let Some(image) = profile.image(spot.image) else { continue };
        match image.kind {
            ImageKind::File => {
                let offsets = sums.entry(image.path.clone()).or_default();
                *offsets.entry(spot.offset.0).or_default() += count.0;
            }
            ImageKind::Kernel | ImageKind::Module => sampled.kernel += count.0,
            ImageKind::Vdso | ImageKind::Generated(_) => sampled.elsewhere += count.0,
        }
    }
    let tally = epoch.tally();
    sampled.unplaced += tally.unplaced_total().0 + tally.lost.0;
    sampled.runs += 1;
    let period = epoch.facts().periods.get(EVENT).copied();
    period.ok_or_else(|| format!("a recording does not say how often it sampled {EVENT}"))
}
