//! How fast the cores are on a recorded program, and how well sampling knows it: no engine.
//!
//! ```text
//! whither model --record FILE.trace -- PROGRAM
//! cargo run --release -p tracer --example replay -- FILE.trace MACHINE warm|fast|seeds|pairs [SEEDS]
//! ```
//!
//! The busiest thread is held in memory and told to each core, so that decoding does not count.
//! `seeds` times it whole once and samples it with so many seeds; the first three are said apart, and
//! those that are far off. Last, which stalls, and what of all that skipping keeps warm, are off on
//! average. `pairs` compares each window with the same instructions where everything was timed: what
//! differs is what skipping and warming left out, whatever chance did.

mod busiest;

use std::collections::VecDeque;
use std::env;
use std::error::Error;
use std::path::PathBuf;

use busiest::Thread;
use metrology::Coverage;
use model::core::{Accounting, Settings};
use model::event::{Counts, Event};
use model::fast::FastCore;
use model::machine::Machine;
use model::sampled::{Plan, SampledCore};
use model::stream::CoreListener;
use model::warm::Warmer;

fn main() -> Result<(), Box<dyn Error>> {
    let mut words = env::args().skip(1);
    let path = PathBuf::from(words.next().ok_or("say which trace")?);
    let machine = Machine::named(&words.next().ok_or("say which machine")?)?;
    let what = words.next().ok_or("say warm, fast, seeds or pairs")?;
    let seeds: u64 = words.next().map_or(Ok(20), |text| text.parse())?;
    let thread = Thread::busiest_of(path)?;
    match what.as_str() {
        "warm" => {
            let mut warmer = Warmer::new(&machine);
            let seconds = thread.tell(&mut warmer);
            thread.say("warm", seconds);
            println!("{:?}", warmer.branches());
            println!("{:?}", warmer.memory().counts);
            println!("{} translations missed", warmer.memory().translation_misses());
        }
        "fast" => {
            let mut core = FastCore::new(&machine, Settings::default());
            let seconds = thread.tell(&mut core);
            core.finish();
            thread.say("fast", seconds);
            println!("{:?}", core.memory().counts);
            println!("{} translations missed", core.memory().translation_misses());
            let counts = core.counts();
            for event in [Event::Cycles, Event::BranchMisses, Event::TakenBranches] {
                let rate = counts[event] as f64 / thread.instructions as f64;
                println!("{} {:.4} per 1000 instructions", event.name(), 1000.0 * rate);
            }
        }
        "pairs" => thread.pairs(&machine),
        _ => thread.seeds(&machine, seeds),
    }
    Ok(())
}

impl Thread {
    fn tell(&self, core: &mut impl CoreListener) -> f64 {
        self.translate(core);
        let start = cpu_seconds();
        let mut from = 0;
        for &(id, ran, to) in &self.steps {
            core.executed(id, ran, &self.accesses[from..to as usize]);
            from = to as usize;
        }
        cpu_seconds() - start
    }

    fn say(&self, what: &str, seconds: f64) {
        let (mips, each) =
            (self.instructions as f64 / seconds / 1e6, seconds * 1e9 / self.instructions as f64);
        println!("{what}: {} instructions, {mips:.1} MIPS, {each:.2} ns each", self.instructions);
    }

    fn seeds(&self, machine: &Machine, seeds: u64) {
        let mut core = FastCore::new(machine, Settings::default());
        self.say("fast", self.tell(&mut core));
        core.finish();
        let all = core.counts();
        let truth = all[Event::Cycles] as f64;
        let mut sums = vec![0.0; Event::ALL.len()];
        let (mut held, mut offs, mut widths) = (0, Vec::new(), Vec::new());
        for seed in 1..=seeds {
            let plan = Plan { seed, ..plan() };
            let mut core = SampledCore::new(machine, Settings::default(), plan);
            let seconds = self.tell(&mut core);
            core.settle_all();
            let Some(cycles) = core.estimate(Event::Cycles) else { continue };
            let interval = cycles.interval(Coverage::P95);
            held += u64::from(interval.holds(truth));
            offs.push(100.0 * (cycles.value / truth - 1.0));
            widths.push(100.0 * interval.half_width() / truth);
            for (&event, sum) in Event::ALL.iter().zip(&mut sums) {
                *sum += core.estimate(event).map_or(0.0, |estimate| estimate.value);
            }
            if seed <= 3 || (cycles.value / truth - 1.0).abs() > 0.1 {
                println!("seed {seed}");
                self.say("sampled", seconds);
                println!(
                    "  {} windows, {:.2} % ± {:.2} %, dof {:.1}",
                    core.windows(),
                    offs[offs.len() - 1],
                    widths[widths.len() - 1],
                    cycles.degrees_of_freedom
                );
                let longer = core.sampling().and_then(|sampling| sampling.longer_warming);
                if let Some(longer) = longer.map(|longer| longer.scaled(100.0)) {
                    println!(
                        "  warmed for {} instructions, longer {:+.2} % ± {:.2} %",
                        core.warm_instructions(),
                        longer.value,
                        longer.standard_uncertainty
                    );
                }
            }
        }
        let mean = |all: &[f64]| all.iter().sum::<f64>() / all.len().max(1) as f64;
        let squares: Vec<f64> = offs.iter().map(|off| (off - mean(&offs)).powi(2)).collect();
        println!(
            "held {held} of {seeds}; mean error {:+.3} %, scatter {:.3} %, half-width {:.3} %",
            mean(&offs),
            mean(&squares).sqrt(),
            mean(&widths)
        );
        say_parts(&all, &sums, offs.len());
    }
}

impl Thread {
    /// Times everything and, beside it, windows.
    fn pairs(&self, machine: &Machine) {
        let mut full = FastCore::new(machine, Settings::default());
        let mut sampled = SampledCore::new(machine, Settings::default(), plan());
        self.translate(&mut full);
        self.translate(&mut sampled);
        // What both counted in windows after warming alone, and after skipping.
        let mut sums = [[[0.0; PAIRED.len()]; 2]; 2];
        let mut last = 0;
        let counted = |core: &FastCore| PAIRED.map(|event| core.counts()[event]);
        let (mut from, mut begins) = (0, VecDeque::new());
        for &(id, ran, to) in &self.steps {
            begins.push_back((sampled.instructions(), counted(&full)));
            if begins.len() > LONGEST_WINDOW {
                begins.pop_front();
            }
            let windows = sampled.windows();
            let accesses = &self.accesses[from..to as usize];
            sampled.executed(id, ran, accesses);
            if let Some(window) = sampled.latest_window().filter(|_| sampled.windows() > windows)
                && let Some((_, begin)) = begins.iter().find(|(from, _)| *from == window.from)
            {
                let end = counted(&full);
                let sums = &mut sums[usize::from(window.is_skipped)];
                // A window speaks for about what ran since the one before.
                let weight = (window.to - last) as f64 / (window.to - window.from) as f64;
                last = window.to;
                for (k, event) in PAIRED.into_iter().enumerate() {
                    sums[0][k] += weight * window.counts[event] as f64;
                    sums[1][k] += weight * (end[k] - begin[k]) as f64;
                }
            }
            full.executed(id, ran, accesses);
            from = to as usize;
        }
        for (what, [windows, truth]) in ["warmed", "skipped"].into_iter().zip(sums) {
            println!("windows after what was {what}, and the same instructions in truth:");
            for (k, event) in PAIRED.into_iter().enumerate() {
                let off = 100.0 * (windows[k] / truth[k].max(1.0) - 1.0);
                let [shown, truth] = [windows[k], truth[k]];
                println!("  {:20} {shown:14.0} {truth:14.0} {off:+.2} %", event.name());
            }
        }
    }
}

/// Blocks that a window has at most.
const LONGEST_WINDOW: usize = 20_000;
/// What is compared in pairs.
const PAIRED: [Event; 14] = [
    Event::Cycles,
    Event::StallStore,
    Event::L1dStoreMisses,
    Event::L2StoreMisses,
    Event::L3StoreMisses,
    Event::PrefetchL2,
    Event::PrefetchUseful,
    Event::DirectionMisses,
    Event::L1iMisses,
    Event::L1dLoadMisses,
    Event::L2LoadMisses,
    Event::L3LoadMisses,
    Event::DtlbLoadWalks,
    Event::MemoryReads,
];

/// Says which events are off most on average: stalls as parts of all cycles, others of their own.
fn say_parts(truth: &Counts, sums: &[f64], seeds: usize) {
    let off = |event: Event| {
        let mean = sums.get(event as usize).copied().unwrap_or(0.0) / seeds.max(1) as f64;
        100.0 * (mean - truth[event] as f64)
    };
    let is_stall = |event: &&Event| event.name().starts_with("stall-");
    let mut stalls: Vec<Event> = Event::ALL.iter().filter(is_stall).copied().collect();
    stalls.sort_by(|a, b| off(*b).abs().total_cmp(&off(*a).abs()));
    for event in stalls.into_iter().take(6) {
        let part = off(event) / truth[Event::Cycles] as f64;
        println!("  {part:+.2} % of all cycles: {}", event.name());
    }
    for event in KEPT_WARM {
        println!("  {:+.2} %: {}", off(event) / (truth[event] as f64).max(1.0), event.name());
    }
}

/// What skipping keeps warm, or does not.
const KEPT_WARM: [Event; 10] = [
    Event::DirectionMisses,
    Event::TargetMisses,
    Event::Resteers,
    Event::L1iMisses,
    Event::L2CodeMisses,
    Event::ItlbWalks,
    Event::DtlbLoadWalks,
    Event::L1dLoadMisses,
    Event::L2LoadMisses,
    Event::L3LoadMisses,
];

/// The usual plan, with what the environment changes of it: WINDOW and PRIME instructions.
fn plan() -> Plan {
    let asked = |name: &str| env::var(name).ok().and_then(|text| text.parse().ok());
    let usual = Plan::default();
    Plan {
        window_instructions: asked("WINDOW").unwrap_or(usual.window_instructions),
        prime_instructions: asked("PRIME").unwrap_or(usual.prime_instructions),
        warm_instructions: asked("WARM").unwrap_or(usual.warm_instructions),
        ..usual
    }
}

/// CPU time, so that other work on the machine does not count.
fn cpu_seconds() -> f64 {
    let text = std::fs::read_to_string("/proc/self/schedstat").unwrap_or_default();
    let nanoseconds = text.split(' ').next().and_then(|first| first.parse::<f64>().ok());
    nanoseconds.unwrap_or(f64::NAN) / 1e9
}
