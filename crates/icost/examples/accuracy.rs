//! The graph against really idealised cores, on windows of a recorded trace:
//! `cargo run --release -p icost --example accuracy TRACE [MACHINE [FACT=VALUE…]]`

use std::collections::BTreeMap;

use icost::{Arbitration, Categories, Fixed, Labeller, Lanes, Lattice, subsets_up_to};
use model::core::{Life, Settings, Watcher};
use model::machine::{Machine, text_of};
use model::reference::ReferenceCore;
use model::stream::{Access, BlockId, CoreListener, StaticBlock};
use model::warm::Warmer;
use tracer::results::ProcessKey;
use tracer::stream::{InstructionStream, Recorded};
use tracer::trace::Audience;

const WINDOW: u64 = 100_000;
const EVERY: u64 = 1_500_000;

struct Graph {
    labeller: Labeller,
    lanes: Lanes<40>,
    first: Option<u64>,
    last: u64,
}

impl Watcher for Graph {
    fn lived(&mut self, life: &Life) {
        self.first.get_or_insert(life.dispatched);
        self.last = life.committed;
        let step = self.labeller.label(life);
        self.lanes.step(&step);
    }
}

type Event = (BlockId, u16, Vec<Access>);

struct Heard {
    machine: Machine,
    warmer: Warmer,
    blocks: Vec<StaticBlock>,
    position: u64,
    window: Vec<Event>,
    left: u64,
    start: Option<Warmer>,
    sums: BTreeMap<Categories, (f64, f64)>,
    worst: f64,
}

impl Heard {
    fn evaluate(&mut self) {
        let Some(start) = self.start.take() else { return };
        let fixed = Fixed::of(&self.machine);
        let sets = subsets_up_to(2);
        let run = |settings: Settings, watcher: Option<Graph>| {
            let (memory, predictor) = start.clone().into_units();
            let watcher = watcher.unwrap_or_else(|| Graph {
                labeller: Labeller::new(fixed),
                lanes: Lanes::new(fixed, &[], Arbitration::Frozen),
                first: None,
                last: 0,
            });
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
        let frozen = std::env::var_os("FROZEN").is_some();
        let arbitration = if frozen { Arbitration::Frozen } else { Arbitration::Anew };
        let graph = Graph {
            labeller: Labeller::new(fixed),
            lanes: Lanes::new(fixed, &sets, arbitration),
            first: None,
            last: 0,
        };
        let base = run(Settings::default(), Some(graph));
        let observed = (base.watcher().last - base.watcher().first.unwrap_or(0)) as f64;
        let times = base.watcher().lanes.times();
        self.worst = self.worst.max((times[0].1 / observed - 1.0).abs());
        for (set, time) in times {
            let settings = Settings { ideal: set.ideal(), ..Settings::default() };
            let really = run(settings, None);
            let really = (really.watcher().last - really.watcher().first.unwrap_or(0)) as f64;
            let sum = self.sums.entry(set).or_default();
            sum.0 += time;
            sum.1 += really;
        }
        self.window.clear();
    }
}

impl CoreListener for Heard {
    fn translated(&mut self, id: BlockId, block: &StaticBlock) {
        self.blocks.push(block.clone());
        self.warmer.translated(id, block);
    }

    fn executed(&mut self, id: BlockId, ran: u16, accesses: &[Access]) {
        if self.position % EVERY < u64::from(ran) && self.start.is_none() && self.position > 0 {
            self.start = Some(self.warmer.clone());
            self.left = WINDOW;
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
            blocks: Vec::new(),
            position: 0,
            window: Vec::new(),
            left: 0,
            start: None,
            sums: BTreeMap::new(),
            worst: 0.0,
        }
    }

    fn record(&mut self, _: ProcessKey, _: &tracer::record::ProcessRecord) {}

    fn ended(&mut self, _: ProcessKey, _: u32, core: Heard) {
        if core.sums.is_empty() {
            return;
        }
        let graph = Lattice::new(core.sums.iter().map(|(&set, sum)| (set, sum.0)));
        let really = Lattice::new(core.sums.iter().map(|(&set, sum)| (set, sum.1)));
        let all = really.time(Categories::NONE).unwrap_or(1.0);
        println!("cycles {all}, worst window of the graph off by {:.3} %", 100.0 * core.worst);
        println!("{:<14}{:>9}{:>9}{:>9}", "set", "graph %", "really %", "error %");
        let (mut error, mut count) = (0.0, 0);
        for set in subsets_up_to(2).into_iter().skip(1) {
            let (Some(g), Some(r)) = (graph.icost(set), really.icost(set)) else { continue };
            let (g, r) = (100.0 * g / all, 100.0 * r / all);
            if r.abs() >= 5.0 {
                error += (g - r).abs() / r.abs();
                count += 1;
            }
            if r.abs() >= 1.0 || g.abs() >= 1.0 {
                println!("{:<14}{g:>9.2}{r:>9.2}{:>9.1}", set.name(), 100.0 * (g - r) / r.abs());
            }
        }
        println!(
            "mean error {:.1} % over {count} of at least 5 %",
            100.0 * error / f64::from(count.max(1))
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
