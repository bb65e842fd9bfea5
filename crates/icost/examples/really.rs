//! The graph beside cores that are really idealised, on a trace, category by category:
//! `cargo run --release -p icost --example really TRACE [MACHINE]`
//!
//! It prints what idealising each category saves, in percent of the time, and how many cycles in a
//! hundred stand on edges that answer to no category: those are what the graph cannot take away.

use icost::sample::Keeper;
use icost::{Arbitration, Categories, Category, Costs, Fixed, Player, Step, subsets_up_to};
use model::core::{Life, Settings, Watcher};
use model::machine::Machine;
use model::reference::ReferenceCore;
use model::stream::{Access, BlockId, CoreListener, StaticBlock};
use tracer::results::ProcessKey;
use tracer::stream::{InstructionStream, Recorded};
use tracer::trace::Audience;

/// Instructions that are passed over first, and those that are timed.
const SKIPPED: u64 = 2_000_000;
const TIMED: u64 = 300_000;
/// What saves less is not told, in percent.
const LEAST: f64 = 3.0;

#[derive(Default)]
struct Heard {
    blocks: Vec<StaticBlock>,
    events: Vec<(BlockId, u16, Vec<Access>)>,
    instructions: u64,
}

impl CoreListener for Heard {
    fn translated(&mut self, _: BlockId, block: &StaticBlock) {
        self.blocks.push(block.clone());
    }

    fn executed(&mut self, id: BlockId, ran: u16, accesses: &[Access]) {
        if (SKIPPED..SKIPPED + TIMED).contains(&self.instructions) {
            self.events.push((id, ran, accesses.to_vec()));
        }
        self.instructions += u64::from(ran);
    }
}

#[derive(Default)]
struct Ends(Option<u64>, u64);

impl Watcher for Ends {
    fn lived(&mut self, life: &Life) {
        self.0.get_or_insert(life.dispatched);
        self.1 = life.committed;
    }
}

struct Hearing(Machine);

impl Hearing {
    fn run<W: Watcher>(&self, heard: &Heard, set: Categories, watcher: W) -> ReferenceCore<W> {
        let settings = Settings { ideal: set.ideal(), ..Settings::default() };
        let mut core = ReferenceCore::watched(&self.0, settings, watcher);
        for (k, block) in heard.blocks.iter().enumerate() {
            core.translated(BlockId(k as u32), block);
        }
        for (id, ran, accesses) in &heard.events {
            core.executed(*id, *ran, accesses);
        }
        core.finish();
        core
    }

    fn really(&self, heard: &Heard, set: Categories) -> f64 {
        let core = self.run(heard, set, Ends::default());
        let Ends(first, last) = *core.watcher();
        (last - first.unwrap_or(0)) as f64
    }
}

impl Audience for Hearing {
    type Core = Heard;

    fn thread(&mut self, _: ProcessKey, _: u32) -> Heard {
        Heard::default()
    }

    fn ended(&mut self, _: ProcessKey, _: u32, heard: Heard) {
        let fixed = Fixed::of(&self.0);
        let mut core = self.run(&heard, Categories::NONE, Keeper::new(fixed));
        let window = core.watcher_mut().take();
        let cycles = window.cycles as f64;
        let sum = |of: fn(&Step) -> u32| {
            let all: u64 = window.steps.iter().map(|step| u64::from(of(step))).sum();
            100.0 * all as f64 / cycles
        };
        println!("{} instructions, {cycles} cycles", window.instructions);
        println!("bubble {:.2} %", sum(|step| step.bubble));
        println!("late   {:.2} %", sum(|step| step.late));
        println!("stuck  {:.2} %", sum(|step| step.stuck));
        println!("waits  {:.2} %", sum(|step| u32::from(step.wait.is_some())));
        println!("fixed  {:.2} %", sum(|step| step.fixed));
        let players: Vec<Player> = Category::ALL.iter().copied().map(Player::category).collect();
        let sets = subsets_up_to(1);
        let windows = [window];
        let of = |how| Costs::of(fixed, &windows, &players, &sets, how);
        let (anew, frozen) = (of(Arbitration::Anew), of(Arbitration::Frozen));
        let whole = self.really(&heard, Categories::NONE);
        for &set in sets.iter().skip(1).filter(|set| set.numbers().count() == 1) {
            let share =
                |costs: &Costs| 100.0 * costs.whole().cost(set).unwrap_or(f64::NAN) / cycles;
            let (graph, still) = (share(&anew), share(&frozen));
            let really = 100.0 * (whole - self.really(&heard, set)) / whole;
            if really.abs() >= LEAST {
                let name = set.name();
                println!("{name:<8}{really:>7.2} really {graph:>7.2} graph {still:>7.2} frozen");
            }
        }
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let trace = arguments.next().ok_or("which trace?")?;
    let name = arguments.next().unwrap_or_else(|| "icost-table6".to_owned());
    Recorded { path: trace.into() }.play(&mut Hearing(Machine::named(&name)?))?;
    Ok(())
}
