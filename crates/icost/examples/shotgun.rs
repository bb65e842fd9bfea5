//! The shotgun profiler against the full graph and against really idealised cores, on windows of a
//! recorded trace: `cargo run --release -p icost --example shotgun TRACE [MACHINE [FACT=VALUE…]]`
//!
//! SIMULATE=0 leaves the idealised cores out; SIGNATURE and DETAIL set the rates, WINDOW and EVERY
//! the windows; with MORE=n only one window of n + 1 is compared, and of the others detailed samples
//! are taken alone.

use std::collections::BTreeMap;

use icost::shotgun::{CodeBook, Defaults, LabelRecorder, Labels, Question, analyse};
use icost::{Arbitration, Categories, Fixed, Labeller, Lanes, Lattice, subsets_up_to};
use model::core::{Life, Settings, Watcher};
use model::machine::{Machine, text_of};
use model::monitor::{Monitor, Rates, Samples};
use model::reference::ReferenceCore;
use model::stream::{Access, BlockId, CoreListener, StaticBlock};
use model::warm::Warmer;
use tracer::results::ProcessKey;
use tracer::stream::{InstructionStream, Recorded};
use tracer::trace::Audience;

fn asked(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

struct Graph {
    labeller: Labeller,
    lanes: Lanes<40>,
    monitor: Option<Monitor<LabelRecorder>>,
    span: Option<(u64, u64)>,
}

impl Watcher for Graph {
    fn lived(&mut self, life: &Life) {
        let first = self.span.map_or(life.dispatched, |span| span.0);
        self.span = Some((first, life.committed));
        if let Some(monitor) = &mut self.monitor {
            let step = self.labeller.label(life);
            self.lanes.step(&step);
            monitor.lived(life);
        }
    }
}

impl Graph {
    fn cycles(&self) -> f64 {
        self.span.map_or(0.0, |(first, last)| (last - first) as f64)
    }
}

type Event = (BlockId, u16, Vec<Access>);

struct Heard {
    machine: Machine,
    warmer: Warmer,
    code: CodeBook,
    blocks: Vec<StaticBlock>,
    position: u64,
    window: Vec<Event>,
    left: u64,
    start: Option<Warmer>,
    windows: u64,
    samples: Samples<Labels>,
    sums: BTreeMap<Categories, (f64, f64)>,
}

impl Heard {
    fn evaluate(&mut self) {
        let Some(start) = self.start.take() else { return };
        let fixed = Fixed::of(&self.machine);
        let sets = subsets_up_to(2);
        let run = |settings: Settings, watcher: Graph| {
            let (memory, predictor) = start.clone().into_units();
            let mut core = ReferenceCore::watched(&self.machine, settings, watcher)
                .with_units(memory, predictor);
            for (k, block) in self.blocks.iter().enumerate() {
                core.translated(BlockId(k as u32), block);
            }
            for (id, ran, accesses) in &self.window {
                core.executed(*id, *ran, accesses);
            }
            core.finish();
            core
        };
        let graph = |sets: &[Categories], monitor: Option<Monitor<LabelRecorder>>| Graph {
            labeller: Labeller::new(fixed),
            lanes: Lanes::new(fixed, sets, Arbitration::Anew),
            monitor,
            span: None,
        };
        self.windows += 1;
        let rates = Rates {
            signature_every: asked("SIGNATURE", Rates::default().signature_every),
            detail_every: asked("DETAIL", Rates::default().detail_every),
            seed: self.windows,
        };
        let monitor = Monitor::new(LabelRecorder::new(fixed), rates).with_truth();
        if !(self.windows - 1).is_multiple_of(asked("MORE", 0) + 1) {
            let base = run(Settings::default(), graph(&[], Some(monitor)));
            let taken = base.watcher().monitor.as_ref().map(|monitor| monitor.samples().clone());
            let mut samples = taken.unwrap_or_default();
            samples.signatures.clear();
            samples.paths.clear();
            samples.instructions = 0;
            self.samples.merge(samples);
            self.window.clear();
            return;
        }
        let base = run(Settings::default(), graph(&sets, Some(monitor)));
        for (set, time) in base.watcher().lanes.times() {
            let settings = Settings { ideal: set.ideal(), ..Settings::default() };
            let really = if asked("SIMULATE", 1) == 0 {
                time
            } else {
                run(settings, graph(&[], None)).watcher().cycles()
            };
            let sum = self.sums.entry(set).or_default();
            sum.0 += time;
            sum.1 += really;
        }
        if let Some(monitor) = &base.watcher().monitor {
            self.samples.merge(monitor.samples().clone());
        }
        self.window.clear();
    }
}

impl CoreListener for Heard {
    fn translated(&mut self, id: BlockId, block: &StaticBlock) {
        self.blocks.push(block.clone());
        self.code.add(block);
        self.warmer.translated(id, block);
    }

    fn executed(&mut self, id: BlockId, ran: u16, accesses: &[Access]) {
        let every = asked("EVERY", 1_500_000);
        // The first window is no larger a share of the program than any other: begin late.
        if self.position > every * (self.windows + 1) && self.start.is_none() {
            self.start = Some(self.warmer.clone());
            self.left = asked("WINDOW", 100_000);
        }
        self.position += u64::from(ran);
        self.warmer.executed(id, ran, accesses);
        if self.start.is_some() {
            self.window.push((id, ran, accesses.to_vec()));
            self.left = self.left.saturating_sub(u64::from(ran));
            if self.left == 0 {
                self.evaluate();
            }
        }
    }
}

struct Hearing(Machine);

impl Audience for Hearing {
    type Core = Heard;

    fn thread(&mut self, _: ProcessKey, _: u32) -> Heard {
        Heard {
            machine: self.0.clone(),
            warmer: Warmer::new(&self.0),
            code: CodeBook::new(&self.0),
            blocks: Vec::new(),
            position: 0,
            window: Vec::new(),
            left: 0,
            start: None,
            windows: 0,
            samples: Samples::default(),
            sums: BTreeMap::new(),
        }
    }

    fn record(&mut self, _: ProcessKey, _: &tracer::record::ProcessRecord) {}

    fn ended(&mut self, _: ProcessKey, _: u32, core: Heard) {
        if core.sums.is_empty() {
            return;
        }
        let sets = subsets_up_to(2);
        let question = Question {
            fixed: Fixed::of(&core.machine),
            defaults: Defaults::of(&core.machine),
            sets: &sets,
            arbitration: Arbitration::Anew,
            seed: 1,
        };
        let began = std::time::Instant::now();
        let found = analyse::<40>(&core.samples, &core.code, &question);
        eprintln!("analysed in {:.1} s", began.elapsed().as_secs_f64());
        let costs = found.costs();
        let shotgun = costs.whole();
        let graph = Lattice::new(core.sums.iter().map(|(&set, sum)| (set, sum.0)));
        let really = Lattice::new(core.sums.iter().map(|(&set, sum)| (set, sum.1)));
        let time = |lattice: &Lattice| lattice.time(Categories::NONE).unwrap_or(1.0);
        let instructions = core.samples.instructions as f64;
        println!(
            "windows {}, CPI really {:.4}, graph {:.4}, shotgun {:.4}",
            core.windows,
            time(&really) / instructions,
            time(&graph) / instructions,
            found.cycles_per_instruction().unwrap_or(f64::NAN)
        );
        println!("{:?}", found.tally);
        println!("{:<14}{:>9}{:>9}{:>9}{:>8}", "set", "really %", "graph %", "shotgun", "±");
        let (mut against_graph, mut against_really, mut graph_error, mut count) =
            (0.0, 0.0, 0.0, 0);
        let mut counted = 0;
        for set in sets.into_iter().skip(1) {
            let share =
                |lattice: &Lattice| 100.0 * lattice.icost(set).unwrap_or(0.0) / time(lattice);
            let (r, g, s) = (share(&really), share(&graph), share(shotgun));
            let half = costs.icost(set).map_or(f64::NAN, |e| 200.0 * e.standard_uncertainty);
            if r.abs() >= 5.0 {
                against_really += (s - r).abs() / r.abs();
                graph_error += (g - r).abs() / r.abs();
                count += 1;
            }
            if g.abs() >= 5.0 {
                against_graph += (s - g).abs() / g.abs();
                counted += 1;
            }
            if [r, g, s].iter().any(|x| x.abs() >= 1.0) {
                println!("{:<14}{r:>9.2}{g:>9.2}{s:>9.2}{half:>8.2}", set.name());
            }
        }
        let mean = |sum: f64, n: i32| 100.0 * sum / f64::from(n.max(1));
        println!(
            "over {count} of at least 5 %: graph {:.1} %, shotgun {:.1} %; shotgun against graph {:.1} %",
            mean(graph_error, count),
            mean(against_really, count),
            mean(against_graph, counted)
        );
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let trace = arguments.next().ok_or("which trace?")?;
    let name = arguments.next().unwrap_or_else(|| "icost-table6".to_owned());
    let rest: Vec<String> = arguments.collect();
    let facts: Vec<(&str, &str)> = rest.iter().filter_map(|fact| fact.split_once('=')).collect();
    let machine = Machine::load(&name, text_of(&name).ok_or("no such machine")?, &facts)?;
    Recorded { path: trace.into() }.play(&mut Hearing(machine))?;
    Ok(())
}
