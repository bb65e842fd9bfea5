//! What a detailed sample keeps of a micro-op.
//!
//! The labels that figure 5b marks as collected dynamically: what a life alone can tell. Widths,
//! the window, registers and ports follow from the code and the machine and are not kept.

use std::collections::VecDeque;

use model::core::Life;
use model::monitor::Recorder;

use crate::history::SPAN;
use crate::{DispatchWait, Fixed, Kind, Labeller, Step, Walk};

/// An older micro-op that another waited for, said so that it can be found in another run of the
/// same code.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Link {
    /// The pc of its instruction.
    pub pc: u64,
    /// How many instructions before; 0 for the same one.
    pub back: u32,
    /// How many runs of that instruction came between; none if that is not known.
    pub runs: Option<u32>,
    /// Which of its micro-ops.
    pub op: u8,
}

/// Edges that the code and the machine tell, and that a sample may still deny: none stands where
/// the machine was seen to have gone ahead without it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Stands(pub u8);

impl Stands {
    /// FBW.
    pub const FETCH_WIDTH: u8 = 1;
    /// FBW: behind taken branches.
    pub const TAKEN: u8 = 1 << 1;
    /// DA.
    pub const QUEUE: u8 = 1 << 2;
    /// DBW.
    pub const WIDTH: u8 = 1 << 3;
    /// CD: the window.
    pub const WINDOW: u8 = 1 << 4;
    /// CD: loads.
    pub const LOADS: u8 = 1 << 5;
    /// SD.
    pub const STORES: u8 = 1 << 6;
    /// CBW.
    pub const RETIRE_WIDTH: u8 = 1 << 7;
    /// All of them, where nothing was seen.
    pub const ALL: Stands = Stands(u8::MAX);

    fn of(step: &Step) -> Stands {
        let edges = [
            (Stands::FETCH_WIDTH, step.fetch_width > 0),
            (Stands::TAKEN, step.taken.0 > 0),
            (Stands::QUEUE, step.queue.is_some_and(|distance| distance > 0)),
            (Stands::WIDTH, step.width > 0),
            (Stands::WINDOW, step.window > 0),
            (Stands::LOADS, step.load_room > 0),
            (Stands::STORES, step.takes_store),
            (Stands::RETIRE_WIDTH, step.retire_width > 0),
        ];
        Stands(edges.iter().fold(0, |all, &(edge, stands)| if stands { all | edge } else { all }))
    }

    /// Whether an edge does.
    pub fn has(self, edge: u8) -> bool {
        self.0 & edge != 0
    }
}

/// The labels that only running the program tells, in cycles.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Labels {
    /// AA: waiting for code.
    pub code: u32,
    /// AA: waiting for its translation.
    pub code_translation: u32,
    /// AA: a branch that was not where it was thought to be.
    pub resteer: u32,
    /// AA: the front end otherwise.
    pub bubble: u32,
    /// DD: a full resource that nobody in sight freed.
    pub stuck: u32,
    /// Which edges stand.
    pub stands: Stands,
    /// CD: a full scheduler or queue.
    pub wait: Option<DispatchWait>,
    /// PA: micro-ops back to the mispredicted branch before it, and the cycles from its execution.
    pub redirect: (u32, u32),
    /// PR: which of the operands held it back at all, as a mask.
    pub operands: u8,
    /// RE: waiting for a port.
    pub contention: u32,
    /// EP: a hit in the first level.
    pub hit: u32,
    /// EP: one-cycle integer work.
    pub short: u32,
    /// EP: other work.
    pub long: u32,
    /// EP: beyond a hit in the first level.
    pub miss: u32,
    /// Where the line was that it missed.
    pub level: Kind,
    /// EP: the translation, where no tables are walked.
    pub translation: u32,
    /// EW: the walk of the page tables.
    pub walk: Option<Walk>,
    /// EP: what nothing idealises.
    pub fixed: u32,
    /// How long it took beyond a first-level hit, whoever brought the line.
    pub beyond: u32,
    /// PP: who brings the same line, and the cycles after it.
    pub line: Option<(Link, u32)>,
    /// PP: the store whose data it takes, and the cycles after it.
    pub forward: Option<(Link, u32)>,
    /// CC: retirement that nothing else explains.
    pub late: u32,
    /// ES: cycles until the line of a store may be written.
    pub write: Option<u32>,
}

impl Labels {
    fn of(life: &Life, step: &Step, link: impl Fn(u32) -> Option<Link>) -> Labels {
        let pair = |(distance, label): (u32, u32)| Some((link(distance)?, label));
        let held = |mask: u8, (k, &distance): (usize, &u32)| mask | u8::from(distance > 0) << k;
        Labels {
            code: step.code,
            code_translation: step.code_translation,
            resteer: step.resteer,
            bubble: step.bubble,
            stuck: step.stuck,
            stands: Stands::of(step),
            wait: step.wait,
            redirect: step.redirect,
            operands: step.producers.iter().enumerate().fold(0, held),
            contention: step.contention,
            hit: step.hit,
            short: step.short,
            long: step.long,
            miss: step.miss,
            level: step.level,
            translation: step.translation,
            walk: step.walk,
            fixed: step.fixed,
            beyond: (life.completed.saturating_sub(life.issued) as u32).saturating_sub(step.hit),
            line: pair(step.line),
            forward: pair(step.forward),
            late: step.late,
            write: step.write,
        }
    }
}

/// Labels every micro-op, and says what a detailed sample would hold of it.
#[derive(Clone, Debug)]
pub struct LabelRecorder {
    labeller: Labeller,
    /// Instruction, pc and place in it of the last micro-ops.
    past: VecDeque<(u64, u64, u8)>,
    instruction: u64,
    op: u8,
}

impl LabelRecorder {
    /// For a machine's numbers.
    pub fn new(fixed: Fixed) -> LabelRecorder {
        LabelRecorder {
            labeller: Labeller::new(fixed),
            past: VecDeque::with_capacity(SPAN),
            instruction: 0,
            op: 0,
        }
    }

    fn link(&self, distance: u32) -> Option<Link> {
        let place = self.past.len().checked_sub(distance as usize)?;
        let &(instruction, pc, op) = self.past.get(place)?;
        let back = (self.instruction - instruction) as u32;
        // Every run of an instruction begins with its first micro-op.
        let between = self.past.iter().skip(place + 1);
        let is_run = |&&(run, other, op): &&(u64, u64, u8)| {
            other == pc && op == 0 && run != self.instruction
        };
        let runs = between.filter(is_run).count() as u32;
        Some(Link { pc, back, runs: Some(runs), op })
    }
}

impl Recorder for LabelRecorder {
    type Detail = Labels;

    fn record(&mut self, life: &Life) -> Labels {
        let step = self.labeller.label(life);
        let labels = Labels::of(life, &step, |distance| self.link(distance));
        if self.past.len() == SPAN {
            self.past.pop_front();
        }
        self.past.push_back((self.instruction, life.pc, self.op));
        self.op = self.op.saturating_add(1);
        if life.is_last {
            self.instruction += 1;
            self.op = 0;
        }
        labels
    }
}
