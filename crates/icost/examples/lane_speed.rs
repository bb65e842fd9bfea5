//! What many idealisations cost beside one:
//! `cargo run --release -p icost --example lane_speed TRACE [MACHINE]`
//!
//! *One* is one evaluation and the modelled run that it needs: the one-pass core, labels and a
//! single lane. The graph alone is printed too, on steps that are there already. All of this is CPU
//! time of one thread. With two threads, one runs the core and labels and hands steps over to the
//! other, which has the lanes: their CPU time together, and the time that passed, which means
//! nothing on a busy machine.

use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::Instant;

use icost::{Arbitration, Categories, Fixed, Labeller, Lanes, Step, subsets_up_to};
use model::core::{Life, Settings, Watcher};
use model::fast::FastCore;
use model::machine::Machine;
use model::stream::{Access, BlockId, CoreListener, StaticBlock};
use tracer::results::ProcessKey;
use tracer::stream::{InstructionStream, Recorded};
use tracer::trace::Audience;

/// Instructions that are timed.
const INSTRUCTIONS: u64 = 3_000_000;
/// Each form is timed so often; the shortest counts.
const ROUNDS: usize = 3;

/// Time that this thread has had a processor: others that run meanwhile do not count.
fn cpu_seconds() -> f64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let ns = text.split(' ').next().and_then(|field| field.parse::<f64>().ok());
    ns.unwrap_or(0.0) / 1e9
}

#[derive(Default)]
struct Heard {
    blocks: Vec<StaticBlock>,
    events: Vec<(BlockId, u16, u32)>,
    accesses: Vec<Access>,
    instructions: u64,
}

impl CoreListener for Heard {
    fn translated(&mut self, _: BlockId, block: &StaticBlock) {
        self.blocks.push(block.clone());
    }

    fn executed(&mut self, id: BlockId, ran: u16, accesses: &[Access]) {
        if self.instructions < INSTRUCTIONS {
            self.accesses.extend_from_slice(accesses);
            self.events.push((id, ran, self.accesses.len() as u32));
            self.instructions += u64::from(ran);
        }
    }
}

struct Hearing(Machine);

struct Labels {
    labeller: Labeller,
    kept: Option<Vec<Step>>,
}

impl Watcher for Labels {
    fn lived(&mut self, life: &Life) {
        let step = self.labeller.label(life);
        if let Some(kept) = &mut self.kept {
            kept.push(step);
        } else {
            std::hint::black_box(&step);
        }
    }
}

/// Steps that are handed over at a time, and how many such batches may wait.
const BATCH: usize = 256;
const WAITING: usize = 8;

/// Labels, for another thread.
struct Handing {
    labeller: Labeller,
    batch: Vec<Step>,
    to: SyncSender<Vec<Step>>,
    back: Receiver<Vec<Step>>,
}

impl Handing {
    fn hand_over(&mut self) {
        let next = self.back.try_recv().unwrap_or_else(|_| Vec::with_capacity(BATCH));
        // Who has gone away says so when it is waited for.
        let _ = self.to.send(std::mem::replace(&mut self.batch, next));
    }
}

impl Watcher for Handing {
    fn lived(&mut self, life: &Life) {
        self.batch.push(self.labeller.label(life));
        if self.batch.len() == BATCH {
            self.hand_over();
        }
    }
}

struct Whole<const L: usize> {
    labeller: Labeller,
    lanes: Lanes<L>,
}

impl<const L: usize> Watcher for Whole<L> {
    fn lived(&mut self, life: &Life) {
        self.lanes.step(&self.labeller.label(life));
    }
}

impl Hearing {
    fn seconds<W: Watcher>(&self, heard: &Heard, watcher: impl Fn() -> W) -> (f64, FastCore<W>) {
        let once = || {
            let mut core = FastCore::watched(&self.0, Settings::default(), watcher());
            for (k, block) in heard.blocks.iter().enumerate() {
                core.translated(BlockId(k as u32), block);
            }
            let mut from = 0;
            let start = cpu_seconds();
            for &(id, ran, end) in &heard.events {
                core.executed(id, ran, &heard.accesses[from..end as usize]);
                from = end as usize;
            }
            core.finish();
            (cpu_seconds() - start, core)
        };
        let runs = (0..ROUNDS).map(|_| once());
        runs.min_by(|a, b| a.0.total_cmp(&b.0)).unwrap_or_else(once)
    }

    fn whole<const L: usize>(&self, heard: &Heard, sets: &[Categories], how: Arbitration) -> f64 {
        let fixed = Fixed::of(&self.0);
        let watcher =
            || Whole::<L> { labeller: Labeller::new(fixed), lanes: Lanes::new(fixed, sets, how) };
        self.seconds(heard, watcher).0
    }

    /// CPU time of both threads, and the time that passed.
    fn handed<const L: usize>(&self, heard: &Heard, sets: &[Categories]) -> (f64, f64) {
        let fixed = Fixed::of(&self.0);
        let start = Instant::now();
        std::thread::scope(|scope| {
            let (to, from) = sync_channel::<Vec<Step>>(WAITING);
            let (give, back) = sync_channel(WAITING);
            let lanes = scope.spawn(move || {
                let mut lanes: Lanes<L> = Lanes::new(fixed, sets, Arbitration::Anew);
                for mut batch in from {
                    batch.iter().for_each(|step| lanes.step(step));
                    batch.clear();
                    let _ = give.try_send(batch);
                }
                std::hint::black_box(lanes.times());
                cpu_seconds()
            });
            let handing = Handing { labeller: Labeller::new(fixed), batch: Vec::new(), to, back };
            let mut core = FastCore::watched(&self.0, Settings::default(), handing);
            for (k, block) in heard.blocks.iter().enumerate() {
                core.translated(BlockId(k as u32), block);
            }
            let (mut first, before) = (0, cpu_seconds());
            for &(id, ran, end) in &heard.events {
                core.executed(id, ran, &heard.accesses[first..end as usize]);
                first = end as usize;
            }
            core.finish();
            core.watcher_mut().hand_over();
            drop(core);
            let mine = cpu_seconds() - before;
            (mine + lanes.join().unwrap_or(f64::NAN), start.elapsed().as_secs_f64())
        })
    }

    fn graph<const L: usize>(&self, steps: &[Step], sets: &[Categories], how: Arbitration) -> f64 {
        let fixed = Fixed::of(&self.0);
        let once = || {
            let mut lanes: Lanes<L> = Lanes::new(fixed, sets, how);
            let start = cpu_seconds();
            steps.iter().for_each(|step| lanes.step(step));
            std::hint::black_box(lanes.times());
            cpu_seconds() - start
        };
        (0..ROUNDS).map(|_| once()).fold(f64::INFINITY, f64::min)
    }
}

impl Audience for Hearing {
    type Core = Heard;

    fn thread(&mut self, _: ProcessKey, _: u32) -> Heard {
        Heard::default()
    }

    fn ended(&mut self, _: ProcessKey, _: u32, heard: Heard) {
        let ns = 1e9 / heard.instructions.max(1) as f64;
        let fixed = Fixed::of(&self.0);
        let line = |name: &str, seconds: f64, one: f64| {
            let each = seconds * ns;
            println!("{name:<44}{each:>8.1}{:>9.1}{:>8.2}", 1e3 / each, seconds / one);
        };
        println!("{:<44}{:>8}{:>9}{:>8}", "", "ns/instr", "MIPS", "of one");
        let silent = self.seconds(&heard, || model::core::Silent).0;
        let labels = || Labels { labeller: Labeller::new(fixed), kept: None };
        let labelled = self.seconds(&heard, labels).0;
        let kept = || Labels { labeller: Labeller::new(fixed), kept: Some(Vec::new()) };
        let mut core = self.seconds(&heard, kept).1;
        let steps = core.watcher_mut().kept.take().unwrap_or_default();
        let (one, pairs, all) = (subsets_up_to(0), subsets_up_to(2), subsets_up_to(8));
        println!("two threads, ports Anew");
        for (name, (cpu, passed)) in [
            ("one evaluation", self.handed::<1>(&heard, &one)),
            ("37: singles and pairs", self.handed::<48>(&heard, &pairs)),
        ] {
            let (cpu, passed) = (cpu * ns, passed * ns);
            println!("  {name:<42}{cpu:>8.1} CPU{passed:>9.1} passed: {:.1} MIPS", 1e3 / passed);
        }
        for how in [Arbitration::Anew, Arbitration::Frozen] {
            println!("whole pipeline, ports {how:?}");
            let base = self.whole::<1>(&heard, &one, how);
            line("  the core alone", silent, base);
            line("  with labels", labelled, base);
            line("  one evaluation", base, base);
            line("  37: singles and pairs", self.whole::<48>(&heard, &pairs, how), base);
            line("  256: the power set of eight", self.whole::<256>(&heard, &all, how), base);
            println!("graph alone, ports {how:?}");
            let base = self.graph::<1>(&steps, &one, how);
            line("  one evaluation", base, base);
            line("  37: singles and pairs", self.graph::<48>(&steps, &pairs, how), base);
            line("  256: the power set of eight", self.graph::<256>(&steps, &all, how), base);
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
