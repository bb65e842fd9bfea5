//! The procedures of a witnessed program, examined as a profile's would be.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use analyse::{
    BranchSeen, Branches, Doubles, EdgeSamples, Examiner, Passed, ProcedureReport, Request,
    Sampled, Samples, Turns,
};
use image::{Binary, FlowGraph};
use metrology::Draws;
use model::machine::Machine;

use super::code::{Source, Traced};
use super::{GAP_CYCLES, Image, Line, Periods, STACK, Seen, Witness};

/// What the analysis is given.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Use {
    /// Which seed's samples.
    pub seed: usize,
    /// Retired instructions.
    pub instructions: bool,
    /// Branch stacks.
    pub stacks: bool,
    /// Directions of the conditional branches that samples of time found.
    pub turns: bool,
    /// Double samples.
    pub doubles: bool,
    /// Misses and mispredicts.
    pub events: bool,
    /// Exact counts of runs, in place of estimates.
    pub exact: bool,
    /// The share of the samples that is kept, drawn by chance.
    pub kept: f64,
}

impl Use {
    /// Time alone.
    pub const TIME: Use = Use {
        seed: 0,
        instructions: false,
        stacks: false,
        turns: false,
        doubles: false,
        events: false,
        exact: false,
        kept: 1.0,
    };
}

/// An image and its code.
#[derive(Debug)]
struct Loaded {
    image: Image,
    code: Source,
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
        let read = || {
            let bytes = std::fs::read(&image.path).map_err(|e| e.to_string())?;
            let binary = Binary::parse(&bytes).map_err(|e| e.to_string())?;
            Ok::<_, String>(Source::File(Box::new(binary), bytes))
        };
        let code = match image.code.is_empty() {
            true => read(),
            false => Ok(Source::Trace(Traced::new(&image.code))),
        };
        match code {
            Ok(code) => images.push(Loaded { image, code }),
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
        let mut examiner = Examiner::new(&self.machine);
        for loaded in &self.images {
            outside += loaded.examine(self, used, (all, &mut examiner), &mut each);
        }
        outside
    }
}

impl Loaded {
    fn examine(
        &self,
        program: &Program,
        used: Use,
        (all, examiner): (u64, &mut Examiner),
        each: &mut impl FnMut(&Examined<'_>),
    ) -> u64 {
        let address = |offset: u64| self.code.address_of(offset);
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
        let edge_samples = EdgeSamples {
            doubles: used.doubles.then(|| self.doubles(program, used, &truth, &address)),
            turns: if used.turns { turns(used, &truth) } else { BTreeMap::new() },
        };
        let exact: BTreeMap<u64, u64> = truth.iter().map(|(&at, seen)| (at, seen.1)).collect();
        let procedures = self.code.procedures();
        let mut done = BTreeSet::new();
        for k in 0..procedures.count() {
            let range = procedures.range(k);
            let from = self.image.seen.partition_point(|seen| seen.offset() < range.start);
            let mine = self.image.seen[from..].iter().take_while(|s| s.offset() < range.end);
            let sampled: u64 = mine.map(|seen| seen.samples(used.seed, Line::Cycles)).sum();
            if sampled == 0 {
                continue;
            }
            let Some((graph, parts)) = procedures.flow(k) else { continue };
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
                edge_samples: Some(&edge_samples),
                exact: used.exact.then_some(&exact),
                all_samples: all,
            };
            let report = examiner.examine(&request);
            let held = |step: &image::Step| Some((step.address, *truth.get(&step.address)?));
            let truth = graph.steps.iter().filter_map(held).collect();
            let name = procedures.name(k);
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
                (Line::DataJoins, Sampled::DataJoins, periods.events),
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

    fn doubles(
        &self,
        program: &Program,
        used: Use,
        truth: &BTreeMap<u64, &Seen>,
        address: &impl Fn(u64) -> Option<u64>,
    ) -> Doubles {
        let mut draws = Draws::new(used.seed as u64 ^ 0xd0);
        let mut thin = |count: u64| thinned(count, used.kept, &mut draws);
        let at = truth.iter().map(|(&at, seen)| {
            let mut of = |line: Line| thin(seen.samples(used.seed, line));
            let (count, pairs, begun) = (of(Line::Passed), of(Line::Pairs), of(Line::Begun));
            (at, Passed { count, pairs, begun })
        });
        let at = at.filter(|(_, passed)| passed.count > 0).collect();
        let ways = self.image.passed.get(used.seed).map_or(&[][..], Vec::as_slice);
        let way =
            |&(from, to, count): &super::Way| Some(((address(from)?, address(to)?), thin(count)));
        Doubles {
            period: program.periods.cycles as f64 / GAP_CYCLES as f64 / used.kept,
            at,
            ways: ways.iter().filter_map(way).collect(),
        }
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

/// Directions of sampled branches.
fn turns(used: Use, truth: &BTreeMap<u64, &Seen>) -> BTreeMap<u64, Turns> {
    let mut draws = Draws::new(used.seed as u64 ^ 0x70);
    let mut thin = |count: u64| thinned(count, used.kept, &mut draws);
    let of = |(&at, seen): (&u64, &&Seen)| {
        let mut of = |line: Line| thin(seen.samples(used.seed, line));
        (at, Turns { taken: of(Line::Taken), straight: of(Line::Straight) })
    };
    truth.iter().map(of).filter(|(_, turns)| *turns != Turns::default()).collect()
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
