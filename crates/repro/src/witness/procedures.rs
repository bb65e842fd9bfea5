//! The procedures of a witnessed program, examined as a profile's would be.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use analyse::{BranchSeen, Branches, ProcedureReport, Request, Sampled, Samples, examine};
use image::{Binary, Callees, FlowGraph};
use metrology::Draws;
use model::machine::Machine;
use vocab::Offset;

use super::{Image, Line, Periods, STACK, Seen, Witness};

/// What the analysis is given.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Use {
    /// Which seed's samples.
    pub seed: usize,
    /// Retired instructions.
    pub instructions: bool,
    /// Branch stacks.
    pub stacks: bool,
    /// Misses and mispredicts.
    pub events: bool,
    /// Exact counts of runs, in place of estimates.
    pub exact: bool,
    /// The share of the samples that is kept, drawn by chance.
    pub kept: f64,
}

impl Use {
    /// Time alone.
    pub const TIME: Use =
        Use { seed: 0, instructions: false, stacks: false, events: false, exact: false, kept: 1.0 };
}

/// An image and its file.
#[derive(Debug)]
struct Loaded {
    image: Image,
    binary: Binary,
    bytes: Vec<u8>,
}

/// A witnessed program with its files.
#[derive(Debug)]
pub struct Program {
    /// The machine.
    pub machine: Machine,
    /// Mean periods of the samples.
    pub periods: Periods,
    /// What the samples of time count.
    time: Sampled,
    /// How many seeds there are.
    pub seeds: usize,
    images: Vec<Loaded>,
}

/// A procedure with what is estimated and what is true.
#[derive(Debug)]
pub struct Examined<'a> {
    /// Its name.
    pub name: String,
    /// What the analysis says.
    pub report: ProcedureReport,
    /// Its flow.
    pub graph: FlowGraph,
    /// The truth, by virtual address.
    pub truth: HashMap<u64, &'a Seen>,
    /// Exact counts of the ways between blocks, by virtual address.
    pub ways: &'a HashMap<(u64, u64), u64>,
    /// Which samples were used.
    pub used: Use,
}

/// Reads the files of a witness. What cannot be read comes back as sentences.
///
/// # Errors
///
/// The machine is not known.
pub fn load(witness: Witness) -> Result<(Program, Vec<String>), String> {
    let machine = Machine::named(&witness.question.machine).map_err(|e| e.to_string())?;
    let (images, wrong) = read(witness.images);
    let program = Program {
        machine,
        periods: witness.question.periods,
        time: Sampled::Cycles,
        seeds: witness.question.seeds.len(),
        images,
    };
    Ok((program, wrong))
}

/// The same of images whose one set of samples is of the machine's own clock, every `period_ns`.
pub fn of_clock(machine: Machine, period_ns: f64, images: Vec<Image>) -> (Program, Vec<String>) {
    let (images, wrong) = read(images);
    let periods =
        Periods { cycles: period_ns.round() as u64, instructions: 0, taken: 0, events: 0 };
    (Program { machine, periods, time: Sampled::CpuClock, seeds: 1, images }, wrong)
}

fn read(list: Vec<Image>) -> (Vec<Loaded>, Vec<String>) {
    let (mut images, mut wrong) = (Vec::new(), Vec::new());
    for image in list {
        let read = std::fs::read(&image.path).map_err(|e| e.to_string());
        let parsed =
            read.and_then(|bytes| Ok((Binary::parse(&bytes).map_err(|e| e.to_string())?, bytes)));
        match parsed {
            Ok((binary, bytes)) => images.push(Loaded { image, binary, bytes }),
            Err(sentence) => wrong.push(format!("{}: {sentence}", image.path)),
        }
    }
    (images, wrong)
}

impl Program {
    /// All samples of time of a seed.
    pub fn samples(&self, seed: usize) -> u64 {
        let seen = self.images.iter().flat_map(|loaded| &loaded.image.seen);
        seen.map(|seen| seen.samples(seed, Line::Cycles)).sum()
    }

    /// Examines every procedure that has samples; samples outside any procedure come back.
    pub fn examine(&self, used: Use, mut each: impl FnMut(&Examined<'_>)) -> u64 {
        let all = self.samples(used.seed);
        let mut outside = 0;
        for loaded in &self.images {
            outside += loaded.examine(self, used, all, &mut each);
        }
        outside
    }
}

impl Loaded {
    fn examine(
        &self,
        program: &Program,
        used: Use,
        all: u64,
        each: &mut impl FnMut(&Examined<'_>),
    ) -> u64 {
        let address = |offset: u64| self.binary.address_of(Offset(offset));
        let mut truth: BTreeMap<u64, &Seen> = BTreeMap::new();
        for seen in &self.image.seen {
            truth.extend(address(seen.offset()).map(|address| (address, seen)));
        }
        let ways: HashMap<(u64, u64), u64> = self
            .image
            .ways
            .iter()
            .filter_map(|&(from, to, count)| Some(((address(from)?, address(to)?), count)))
            .collect();
        let samples = self.samples(program, used, &truth);
        let branches = used.stacks.then(|| self.branches(program, used, &address));
        let exact: BTreeMap<u64, u64> = truth.iter().map(|(&at, seen)| (at, seen.1)).collect();
        let callees = Callees::new(&self.binary, &self.bytes);
        let mut done = BTreeSet::new();
        // Parts that were moved away come with the procedure that they belong to.
        let is_part = |p: &image::Procedure| {
            p.raw_name.as_deref().is_some_and(|name| name.ends_with(".cold"))
        };
        let list = self.binary.procedures();
        let (wholes, parts): (Vec<_>, Vec<_>) = list.iter().partition(|p| !is_part(p));
        for procedure in wholes.into_iter().chain(parts) {
            let range = procedure.start.0..procedure.start.0 + procedure.len_bytes();
            let from = self.image.seen.partition_point(|seen| seen.offset() < range.start);
            let mine = self.image.seen[from..].iter().take_while(|s| s.offset() < range.end);
            let sampled: u64 = mine.map(|seen| seen.samples(used.seed, Line::Cycles)).sum();
            if sampled == 0 {
                continue;
            }
            let Some((graph, parts)) = callees.flow_and_parts_of(procedure) else { continue };
            if graph.steps.iter().any(|step| done.contains(&step.address)) {
                continue;
            }
            done.extend(graph.steps.iter().map(|step| step.address));
            let request = Request {
                graph: &graph,
                parts: &parts,
                machine: &program.machine,
                samples: &samples,
                branches: branches.as_ref(),
                exact: used.exact.then_some(&exact),
                all_samples: all,
            };
            let report = examine(&request);
            let held = |step: &image::Step| Some((step.address, *truth.get(&step.address)?));
            let truth = graph.steps.iter().filter_map(held).collect();
            let name = procedure.name("");
            each(&Examined { name, report, graph, truth, ways: &ways, used });
        }
        let is_outside = |(at, _): &(&u64, &&Seen)| !done.contains(*at);
        truth.iter().filter(is_outside).map(|(_, s)| s.samples(used.seed, Line::Cycles)).sum()
    }

    fn samples(&self, program: &Program, used: Use, truth: &BTreeMap<u64, &Seen>) -> Vec<Samples> {
        let periods = &program.periods;
        let mut lines = vec![(Line::Cycles, program.time, periods.cycles)];
        if used.instructions {
            lines.push((Line::Instructions, Sampled::Instructions, periods.instructions));
        }
        if used.events {
            lines.extend([
                (Line::CodeMisses, Sampled::CodeMisses, periods.events),
                (Line::DataMisses, Sampled::DataMisses, periods.events),
                (Line::Mispredicts, Sampled::Mispredicts, periods.events),
            ]);
        }
        let mut draws = Draws::new(used.seed as u64);
        let mut samples = |(line, event, period): (Line, Sampled, u64)| {
            let mut thin = |count: u64| thinned(count, used.kept, &mut draws);
            let at = truth.iter().map(|(&at, seen)| (at, thin(seen.samples(used.seed, line))));
            Samples {
                event,
                period: period as f64 / used.kept,
                is_precise: line != Line::Cycles,
                at: at.filter(|(_, count)| *count > 0).collect(),
            }
        };
        lines.into_iter().map(&mut samples).collect()
    }

    fn branches(
        &self,
        program: &Program,
        used: Use,
        address: &impl Fn(u64) -> Option<u64>,
    ) -> Branches {
        let ways = self.image.stacks.get(used.seed).map_or(&[][..], Vec::as_slice);
        let mut draws = Draws::new(!(used.seed as u64));
        let seen = |&(from, to, count): &super::Way| {
            let count = thinned(count, used.kept, &mut draws);
            Some(BranchSeen { from: address(from)?, to: address(to)?, count })
        };
        Branches {
            period: program.periods.taken as f64 / STACK as f64 / used.kept,
            seen: ways.iter().filter_map(seen).collect(),
        }
    }
}

/// How many of `count` stay when each does with a chance.
fn thinned(count: u64, kept: f64, draws: &mut Draws) -> u64 {
    if kept >= 1.0 {
        return count;
    }
    if count > 1_000 {
        let (mean, spread) = (count as f64 * kept, (count as f64 * kept * (1.0 - kept)).sqrt());
        return (mean + spread * draws.normal()).round().max(0.0) as u64;
    }
    (0..count).filter(|_| draws.uniform() < kept).count() as u64
}
