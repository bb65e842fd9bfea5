//! Estimated frequencies against exact ones.

use std::collections::HashMap;

use analyse::{Confidence, classes};
use image::{Edge, EdgeKind};
use metrology::normal_cdf;

use super::{Examined, Line, Program, Use};

/// How much of the weight is estimated within so many per cent of the truth.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Within {
    /// All weight.
    pub all: f64,
    /// Within 5, 10 and 15 %.
    pub pct: [f64; 3],
    /// Estimates off by more than 15 %, and how many of them are marked low; by number.
    pub off: (u64, u64),
    /// The same by weight.
    pub off_weight: (f64, f64),
    /// What counting noise alone would leave within 5, 10 and 15 %.
    pub floor: [f64; 3],
    /// Weight marked low.
    pub low: f64,
    /// Weight that is over- or underestimated by more than 15 %.
    pub over: f64,
    /// As above.
    pub under: f64,
}

const LIMITS: [f64; 3] = [0.05, 0.10, 0.15];

impl Within {
    fn add(&mut self, weight: f64, error: f64, confidence: Confidence) {
        self.all += weight;
        for (sum, limit) in self.pct.iter_mut().zip(LIMITS) {
            *sum += if error.abs() <= limit { weight } else { 0.0 };
        }
        let is_low = confidence == Confidence::Low;
        self.low += if is_low { weight } else { 0.0 };
        if error.abs() > 0.15 {
            self.off.0 += 1;
            self.off.1 += u64::from(is_low);
            self.off_weight.0 += weight;
            self.off_weight.1 += if is_low { weight } else { 0.0 };
            *(if error > 0.0 { &mut self.over } else { &mut self.under }) += weight;
        }
    }

    fn add_floor(&mut self, weight: f64, samples: f64) {
        for (sum, limit) in self.floor.iter_mut().zip(LIMITS) {
            *sum += weight * (2.0 * normal_cdf(limit * samples.sqrt()) - 1.0);
        }
    }

    /// Adds another program's.
    pub fn merge(&mut self, other: &Within) {
        self.all += other.all;
        for k in 0..LIMITS.len() {
            self.pct[k] += other.pct[k];
            self.floor[k] += other.floor[k];
        }
        self.off = (self.off.0 + other.off.0, self.off.1 + other.off.1);
        self.off_weight.0 += other.off_weight.0;
        self.off_weight.1 += other.off_weight.1;
        self.low += other.low;
        self.over += other.over;
        self.under += other.under;
    }

    /// Its weight as if all weighed 1, so that programs count alike.
    pub fn normalised(&self) -> Within {
        let by = 1.0 / self.all.max(f64::MIN_POSITIVE);
        let mut one = *self;
        one.all *= by;
        one.pct.iter_mut().chain(&mut one.floor).for_each(|v| *v *= by);
        one.off_weight = (one.off_weight.0 * by, one.off_weight.1 * by);
        (one.low, one.over, one.under) = (one.low * by, one.over * by, one.under * by);
        one
    }

    /// Per cent within the limit of a place.
    pub fn share(&self, place: usize) -> f64 {
        100.0 * self.pct.get(place).copied().unwrap_or(0.0) / self.all.max(f64::MIN_POSITIVE)
    }

    /// Per cent that the floor allows.
    pub fn floor_share(&self, place: usize) -> f64 {
        100.0 * self.floor.get(place).copied().unwrap_or(0.0) / self.all.max(f64::MIN_POSITIVE)
    }

    /// Of what is off by more than 15 %, the per cent marked low, by weight; none where nothing
    /// is.
    pub fn marked(&self) -> Option<f64> {
        (self.off_weight.0 > 0.0).then(|| 100.0 * self.off_weight.1 / self.off_weight.0)
    }
}

/// How well frequencies are estimated.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Frequencies {
    /// Of instructions, weighted by samples.
    pub instructions: Within,
    /// Of edges, weighted by executions.
    pub edges: Within,
    /// Samples in no procedure, which nobody estimates: they count as far off.
    pub outside: u64,
    /// Samples of instructions that the counted run never ran: there is no truth to judge by.
    pub unran: u64,
}

/// Judges every procedure of a program.
pub fn judge_frequencies(program: &Program, used: Use) -> Frequencies {
    let mut found = Frequencies::default();
    found.outside = program.examine(used, |examined| {
        instructions(examined, &mut found);
        edges(examined, &mut found.edges);
    });
    let outside = found.outside as f64;
    found.instructions.all += outside;
    found.instructions.low += outside;
    found
}

fn instructions(examined: &Examined<'_>, found: &mut Frequencies) {
    let used = examined.used;
    let classes = classes(&examined.graph);
    let mut sampled = vec![0.0; classes.count];
    let seed = used.seed;
    for (block, held) in examined.graph.blocks.iter().enumerate() {
        for step in &examined.graph.steps[held.first..held.end] {
            let Some(seen) = examined.truth.get(&step.address) else { continue };
            let mut count = seen.samples(seed, Line::Cycles);
            if used.instructions {
                count += seen.samples(seed, Line::Instructions);
            }
            if used.doubles {
                count += seen.samples(seed, Line::Begun);
            }
            sampled[classes.of_block[block]] += used.kept * count as f64;
        }
    }
    for it in &examined.report.instructions {
        let Some(seen) = examined.truth.get(&it.address) else { continue };
        let weight = seen.samples(seed, Line::Cycles) as f64;
        if weight == 0.0 {
            continue;
        }
        if seen.1 == 0 {
            found.unran += weight as u64;
            continue;
        }
        let error = it.frequency.value / seen.1 as f64 - 1.0;
        let within = &mut found.instructions;
        within.add(weight, error, it.confidence);
        let class = classes.of_block.get(it.block).copied().unwrap_or(0);
        within.add_floor(weight, sampled.get(class).copied().unwrap_or(0.0));
    }
}

fn edges(examined: &Examined<'_>, within: &mut Within) {
    let graph = &examined.graph;
    // Two ways between the same blocks (a table and a fall) share their count.
    let mut ends: HashMap<(usize, usize), usize> = HashMap::new();
    graph.edges.iter().for_each(|edge| *ends.entry((edge.from, edge.to)).or_default() += 1);
    for (edge, report) in graph.edges.iter().zip(&examined.report.edges) {
        if ends.get(&(edge.from, edge.to)) != Some(&1) {
            continue;
        }
        let Some(truth) = taken(examined, edge) else { continue };
        let error = report.frequency.value / truth as f64 - 1.0;
        within.add(truth as f64, error, report.confidence);
    }
}

/// How often an edge was truly taken; none where never.
fn taken(examined: &Examined<'_>, edge: &Edge) -> Option<u64> {
    let graph = &examined.graph;
    let last = graph.steps.get(graph.blocks.get(edge.from)?.end.checked_sub(1)?)?;
    let to = graph.steps.get(graph.blocks.get(edge.to)?.first)?.address;
    let is_plain_fall = edge.kind == EdgeKind::Fall && last.flow != image::Flow::Branch;
    let count = if is_plain_fall {
        // It only runs on: nothing else can follow.
        examined.truth.get(&last.address).map(|seen| seen.1)
    } else {
        examined.ways.get(&(last.address, to)).copied()
    };
    count.filter(|&count| count > 0)
}
