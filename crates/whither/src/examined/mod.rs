//! A sampled procedure, examined: the bridge from the database to `analyse`.
//!
//! ```text
//! Sampled ─► flow graph, code, samples by event and period, branches, ways ─► analyse::Examiner
//! ```

mod edges;
mod figures;
mod period;
mod tally;

use std::cell::RefCell;
use std::collections::BTreeMap;

use analyse::{BranchSeen, Branches, ProcedureReport, ProcedureTime, Request, Samples};
use image::{Binary, Callees, CodePart, FlowGraph};
use model::machine::Machine;
use vocab::{Branch, EventId, ImageId, Offset, Place};

pub(crate) use figures::{
    block_cpi, executed, frequency_cell, instruction_cycles, is_vague, largest_cause, least_cpi,
    least_of, mean_cpi, summary_section, word,
};
pub(crate) use tally::combine;

use crate::failure::{ERROR, Failure};
use crate::model::find_machine;
use crate::sampled::Sampled;

/// A procedure's flow and what is known of it.
pub(crate) struct Examined {
    pub(crate) graph: FlowGraph,
    pub(crate) report: ProcedureReport,
}

/// Examines procedures of one selection on one machine.
pub(crate) struct Examiner<'a> {
    sampled: &'a Sampled,
    pub(crate) machine: Machine,
    /// Events between samples, by event; 1 where nobody kept it.
    periods: Vec<f64>,
    /// Whether somebody kept how often the event was sampled.
    pub(crate) knows_period: bool,
    /// One serves all: a machine's schedules are made with the same core.
    examiner: RefCell<analyse::Examiner>,
}

impl<'a> Examiner<'a> {
    /// The machine is the one that was asked for, else the one that the samples were modelled on,
    /// else the one that describes this host.
    pub(crate) fn new(sampled: &'a Sampled, asked: Option<&str>) -> Result<Examiner<'a>, Failure> {
        let mut modelled =
            sampled.selected.epochs.iter().filter_map(|epoch| epoch.facts().modelled.as_ref());
        let name = asked.or_else(|| modelled.next().map(|by| by.machine.as_str()));
        let (machine, _) =
            find_machine(name).map_err(|failure| Failure { status: ERROR, ..failure })?;
        let kept: Vec<Option<f64>> = sampled
            .profile
            .events
            .iter()
            .map(|event| period::of(&sampled.selected.epochs, &event.name))
            .collect();
        let knows_period = kept.get(usize::from(sampled.event.0)).is_some_and(Option::is_some);
        let periods = kept.into_iter().map(|period| period.unwrap_or(1.0)).collect();
        let examiner = RefCell::new(analyse::Examiner::new(&machine));
        Ok(Examiner { sampled, machine, periods, knows_period, examiner })
    }

    /// The image of a procedure, as its procedures see each other; one serves many procedures.
    pub(crate) fn callees(&self, image: ImageId) -> Result<(Callees<'a>, &'a Binary), String> {
        let (binary, bytes) = self.sampled.images().code(image).ok_or_else(|| {
            self.sampled.refusal(image).unwrap_or("its code is not in a file").to_owned()
        })?;
        Ok((Callees::new(binary, bytes), binary))
    }

    pub(crate) fn examine(
        &self,
        time: &ProcedureTime,
        (callees, binary): &(Callees<'a>, &'a Binary),
    ) -> Result<Examined, String> {
        let procedure = time.procedure.as_ref().ok_or("these samples lie in no known procedure")?;
        let (graph, parts) = callees
            .flow_and_parts_of(procedure)
            .ok_or("the image does not hold the procedure's code")?;
        let samples = self.samples(time.image, binary, &parts);
        let branches = self.branches(time.image, binary, &parts);
        let edge_samples = self.edge_samples(time.image, binary, &parts);
        let request = Request {
            graph: &graph,
            parts: &parts,
            machine: &self.machine,
            samples: &samples,
            branches: branches.as_ref(),
            edge_samples: edge_samples.as_ref(),
            exact: None,
            all_samples: self.sampled.whole().0,
        };
        let report = self.examiner.borrow_mut().examine(&request);
        if report.blocks.is_empty() {
            let why = report.notes.into_iter().next();
            return Err(why.unwrap_or_else(|| "the procedure has no instructions".into()));
        }
        Ok(Examined { graph, report })
    }

    fn samples(&self, image: ImageId, binary: &Binary, parts: &[CodePart<'_>]) -> Vec<Samples> {
        let events = self.sampled.profile.events.iter().enumerate();
        let wanted = events.filter_map(|(k, event)| {
            let known = analyse::Sampled::named(&event.name)?;
            let id = EventId(k as u16);
            // Two events of time would be two opinions: the one that was asked for counts.
            (!known.is_time() || id == self.sampled.event).then_some((id, known))
        });
        let of = |(id, event): (EventId, analyse::Sampled)| {
            let mut at: BTreeMap<u64, u64> = BTreeMap::new();
            for (start, end) in extents(binary, parts) {
                for (offset, count) in self.sampled.offsets(image, id, start, end) {
                    at.extend(binary.address_of(offset).map(|address| (address, count.0)));
                }
            }
            let period = self.periods.get(usize::from(id.0)).copied().unwrap_or(1.0);
            let is_precise = is_precise(&self.sampled.profile.events, id);
            Samples { event, period, is_precise, at }
        };
        wanted.map(of).collect()
    }

    /// Branch records that begin in the procedure, if there are any.
    fn branches(
        &self,
        image: ImageId,
        binary: &Binary,
        parts: &[CodePart<'_>],
    ) -> Option<Branches> {
        let profile = &self.sampled.profile;
        let event = self.sampled.event;
        let all: u64 = profile.branches.values().map(|tally| tally.count.0).sum();
        if all == 0 {
            return None;
        }
        let mut seen = Vec::new();
        for (start, end) in extents(binary, parts) {
            let at = |offset| Branch { event, from: Some(Place { image, offset }), to: None };
            for (branch, tally) in profile.branches.range(at(start)..at(end)) {
                let to = branch.to.filter(|to| to.image == image);
                let ends = branch.from.zip(to);
                let ends = ends.and_then(|(from, to)| {
                    Some((binary.address_of(from.offset)?, binary.address_of(to.offset)?))
                });
                seen.extend(ends.map(|(from, to)| BranchSeen { from, to, count: tally.count.0 }));
            }
        }
        let period = self.periods.get(usize::from(event.0)).copied().unwrap_or(1.0);
        // A stack holds several branches: together they stand for one period.
        let each = profile.tally.stored.as_f64() / all as f64;
        let period = period * each / cycles_between(self.sampled).unwrap_or(1.0);
        (!seen.is_empty()).then_some(Branches { period, seen })
    }
}

/// Cycles from one taken branch to the next, where stacks are sampled by time and say so: a period
/// of cycles holds as many branches fewer.
fn cycles_between(sampled: &Sampled) -> Option<f64> {
    analyse::Sampled::named(sampled.event_name()).filter(|event| event.is_time())?;
    let tallies = sampled.profile.branches.values();
    let timed: u64 = tallies.clone().map(|tally| tally.timed.0).sum();
    let cycles: u64 = tallies.map(|tally| tally.cycles.0).sum();
    (timed > 0 && cycles > 0).then(|| cycles as f64 / timed as f64)
}

/// Whether samples of an event name the instruction that did it: perf and the modelled core spell
/// that with one or more p behind the name.
fn is_precise(events: &[vocab::Event], id: EventId) -> bool {
    let event = events.get(usize::from(id.0));
    let modifiers = event.and_then(|event| event.name.split_once(':'));
    modifiers.is_some_and(|(_, modifiers)| modifiers.contains('p'))
}

/// How many of the event a sample stands for, if somebody kept it.
pub(crate) fn period_of(sampled: &Sampled) -> Option<f64> {
    period::of(&sampled.selected.epochs, sampled.event_name())
}

/// Where parts of a procedure lie in the file.
fn extents<'p>(
    binary: &'p Binary,
    parts: &'p [CodePart<'_>],
) -> impl Iterator<Item = (Offset, Offset)> + 'p {
    parts.iter().filter_map(|part| {
        let start = binary.offset_of(part.address)?;
        Some((start, Offset(start.0 + part.code.len() as u64)))
    })
}
